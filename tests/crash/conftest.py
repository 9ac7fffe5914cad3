"""Faults below a server: a library loaded into it lets syncs fail, keeps what was synced, and moves its clock."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.crash.cluster import installed


@pytest.fixture(scope="session")
def faulty_library(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("These tests compile a library, and there is no compiler: apt-get install gcc libc6-dev")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


class Faults:
    def __init__(self, folder: Path) -> None:
        self.sync_fails = folder / "sync-fails"
        self.sync_seconds = folder / "sync-seconds"
        self.clock_offset = folder / "clock-offset"
        self.synced = folder / "synced"
        self.disk = folder / "disk-faults"
        self.quota = folder / "quota"

    @contextlib.contextmanager
    def failing_syncs(self):
        self.sync_fails.touch()
        try:
            yield
        finally:
            self.sync_fails.unlink()

    @contextlib.contextmanager
    def slow_syncs(self, seconds: int):
        self.sync_seconds.write_text(str(seconds))
        try:
            yield
        finally:
            self.sync_seconds.unlink()

    @contextlib.contextmanager
    def failing_disk(self, folder: Path, seed: int, every: int):
        """One of so many changes of files in the folder fails."""
        partial = self.disk.with_suffix(".partial")
        partial.write_text(f"{seed} {every} {folder}")
        partial.replace(self.disk)
        try:
            yield
        finally:
            self.disk.unlink()

    def set_clock(self, offset_seconds: int) -> None:
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
    monkeypatch.setenv("SYNC_SECONDS", str(faults.sync_seconds))
    monkeypatch.setenv("CLOCK_OFFSET", str(faults.clock_offset))
    monkeypatch.setenv("DISK_FAULTS", str(faults.disk))
    monkeypatch.setenv("QUOTA", str(faults.quota))
    return faults


@pytest.fixture(scope="session")
def postgresql_programs() -> Path:
    """The folder of PostgreSQL's programs."""
    if (programs := installed()) is None:
        assert not os.environ.get("CI"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed")
    return programs
