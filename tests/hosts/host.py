"""The ways to run the artifact: by this system's Python, with another system's lacks, by CPython for Windows."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from tests.artifact import clean_environment, free_port
from tests.hosts.typeshed import lacking
from tests.hosts.wine import windows_python
from tests.support import wait_until

HERE = Path(__file__).parent
STOP_SECONDS = 15
COMMAND_SECONDS = 120
PIPE_SECONDS = 5

Command = list[str | Path]
Stop = Callable[[subprocess.Popen[bytes]], None]


class Host:
    """Runs the artifact as on `platform`, a value of `sys.platform`.

    `stops` are the ways to ask a server for its end, by name, and `kill` gives it none.
    """

    def __init__(
        self,
        platform: str,
        command: Command,
        stops: dict[str, Stop],
        *,
        kill: Stop = subprocess.Popen.kill,
        environment: dict[str, str] | None = None,
        server_command: Command | None = None,
    ) -> None:
        self._command = command
        self._server_command = server_command or command
        self._environment = clean_environment() if environment is None else environment
        self.platform = platform
        self.stops = stops
        self.kill = kill

    def run(self, folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
        """A command, to its end."""
        command = [*self._command, *argv]
        # Windows' Python takes nothing but pipes under wine.
        with subprocess.Popen(
            command,
            cwd=folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            printed, complained = Printed(process.stdout), Printed(process.stderr)
            try:
                status = process.wait(COMMAND_SECONDS)
            finally:
                process.kill()
            return subprocess.CompletedProcess(command, status, printed.all(), complained.all())

    @contextlib.contextmanager
    def servers(self, folder: Path) -> Iterator[Callable[..., "Server"]]:
        """Starts servers in a folder; whatever still runs at the end is killed."""
        started: list[Server] = []

        def start(*options: str) -> Server:
            port = free_port()
            process = subprocess.Popen(
                [*self._server_command, "--port", str(port), "--allow-private-webhooks", *options],
                cwd=folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            started.append(Server(self, process, port))
            wait_until(started[-1].serves, COMMAND_SECONDS)
            return started[-1]

        try:
            yield start
        finally:
            for server in started:
                server.close()


class Printed:
    """What comes out of a pipe, read as it comes."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def all(self) -> str:
        """After the end of the program. Wine's own services may hold a pipe open for longer."""
        self._reader.join(PIPE_SECONDS)
        return self.text

    def _read(self) -> None:
        for line in self._pipe:
            # Windows' Python writes in the system's code page.
            self.text += line.decode(errors="replace").replace("\r\n", "\n")


class Server:
    """One that serves; its log is all that it has printed."""

    def __init__(self, host: Host, process: subprocess.Popen[bytes], port: int) -> None:
        self.port = port
        self._host = host
        self._process = process
        self._printed = Printed(process.stdout)

    @property
    def log(self) -> str:
        return self._printed.text

    def serves(self) -> bool:
        assert self._process.poll() is None, self.log
        return " serves http" in self.log

    def stop(self, way: str) -> int:
        """Ask it to end in one of the host's ways, and give its exit status."""
        self._host.stops[way](self._process)
        status = self._process.wait(STOP_SECONDS)
        self._printed.all()
        return status

    def kill(self) -> None:
        self._host.kill(self._process)
        self._process.wait(STOP_SECONDS)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        self._printed.all()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()


def sending(number: int) -> Stop:
    return lambda process: process.send_signal(number)


@contextlib.contextmanager
def plain(python: Path, pyz: Path, _folder: Path) -> Iterator[Host]:
    yield Host(sys.platform, [python, pyz], {"SIGTERM": sending(signal.SIGTERM), "SIGINT": sending(signal.SIGINT)})


@contextlib.contextmanager
def hidden(platform: str, python: Path, pyz: Path, folder: Path, like: str | None = None) -> Iterator[Host]:
    """`like` is the system whose lacks are hidden, where typeshed does not tell those of the platform itself."""
    names = folder / "lacking.json"
    names.write_text(json.dumps(lacking(like or platform)))
    stops = {"SIGTERM": sending(signal.SIGTERM), "SIGINT": sending(signal.SIGINT)}
    if platform == "win32":
        stops["SIGBREAK"] = sending(signal.SIGUSR2)
    yield Host(platform, [python, HERE / "hidden.py", platform, names, "cardbeat", pyz], stops)


@contextlib.contextmanager
def windows(_python: Path, pyz: Path, folder: Path) -> Iterator[Host]:
    with windows_python(folder) as (command, environment):
        yield Host(
            "win32",
            [*command, pyz],
            {"Ctrl-C": press_ctrl_c},
            kill=end_input,
            environment=environment,
            server_command=[*command, HERE / "console.py", pyz],
        )


def press_ctrl_c(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def end_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
