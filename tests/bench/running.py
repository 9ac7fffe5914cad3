"""For benchmarks: a server process of this tree, what it uses, and someone who asks it while others hold it up."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


@dataclass
class Server:
    port: int
    pid: int

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def memory_bytes(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def connect(self, data: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        client.sendall(data)
        return client


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its children so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds, map(int, children)))


@contextlib.contextmanager
def serving(*options: str, descriptors: int | None = None) -> Iterator[Server]:
    """`python -m cardbeat` in a folder of its own, with a limit of descriptors if one is given."""
    port = free_port()
    command = [sys.executable, "-m", "cardbeat", "--port", str(port), *options]
    if descriptors:
        command = ["prlimit", f"--nofile={descriptors}", *command]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--data", f"{folder}/data"], stderr=log)
        try:
            wait_for(port)
            yield Server(port, process.pid)
        finally:
            process.terminate()
            process.wait(20)


class Probe:
    """Asks for `/healthz` 100 times a second, each time on a new connection or always on one, and keeps the times."""

    def __init__(self, server: Server, *, kept: bool = False) -> None:
        self.server = server
        self.kept = kept
        self.seconds: list[float] = []
        self.failures = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Probe":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def __str__(self) -> str:
        times = sorted(self.seconds) or [float("nan")]
        p50, p99 = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
        return f"{len(times)} answers, p50 {p50:.1f} ms, p99 {p99:.1f} ms, {self.failures} failures"

    def _run(self) -> None:
        client = None
        while not self._stopped.wait(0.01):
            started = time.perf_counter()
            try:
                client = client or self.server.connect()
                client.sendall(HEALTH)
                if not client.recv(4096).startswith(b"HTTP/1.1 200"):
                    raise OSError
                self.seconds.append(time.perf_counter() - started)
            except OSError:
                self.failures += 1
                client = None
            if client and not self.kept:
                client.close()
                client = None
