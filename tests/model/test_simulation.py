"""A simulated day with faults of every kind; a failure prints its seed and its replay."""

import json
import subprocess
import sys

import pytest

from tests.kit.artifact import ROOT

QUICK = """guard transaction order revocation wake-up reminder snooze twice credit
credit-twice asked synced"""
"""Plants that are found soon."""


def simulate(*arguments):
    command = [sys.executable, "-m", "tests.model", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_a_day_passes_without_a_violation():
    # The same seeds each time. New seeds are for `--day` and `--years` by hand.
    day = simulate("--day", "--luck", "29")
    assert day.returncode == 0, day.stdout + day.stderr


def test_a_seed_replays_exactly():
    arguments = (
        "--seed",
        "7",
        "--sweeps",
        "150",
        "--set",
        "sweep_seconds=60",
    )
    results = [
        json.loads(simulate(*arguments).stdout.splitlines()[-1])
        for _ in range(2)
    ]
    first, again = results
    assert first["hash"] == again["hash"]
    assert first["counts"] == again["counts"]


@pytest.mark.parametrize("bug", QUICK.split())
def test_a_bug_that_is_put_back_is_found(bug):
    found = simulate("--plants", bug, "--luck", "29")
    print(found.stdout)
    assert found.returncode == 0, found.stdout + found.stderr
