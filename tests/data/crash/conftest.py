"""Faults below a server: a library loaded into it lets syncs fail, keeps what was synced, and moves its clock."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.postgresql import installed

FIRST = int(os.environ.get("FIRST_SEED", "508"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("SEEDS", "4")))
"""With 510 a new database was once damaged. The variables choose others."""
MIB = 1024 * 1024
DISK_BYTES = 16 * MIB
"""Several times what the database and its log come to, so that there is the reserve when room is made."""


@pytest.fixture(scope="session")
def faulty_library(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail(
            "These tests compile a library, and there is no compiler: apt-get install gcc libc6-dev"
        )
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, source],
        check=True,
    )
    return library


@contextlib.contextmanager
def there(path, content=""):
    """The file is there during the block. It appears whole."""
    partial = path.with_suffix(".partial")
    partial.write_text(content)
    partial.replace(path)
    try:
        yield
    finally:
        path.unlink()


class Faults:
    def __init__(self, folder):
        self.sync_fails = folder / "sync-fails"
        self.clock_offset = folder / "clock-offset"
        self.synced = folder / "synced"
        self.disk = folder / "disk-faults"
        self.quota = folder / "quota"

    def failing_syncs(self):
        return there(self.sync_fails)

    def used_up_quota(self, folder):
        return there(self.quota, str(folder))

    def failing_disk(self, folder, seed, every):
        """One of so many changes of files in the folder fails."""
        return there(self.disk, f"{seed} {every} {folder}")

    def set_clock(self, offset_seconds):
        """In one step, as the server reads it at any moment."""
        partial = self.clock_offset.with_suffix(".partial")
        partial.write_text(str(offset_seconds))
        partial.replace(self.clock_offset)


@pytest.fixture
def faults(faulty_library, tmp_path, monkeypatch):
    """Of every server that is started from now on."""
    faults = Faults(tmp_path)
    monkeypatch.setenv("LD_PRELOAD", str(faulty_library))
    monkeypatch.setenv("SYNC_FAILS_WHILE", str(faults.sync_fails))
    monkeypatch.setenv("CLOCK_OFFSET", str(faults.clock_offset))
    monkeypatch.setenv("DISK_FAULTS", str(faults.disk))
    monkeypatch.setenv("QUOTA", str(faults.quota))
    return faults


@pytest.fixture(scope="session")
def postgresql_programs():
    """The folder of PostgreSQL's programs."""
    if (programs := installed()) is None:
        assert not os.environ.get("CI"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed")
    return programs


class Disk:
    def __init__(self, folder):
        self.folder = folder
        self._ballast = folder / "ballast"

    @contextlib.contextmanager
    def filled(self):
        """Full to the last byte. What it yields takes what was freed since."""
        self.fill()
        try:
            yield self.fill
        finally:
            self.make_room()

    def fill(self):
        with self._ballast.open("ab", buffering=0) as ballast:
            for block in (bytes(4096), b"0"):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(block)

    def leave(self, free):
        """Take all but so many bytes."""
        with self._ballast.open("wb") as ballast:
            os.posix_fallocate(
                ballast.fileno(),
                0,
                shutil.disk_usage(self.folder).free - free,
            )

    def make_room(self):
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path):
    """Of `DISK_BYTES`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = f"size={DISK_BYTES}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(
            "mounting is not allowed here; tests/service/test_disk.py limits the file size instead"
        )
    yield Disk(folder)
    subprocess.run(["umount", "--lazy", folder], check=True)
