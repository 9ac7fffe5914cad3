"""The artifact in odd surroundings: each command ends with its status and one line, or works."""

import os
import resource
import signal

import pytest

from tests.kit.artifact import clean_environment
from tests.kit.lists import each
from tests.kit.support import full_disk, gone_reader, wait_until

WITHOUT_UTF8 = {
    "LC_ALL": "C",
    "LANG": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
}
DATA = "--data=cardbeat-data"
CREATE = ("keys", "create", DATA)


def all_work(run, data, **options):
    """Commands on a data folder, of which none tells anything but that it made a database."""
    for argv in (
        ("keys", "create"),
        ("backup", "copy.db"),
        ("restore", "copy.db"),
        ("doctor",),
    ):
        done = run(*argv, data, **options)
        assert done.returncode == 0, (argv, done.stderr)
        assert ", so a new one was made" in done.stderr or not done.stderr


def test_with_a_umask_that_forbids_all_the_owner_still_uses_the_data(
    run, tmp_path
):
    tmp_path.chmod(0o700)
    all_work(run, DATA, preexec_fn=lambda: os.umask(0o777))
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (
            0o700 if path.is_dir() else 0o600
        ), path


@pytest.mark.parametrize("where", [full_disk, gone_reader])
def test_a_stderr_that_can_not_be_written_changes_no_status(
    run, start, tmp_path, where
):
    with where() as nowhere:
        for argv in (("keys", "list"), ("--port", "x")):
            assert (
                run(*argv, stdout=nowhere, stderr=nowhere).returncode == 2
            )
        server = start("--data", "data", stderr=nowhere)
        wait_until((tmp_path / "data" / "cardbeat.db-wal").exists)
        # It stops at any point of its start as it does later.
        assert server.stop() == 0


@pytest.mark.parametrize("closed", [(0, 2), (0, 1, 2)])
def test_closed_streams_change_no_status_and_no_output(run, closed):
    def close():
        for number in closed:
            os.close(number)

    assert run(*CREATE).returncode == 0
    listed = run("keys", "list", preexec_fn=close)
    assert listed.returncode == (2 if 1 in closed else 0)
    assert bool(listed.stdout) == (1 not in closed)
    assert listed.stderr == ""
    refused = run("keys", "revoke", "none", preexec_fn=close)
    # What belongs to stderr goes nowhere else.
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == ""


NAMES = [
    "a b%20c?mode=ro#x&y",
    "a\nb'\"\\ *~",
    "dätä-日",
    os.fsdecode(b"d\xff\xfe"),
    "-d",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_data_folder_may_have_any_name(run, tmp_path, name):
    all_work(run, f"--data={name}", env=clean_environment(**WITHOUT_UTF8))
    assert set(each(tmp_path.iterdir(), "name")) == {name, "copy.db"}


def test_a_server_that_crashes_leaves_no_core_file(start, tmp_path):
    def allow():
        # A shell may let what it starts in the background ignore it.
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    server = start(preexec_fn=allow)
    server.process.send_signal(signal.SIGQUIT)
    assert server.process.wait(60) == -signal.SIGQUIT
    assert set(each(tmp_path.iterdir(), "name")) == {
        "cardbeat-data",
        server.log.name,
    }
