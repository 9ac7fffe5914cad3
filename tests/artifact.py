"""The built artifact, run as a user runs it: in an empty folder, by a Python that has nothing but Pillow."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import PIL
import pytest

from tests.support import wait_until
from tests.systems import WINDOWS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> Path:
    """The interpreter of a fresh virtual environment that holds only Pillow."""
    return environment_with_pillow(tmp_path_factory.mktemp("venv"))


def environment_with_pillow(folder: Path) -> Path:
    venv.create(folder, symlinks=not WINDOWS, with_pip=False)
    (packages,) = folder.glob("Lib/site-packages" if WINDOWS else "lib/python*/site-packages")
    here = Path(PIL.__file__).parent.parent
    for name in ("PIL", "pillow.libs", "Pillow.libs"):
        if (here / name).is_dir():
            shutil.copytree(here / name, packages / name)
    return folder / ("Scripts/python.exe" if WINDOWS else "bin/python")


@pytest.fixture(scope="session")
def pyz(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("artifact") / "cardbeat.pyz"
    subprocess.run(
        [sys.executable, "build_zipapp.py", "--output", target], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    return target


def free_port() -> int:
    """One that the system gives to nobody by itself: those begin at 32768 on Linux, and higher elsewhere."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Running:
    """A server process of the artifact."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = log

    def serves(self) -> bool:
        """Whether it is past its start; the port alone takes connections before."""
        assert self.process.poll() is None, self.log.read_text()
        return " serves http" in self.log.read_text()


@contextlib.contextmanager
def starter(python: Path, pyz: Path, folder: Path) -> Iterator[Callable[..., Running]]:
    """Starts the artifact in a folder with some options; whatever still runs at the end is ended."""
    running: list[Running] = []

    def start_one(*options: str, port: int | None = None) -> Running:
        port = port or free_port()
        log = folder / f"log-{len(running)}.txt"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [python, pyz, "--port", str(port), *options], cwd=folder, stderr=sink, env=clean_environment()
            )
        server = Running(process, port, log)
        running.append(server)
        wait_until(server.serves)
        return server

    try:
        yield start_one
    finally:
        for server in running:
            server.process.kill()
            server.process.wait()


@pytest.fixture
def start(python, pyz, tmp_path):
    """Starts the artifact in the test's folder, as often as it is called."""
    with starter(python, pyz, tmp_path) as start_one:
        yield start_one


def clean_environment() -> dict[str, str]:
    """The variables of this process, without those of cardbeat, of Python, and of systemd for its services."""
    ours = ("CARDBEAT_", "PYTHON", "NOTIFY_SOCKET", "WATCHDOG_", "STATE_DIRECTORY")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
