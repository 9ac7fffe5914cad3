"""Clients that hold connections, and how the others fare meanwhile.

    python -m tests.bench.slow_clients

First 5,000 idle and 1,000 half-sent connections; then 400 at a limit of 256 descriptors; then, where Debian's
slowhttptest is installed, its header, body and read modes with 1,000 connections each. About a minute and a half.
"""

import resource
import shutil
import socket
import subprocess
import sys
import time

from tests.bench.running import HEALTH, Probe, Server, serving

MIB = 1024 * 1024
SLOW = ["slowhttptest", "-c", "1000", "-r", "200", "-l", "12", "-p", "3", "-i", "1"]
MODES = {
    "headers": [*SLOW, "-H", "-u", "http://127.0.0.1:{port}/"],
    "body": [*SLOW, "-B", "-s", "60000", "-u", "http://127.0.0.1:{port}/register"],
    "reading": [*SLOW, "-X", "-k", "3", "-n", "2", "-w", "10", "-y", "20", "-z", "1", "-u", "http://127.0.0.1:{port}/"],
}


def count_closed(clients: list[socket.socket]) -> int:
    closed = 0
    for client in clients:
        client.setblocking(False)
        try:
            while client.recv(65536):
                pass
            closed += 1
        except BlockingIOError:
            pass
        except OSError:
            closed += 1
    return closed


def many_idle(server: Server) -> None:
    before = server.memory_bytes()
    clients = [server.connect() for _ in range(2500)]
    clients += [server.connect(HEALTH) for _ in range(2500)]
    clients += [server.connect(HEALTH[:-4]) for _ in range(1000)]
    opened = time.monotonic()
    with Probe(server) as probe:
        time.sleep(3)
        grown = server.memory_bytes() - before
        time.sleep(max(0, 12 - (time.monotonic() - opened)))
    print(f"5,000 idle and 1,000 half-sent: others {probe}")
    print(f"  {grown / MIB:.1f} MiB more memory; after 12 s {count_closed(clients)} of 6,000 closed")


def few_descriptors(server: Server) -> None:
    clients = [server.connect() for _ in range(400)]
    used, started = server.cpu_seconds(), time.monotonic()
    with Probe(server) as probe:
        time.sleep(5)
    share = (server.cpu_seconds() - used) / (time.monotonic() - started)
    print(f"400 clients at 256 descriptors: others {probe}")
    print(
        f"  {share:.1%} of a CPU with these 100 requests a second; {count_closed(clients)} of 400 gave way or timed out"
    )
    clients = [server.connect() for _ in range(400)]
    used, started = server.cpu_seconds(), time.monotonic()
    time.sleep(3)
    print(f"  {(server.cpu_seconds() - used) / (time.monotonic() - started):.1%} of a CPU while the clients only wait")


def slowhttptest(server: Server, mode: str) -> None:
    command = [part.format(port=server.port) for part in MODES[mode]]
    before = server.memory_bytes()
    with Probe(server) as probe:
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        grown = server.memory_bytes() - before
    said = [line.split()[-1] for line in output.splitlines() if "service available" in line]
    print(f"slowhttptest, {mode}: others {probe}; {grown / MIB:.1f} MiB more; available in its eyes: {set(said)}")


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with serving() as server:
        many_idle(server)
    with serving(descriptors=256) as server:
        few_descriptors(server)
    if not shutil.which("slowhttptest"):
        sys.exit("slowhttptest is not installed")
    for mode in MODES:
        with serving() as server:
            slowhttptest(server, mode)


if __name__ == "__main__":
    main()
