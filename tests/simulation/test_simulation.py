"""A simulated day with faults of every kind, from other seeds each time; a failure prints its seed and its replay."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def simulate(*arguments):
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


def test_a_day_passes_without_a_violation(capsys):
    run = simulate("--day")
    # Also where it passes: which seeds they were is to be known afterwards.
    with capsys.disabled():
        print("", *(line for line in run.stdout.splitlines() if line.startswith("seed ")), sep="\n")
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_seed_replays_exactly():
    first, again = (
        json.loads(simulate("--seed", "7", "--sweeps", "150", "--set", "sweep_seconds=60").stdout.splitlines()[-1])
        for _ in range(2)
    )
    assert first["hash"] == again["hash"]
    assert first["counts"] == again["counts"]


@pytest.mark.parametrize("bug", ["guard", "transaction", "wake-up"])
def test_a_bug_that_is_put_back_is_found(bug):
    run = simulate("--plants", bug)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
