"""A database file that can't be used, in every way: one line, status 2, and not a byte of it changed."""

import os
import shutil
import signal
import subprocess

import pytest

from tests.artifact import clean_environment
from tests.crash.client import checks_key, new_check


@pytest.fixture
def database(start, tmp_path):
    server = start("--data", "data")
    key = checks_key(server)
    for _ in range(40):
        new_check(server, key, name="x" * 100)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0
    return tmp_path / "data" / "cardbeat.db"


def patch(path, offset, data):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def zeroed_page(path):
    patch(path, path.stat().st_size // 2 // 4096 * 4096, bytes(4096))


SPOILS = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a zeroed page in the middle": zeroed_page,
    "a header of garbage": lambda path: patch(path, 0, b"\xa5" * 100),
    "empty": lambda path: os.truncate(path, 0),
}


def serve(python, pyz, folder, *before):
    command = [*before, python, pyz, "--port", "0", "--data", "data"]
    return subprocess.run(
        command, cwd=folder, env=clean_environment(), capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_damaged_file_is_refused_and_left_as_it_is(python, pyz, tmp_path, database, spoil):
    SPOILS[spoil](database)
    before = database.read_bytes()
    ran = serve(python, pyz, tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "damaged" in ran.stderr
    assert database.read_bytes() == before


def test_a_folder_in_its_place_is_refused(python, pyz, tmp_path):
    (tmp_path / "data" / "cardbeat.db").mkdir(parents=True)
    ran = serve(python, pyz, tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "data" / "cardbeat.db").is_dir()


def test_a_file_that_may_not_be_read_is_refused(python, pyz, tmp_path, database):
    before = database.read_bytes()
    database.chmod(0)
    # Root reads what it may not, unless it gives that up.
    powerless = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    assert not powerless or shutil.which("setpriv"), "apt-get install util-linux"
    ran = serve(python, pyz, tmp_path, *powerless)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    database.chmod(0o600)
    assert database.read_bytes() == before
