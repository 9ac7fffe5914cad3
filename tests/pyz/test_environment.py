"""The artifact in odd surroundings: each command ends with its own status and one clear line, or simply works."""

import os
import re
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests.artifact import clean_environment
from tests.support import full_disk, gone_reader, wait_until
from tests.systems import IS_ROOT

WITHOUT_UTF8 = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
POWERLESS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if IS_ROOT else ()
"""What a command is started with so that modes hold: root reads and writes what it may not."""


@pytest.fixture
def run(python, pyz, tmp_path):
    """Runs a command of the artifact in the test's folder, with data below it; `before` is called in its process."""

    def run_command(*argv, before=None, variables=None, powerless=False, **streams):
        return subprocess.run(
            [*(POWERLESS if powerless else ()), python, pyz, *argv],
            cwd=tmp_path,
            env={**clean_environment(), "CARDBEAT_DATA": "cardbeat-data", **(variables or {})},
            timeout=60,
            check=False,
            preexec_fn=before,
            **({"capture_output": True, "text": True} | streams),
        )

    return run_command


def is_quiet(ran, argv):
    """Whether nothing went wrong: the first key is created with a line on the new database."""
    told = r"cardbeat: there was no database at .*, so a new one was made\n" if argv[:2] == ("keys", "create") else ""
    return re.fullmatch(told, ran.stderr, re.DOTALL) is not None


@pytest.fixture
def serve(python, pyz, tmp_path):
    """Starts a server, and waits until it serves, which the file `log` tells. At the end it is gone."""
    running = []

    def start_one(*options, before=None, stderr=None):
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(
                [python, pyz, "--port", "0", *options],
                cwd=tmp_path,
                env=clean_environment(),
                preexec_fn=before,  # noqa: PLW1509 - no other thread runs
                stderr=stderr or log,
            )
        running.append(process)
        return process

    yield start_one
    for process in running:
        process.kill()
        process.wait()


def serves(folder):
    return lambda: " serves http" in (folder / "log").read_text()


def test_with_a_umask_that_forbids_all_the_owner_still_uses_the_data(run, tmp_path):
    tmp_path.chmod(0o700)

    def forbid():
        os.umask(0o777)

    for argv in (
        ("keys", "create", "--email", "a@example.com"),
        ("keys", "list"),
        ("backup", "copy.db"),
        ("restore", "copy.db"),
        ("doctor",),
    ):
        ran = run(*argv, before=forbid, powerless=True)
        assert (ran.returncode, is_quiet(ran, argv)) == (0, True), argv
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("where", [full_disk, gone_reader])
def test_a_server_whose_stderr_can_not_be_written_serves_and_ends_with_status_0(serve, tmp_path, where):
    with where() as nowhere:
        process = serve("--data", "data", stderr=nowhere)
        wait_until((tmp_path / "data" / "cardbeat.db-wal").exists)
        # It stops at any point of its start as it does later.
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0


@pytest.mark.parametrize("where", [full_disk, gone_reader])
@pytest.mark.parametrize("argv", [("keys", "list"), ("--port", "x"), ("checks", "list")])
def test_an_error_has_its_status_though_its_line_can_not_be_written(run, where, argv):
    with where() as nowhere:
        assert run(*argv, capture_output=False, stdout=nowhere, stderr=nowhere).returncode == 2


@pytest.mark.parametrize("argv", [("--version",), ("--help",), ("keys", "--help")])
def test_help_and_version_end_as_every_output_does(run, argv):
    with full_disk() as nowhere:
        ran = run(*argv, capture_output=False, stdout=nowhere, stderr=subprocess.PIPE)
    assert (ran.returncode, ran.stderr) == (2, "cardbeat: can't print: No space left on device\n")
    with gone_reader() as nowhere:
        ran = run(*argv, capture_output=False, stdout=nowhere, stderr=subprocess.PIPE)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("closed", [(0,), (2,), (0, 2), (0, 1, 2)])
def test_closed_streams_change_no_status_and_no_output(run, closed):
    def close():
        for number in closed:
            os.close(number)

    assert run("keys", "create").returncode == 0
    ran = run("keys", "list", before=close)
    assert (ran.returncode, ran.stderr, bool(ran.stdout)) == (2 if 1 in closed else 0, "", 1 not in closed)
    ran = run("keys", "revoke", "none", before=close)
    # What belongs to stderr goes nowhere else.
    assert (ran.returncode, ran.stdout, bool(ran.stderr)) == (2, "", 2 not in closed)


@pytest.mark.parametrize("name", ["a b%20c?mode=ro#x&y", "a\nb'\"\\ *~", "dätä-日", os.fsdecode(b"d\xff\xfe"), "-d"])
@pytest.mark.parametrize("variables", [{}, WITHOUT_UTF8], ids=["usual", "without UTF-8"])
def test_a_data_folder_may_have_any_name(run, tmp_path, name, variables):
    data = f"--data={name}"
    for argv in (("keys", "create", data), ("backup", "copy.db", data), ("restore", "copy.db", data), ("doctor", data)):
        ran = run(*argv, variables=variables)
        assert (ran.returncode, is_quiet(ran, argv)) == (0, True), argv
    assert {path.name for path in tmp_path.iterdir()} == {name, "copy.db"}


@pytest.mark.parametrize("argv", [("doctor",), ("keys", "create"), ("serve", "--port", "0"), ("backup", "copy.db")])
def test_a_working_folder_that_was_removed_is_a_clear_line(run, tmp_path, argv):
    def remove():
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()

    ran = run(*argv, before=remove)
    assert ran.returncode == (1 if argv == ("doctor",) else 2)
    assert "data folder cardbeat-data" in ran.stdout + ran.stderr or "no database at" in ran.stderr
    assert ran.stderr.count("\n") == (0 if argv == ("doctor",) else 1)


def limited(kind, number):
    return lambda: resource.setrlimit(kind, (number, number))


@pytest.mark.parametrize("number", [12, 23])
def test_too_few_open_files_are_one_line(run, number):
    ran = run("--port", "0", before=limited(resource.RLIMIT_NOFILE, number))
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.startswith(f"cardbeat: the system allows {number} open files, and serving needs 24; raise ")


def test_a_server_with_30_open_files_serves(serve, tmp_path):
    process = serve(before=limited(resource.RLIMIT_NOFILE, 30))
    wait_until(serves(tmp_path))
    process.terminate()
    assert process.wait(15) == 0


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV])
def test_a_server_that_crashes_leaves_no_core_file(serve, tmp_path, number):
    def allow():
        # A shell may let what it starts in the background ignore it.
        signal.signal(number, signal.SIG_DFL)
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    process = serve(before=allow)
    wait_until(serves(tmp_path))
    limits = Path(f"/proc/{process.pid}/limits").read_text()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert line.split()[4:6] == ["0", "0"]
    process.send_signal(number)
    assert process.wait(15) == -number
    assert {path.name for path in tmp_path.iterdir()} == {"cardbeat-data", "log"}


def test_a_terminal_that_is_closed_stops_the_server(serve, tmp_path):
    process = serve(before=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    wait_until(serves(tmp_path))
    process.send_signal(signal.SIGHUP)
    assert process.wait(15) == 0
    assert (tmp_path / "log").read_text().endswith(" INFO stopped\n")


def test_under_nohup_it_goes_on(serve, tmp_path):
    process = serve(before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until(serves(tmp_path))
    (ignored,) = re.findall(r"^SigIgn:\t(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    assert int(ignored, 16) & 1
    process.terminate()
    assert process.wait(15) == 0


def test_what_a_shell_starts_in_the_background_is_stopped_by_sigint(serve, tmp_path):
    process = serve(before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_until(serves(tmp_path))
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0
