"""The built artifact, run as a user runs it: in an empty folder, by a Python with only Pillow."""

import contextlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import PIL
import pytest

from tests.kit.support import free_port, wait_until
from tests.kit.systems import WINDOWS

ROOT = Path(__file__).resolve().parents[2]
RUN_SECONDS = 120


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """The interpreter of a new virtual environment that holds only Pillow."""
    return environment_with_pillow(tmp_path_factory.mktemp("venv"))


def environment_with_pillow(folder):
    venv.create(folder, symlinks=not WINDOWS, with_pip=False)
    (packages,) = folder.glob(
        "Lib/site-packages" if WINDOWS else "lib/python*/site-packages"
    )
    here = Path(PIL.__file__).parent.parent
    for name in ("PIL", "pillow.libs", "Pillow.libs"):
        if (here / name).is_dir():
            shutil.copytree(here / name, packages / name)
    return folder / ("Scripts/python.exe" if WINDOWS else "bin/python")


@pytest.fixture(scope="session")
def pyz(tmp_path_factory):
    target = tmp_path_factory.mktemp("artifact") / "cardbeat.pyz"
    command = [sys.executable, "build_zipapp.py", "--output", target]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return target


def copy_of_the_tree(folder):
    """The folder, with what the artifact and the package are built from."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(
        ROOT / "cardbeat", folder / "cardbeat", ignore=ignored
    )
    for name in (
        "build_zipapp.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    ):
        shutil.copy(ROOT / name, folder)
    return folder


def clean_environment(**variables):
    """The variables of this process, without those of cardbeat, of Python, and of systemd."""
    ours = (
        "CARDBEAT_",
        "PYTHON",
        "NOTIFY_SOCKET",
        "WATCHDOG_",
        "STATE_DIRECTORY",
    )
    for name, value in os.environ.items():
        if not name.startswith(ours):
            variables.setdefault(name, value)
    return variables


def ran(*command, **options):
    """Runs a program in the clean environment to its end, and captures what it prints as text."""
    options = {
        "env": clean_environment(),
        "timeout": RUN_SECONDS,
    } | options
    if "stdout" not in options:
        options = {"capture_output": True, "text": True} | options
    return subprocess.run(command, check=False, **options)


def shell(commands, folder, **variables):
    """What commands of a shell print, of which none may fail."""
    command = ("bash", "-euo", "pipefail", "-c", commands)
    done = ran(*command, cwd=folder, env=clean_environment(**variables))
    assert done.returncode == 0, (
        f"{commands}\n{done.stdout[-500:]}{done.stderr}"
    )
    return done.stdout


@pytest.fixture
def run(python, pyz, tmp_path):
    """Runs a command of the artifact in the test's folder."""
    return lambda *argv, **options: ran(
        python, pyz, *argv, cwd=tmp_path, **options
    )


def is_refused(done):
    """Whether it ended as the program does where an operator must change something."""
    return done.returncode == 2 and done.stderr.count("\n") == 1


class Running:
    """A server process of the artifact."""

    def __init__(self, process, port, log):
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = log

    def serves(self):
        """Whether it is past its start; the port alone takes connections before."""
        assert self.process.poll() is None, self.log.read_text()
        return " serves http" in self.log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Its exit status after SIGTERM."""
        self.process.terminate()
        return self.process.wait(60)


@contextlib.contextmanager
def starter(python, pyz, folder, **variables):
    """Starts the artifact in a folder with some options; what still runs at the end is ended."""
    running = []

    def start_one(*options, port=None, **popen):
        port = port or free_port()
        log = folder / f"log-{len(running)}.txt"
        command = [python, pyz, "--port", str(port), *options]
        with log.open("wb") as sink:
            popen = {
                "stderr": sink,
                "env": clean_environment(**variables),
            } | popen
            server = Running(
                subprocess.Popen(command, cwd=folder, **popen), port, log
            )
        running.append(server)
        if popen["stderr"] is sink:
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


@pytest.fixture(scope="module")
def server(python, pyz, tmp_path_factory):
    """One for all tests of a module, which leave it as it is."""
    with starter(
        python, pyz, tmp_path_factory.mktemp("served")
    ) as start_one:
        yield start_one()
