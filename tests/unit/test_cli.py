"""Commands run as an operator runs them, with odd arguments and an odd place to print to."""

import contextlib
import os
import subprocess
import sys

import pytest

from tests.artifact import ROOT, clean_environment


@pytest.fixture
def run(tmp_path):
    """Runs a command in the test's folder."""

    def run_command(*argv, environment=None, stdout=subprocess.PIPE):
        return subprocess.run(
            [sys.executable, "-m", "cardbeat", *argv],
            cwd=tmp_path,
            env={**clean_environment(), "PYTHONPATH": str(ROOT), **(environment or {})},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    return run_command


@pytest.fixture
def listed(run):
    """What `keys list` prints now."""
    return lambda: run("keys", "list").stdout


@contextlib.contextmanager
def full_disk():
    with open("/dev/full", "w") as file:
        yield file


@contextlib.contextmanager
def gone_reader():
    """A pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as file:
        yield file


@pytest.mark.parametrize("key_id", ["key_none", b"\xff"])
@pytest.mark.parametrize("action", [("revoke",), ("tier", "free")])
def test_an_id_of_no_key_is_one_line_and_status_2(run, action, key_id):
    assert run("keys", "create").returncode == 0
    ran = run("keys", action[0], key_id, *action[1:])
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "no key with the id" in ran.stderr


def test_keys_are_listed_in_any_encoding(run, listed):
    assert run("keys", "create", "--email", "zoë@example.com").returncode == 0
    ran = run("keys", "list", environment={"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == listed().replace("ë", "\\xeb")


@pytest.mark.parametrize("command", [("keys", "list"), ("doctor",)])
def test_a_reader_that_has_seen_enough_ends_a_command_quietly(run, command):
    assert run("keys", "create").returncode == 0
    with gone_reader() as stdout:
        ran = run(*command, stdout=stdout)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("command", [("keys", "list"), ("doctor",)])
def test_what_cannot_be_printed_is_one_line_and_status_2(run, command):
    assert run("keys", "create").returncode == 0
    with full_disk() as stdout:
        ran = run(*command, stdout=stdout)
    assert (ran.returncode, ran.stderr) == (2, "cardbeat: can't print: No space left on device\n")


@pytest.mark.parametrize("nowhere", [full_disk, gone_reader])
def test_a_key_that_cannot_be_shown_is_not_left_behind(run, listed, nowhere):
    assert run("keys", "create").returncode == 0
    before = listed()
    with nowhere() as stdout:
        ran = run("keys", "create", "--email", "ops@example.com", stdout=stdout)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "can't print" in ran.stderr
    assert listed() == before


@pytest.mark.parametrize(
    "command",
    [
        ("keys", "list"),
        ("keys", "revoke", "key_1"),
        ("keys", "tier", "key_1", "free"),
        ("backup", "copy.db"),
    ],
)
@pytest.mark.parametrize("data", ["none", "empty", "x" * 300])
def test_only_serving_and_creating_a_key_make_a_database(run, tmp_path, command, data):
    (tmp_path / "empty").mkdir()
    ran = run(*command, "--data", data)
    assert (ran.returncode, ran.stderr) == (2, f"cardbeat: there is no database at {data}/cardbeat.db\n")
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_doctor_makes_nothing_either(run, tmp_path):
    ran = run("doctor", "--data", "none")
    assert ran.returncode == 0
    assert "no database in none yet" in ran.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--email", "--tier"])
@pytest.mark.parametrize("action", [("list",), ("revoke", "key_1"), ("tier", "key_1", "free")])
def test_an_option_of_a_key_to_create_is_refused_elsewhere(run, action, option):
    ran = run("keys", *action, option, "free")
    assert (ran.returncode, ran.stderr) == (2, f"cardbeat: keys {action[0]} takes no {option} (see --help)\n")


@pytest.mark.parametrize("action", [("create", "--tier", ""), ("tier", "key_1", "")])
def test_a_tier_without_a_name_is_none(run, action):
    ran = run("keys", *action)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "no tier ''" in ran.stderr


SIGTERM_IN_A_CALLBACK = """
import os, signal, sys
from cardbeat import cli, service

class Service(service.Service):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        Thing()

class Thing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

service.Service = Service
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_stop_during_the_start_is_not_lost_where_no_exception_comes_out(tmp_path):
    command = [sys.executable, "-c", SIGTERM_IN_A_CALLBACK, "--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" in done.stderr
