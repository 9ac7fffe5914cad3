"""The ways to run the artifact: by this system's Python, as on macOS, by CPython for Windows."""

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.artifact.hosts.wine import windows_python
from tests.kit.artifact import RUN_SECONDS, clean_environment
from tests.kit.support import free_port, wait_until

HERE = Path(__file__).parent
STOP_SECONDS = 60
PIPE_SECONDS = 5


class Printed:
    """What comes out of a pipe, read as it comes."""

    def __init__(self, pipe):
        self.text = ""
        self._pipe = pipe
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def all(self):
        """After the end of the program. Wine's own services may hold a pipe open for longer."""
        self._reader.join(PIPE_SECONDS)
        return self.text

    def _read(self):
        # Closed here: to close a pipe that another thread reads waits for its end.
        with self._pipe:
            for line in self._pipe:
                # Windows' Python writes in the system's code page.
                self.text += line.decode(errors="replace").replace(
                    "\r\n", "\n"
                )


class Host:
    """Runs the artifact as on `platform`, a value of `sys.platform`, with pipes for its streams.

    Windows' Python takes nothing but pipes under wine. `stops` are the ways to ask a server for its
    end, by name.
    """

    def __init__(
        self,
        platform,
        command,
        stops,
        environment=None,
        server_command=None,
    ):
        self.platform = platform
        self.stops = stops
        self._command = command
        self._server_command = server_command or command
        self._environment = environment or clean_environment()

    def begin(self, folder, *command):
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            cwd=folder,
            env=self._environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )

    def run(self, folder, *argv):
        """A command, to its end."""
        with self.begin(folder, *self._command, *argv) as process:
            printed = Printed(process.stdout)
            complained = Printed(process.stderr)
            try:
                status = process.wait(RUN_SECONDS)
            finally:
                process.kill()
            return subprocess.CompletedProcess(
                argv, status, printed.all(), complained.all()
            )

    @contextlib.contextmanager
    def servers(self, folder):
        """Starts servers in a folder; what still runs at the end is killed."""
        with contextlib.ExitStack() as started:

            def start(*options):
                port = free_port()
                line = (
                    "--port",
                    str(port),
                    "--allow-private-webhooks",
                    *options,
                )
                server = Server(
                    self,
                    self.begin(folder, *self._server_command, *line),
                    port,
                )
                started.callback(server.kill)
                wait_until(server.serves, RUN_SECONDS)
                return server

            yield start


class Server:
    """One that serves. The end of its stdin kills one on Windows."""

    def __init__(self, host, process, port):
        self.port = port
        self._host = host
        self._process = process
        self._printed = Printed(process.stdout)
        self._logged = Printed(process.stderr)

    @property
    def log(self):
        return self._logged.text

    def serves(self):
        assert self._process.poll() is None, self.log
        return " serves http" in self.log

    def stop(self, way):
        """Ask it to end in one of the host's ways, and give its exit status."""
        self._host.stops[way](self._process)
        status = self._process.wait(STOP_SECONDS)
        self._logged.all()
        return status

    def kill(self):
        if self._process.poll() is None:
            if self._host.platform == "win32":
                self._process.stdin.close()
            else:
                self._process.kill()
            self._process.wait(STOP_SECONDS)
        self._process.stdin.close()
        self._printed.all()
        self._logged.all()


def send(number):
    return lambda process: process.send_signal(number)


def press_ctrl_c(process):
    process.stdin.write(b"\n")
    process.stdin.flush()


SIGNALS = {"SIGTERM": send(signal.SIGTERM), "SIGINT": send(signal.SIGINT)}


@contextlib.contextmanager
def plain(python, pyz, _folder):
    yield Host(sys.platform, [python, pyz], SIGNALS)


@contextlib.contextmanager
def darwin(python, pyz, _folder):
    yield Host("darwin", [python, HERE / "darwin.py", pyz], SIGNALS)


@contextlib.contextmanager
def windows(_python, pyz, folder):
    with windows_python(folder) as (command, environment):
        console = [*command, HERE / "console.py", pyz]
        stops = {"Ctrl-C": press_ctrl_c}
        yield Host("win32", [*command, pyz], stops, environment, console)
