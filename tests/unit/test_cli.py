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


@pytest.mark.parametrize("argv", [("revoke", b"\xff"), ("tier", b"\xff", "free")])
def test_an_id_that_is_no_text_is_that_of_no_key(run, argv):
    assert run("keys", "create").returncode == 0
    ran = run("keys", *argv)
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
