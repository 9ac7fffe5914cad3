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


SERVE = ("serve", "--port", "0", "--data", "data")


@pytest.fixture
def run(python, pyz, tmp_path):
    """Runs a command of the artifact in the test's folder, `before` in front of it."""

    def run_command(*argv, before=()):
        command = [*before, python, pyz, *argv]
        return subprocess.run(
            command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=30, check=False
        )

    return run_command


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_damaged_file_is_refused_and_left_as_it_is(run, database, spoil):
    SPOILS[spoil](database)
    before = database.read_bytes()
    ran = run(*SERVE)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "damaged" in ran.stderr
    assert database.read_bytes() == before


def test_a_folder_in_its_place_is_refused(run, tmp_path):
    (tmp_path / "data" / "cardbeat.db").mkdir(parents=True)
    ran = run(*SERVE)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "data" / "cardbeat.db").is_dir()


@pytest.fixture
def powerless():
    """What a command is started with so that permissions hold: root does what it may not, unless it gives that up."""
    if os.geteuid() != 0:
        return ()
    assert shutil.which("setpriv"), "apt-get install util-linux"
    return "setpriv", "--bounding-set", "-dac_override,-dac_read_search"


@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_a_file_that_may_not_be_read_or_written_is_refused(run, database, powerless, mode):
    before = database.read_bytes()
    database.chmod(mode)
    ran = run(*SERVE, before=powerless)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    database.chmod(0o600)
    assert database.read_bytes() == before


def refusals(run, data, before=()):
    """What serving says before it gives up, and what doctor finds wrong."""
    served = run("serve", "--port", "0", "--data", data, before=before)
    examined = run("doctor", "--data", data, before=before)
    assert (served.returncode, examined.returncode) == (2, 1), served.stderr + examined.stderr
    (problem,) = [line for line in examined.stdout.splitlines() if line.startswith("problem")]
    return served.stderr.removeprefix("cardbeat: ").rstrip(), problem.removeprefix("problem  database: ")


@pytest.mark.parametrize("spoil", SPOILS)
def test_doctor_says_of_a_damaged_file_what_serving_says(run, database, spoil):
    SPOILS[spoil](database)
    served, examined = refusals(run, "data")
    assert served == examined
    assert "restore a backup" in examined


@pytest.mark.parametrize("locked", [".", "cardbeat.db", "writer.lock", "delivery.lock"])
def test_doctor_has_what_may_not_be_written_made_writable(run, database, powerless, locked):
    (database.parent / locked).chmod(0o500)
    served, examined = refusals(run, "data", powerless)
    (database.parent / locked).chmod(0o700)
    assert served == examined
    assert "writable for this user" in examined
    assert "backup" not in examined


def test_doctor_says_of_a_link_to_nothing_what_serving_says(run, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cardbeat.db").symlink_to("nowhere")
    served, examined = refusals(run, "data")
    assert served == examined
    assert "is a link to nothing" in examined


@pytest.mark.parametrize("data", ["file", "file/data", "x" * 300])
def test_doctor_says_of_what_can_be_no_folder_what_serving_says(run, tmp_path, data):
    (tmp_path / "file").touch()
    served, examined = refusals(run, data)
    assert served == examined
    assert f"can't write in the data folder {data}: " in examined
