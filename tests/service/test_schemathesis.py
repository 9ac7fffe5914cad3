"""The running artifact held against its description by schemathesis.

`CARDBEAT_EXAMPLES=200` makes it thousands of cases, and random ones.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
EXAMPLES = os.environ.get("CARDBEAT_EXAMPLES")
AMOUNT = (
    ["-n", EXAMPLES]
    if EXAMPLES
    else ["-n", "8", "--generation-deterministic", "--seed", "1"]
)
TIERS = "[free]\nmax_checks = 1000000\nrenders_per_minute = 1000000\n"


def test_every_answer_is_as_described(start, tmp_path):
    """The server has limits that schemathesis does not meet."""
    (tmp_path / "tiers.toml").write_text(TIERS)
    # A public base URL, because schemathesis makes webhook URLs out of the ping URLs that it sees.
    public = ("--base-url", "https://cards.example.com")
    server = start(
        "--tiers",
        "tiers.toml",
        "--register-per-minute",
        "1000000",
        *public,
    )
    (tmp_path / "schemathesis.toml").write_text(
        f"hooks = {str(HOOKS)!r}\n"
    )
    where = (
        f"{server.url}/openapi.json",
        "--url",
        server.url,
        "--checks",
        "all",
    )
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            *where,
            *AMOUNT,
        ],
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "CARDBEAT_URL": server.url,
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Traceback" not in server.log.read_text()
