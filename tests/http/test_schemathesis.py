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
AMOUNT = ["-n", EXAMPLES] if EXAMPLES else ["-n", "8", "--generation-deterministic", "--seed", "1"]
TIERS = "[free]\nmax_checks = 1000000\nrenders_per_minute = 1000000\n"
TWO_USERS = """\
auth:
  - name: one
    loginEndpointAuth: &registration
      endpoint: /register
      verb: POST
      contentType: application/json
      payloadRaw: '{"email": "one@example.com"}'
      token:
        extractFrom: body
        extractSelector: /key
        sendIn: header
        sendName: Authorization
        sendTemplate: "Bearer {token}"
  - name: two
    loginEndpointAuth: *registration
"""
"""Each registers for a key of its own."""


@pytest.fixture
def schemathesis(start, tmp_path):
    """Runs schemathesis with a configuration and options against a server whose limits it does not meet."""
    (tmp_path / "tiers.toml").write_text(TIERS)
    # A public base URL, because schemathesis makes webhook URLs out of the ping URLs that it sees.
    public = ("--base-url", "https://cards.example.com")
    server = start("--tiers", "tiers.toml", "--register-per-minute", "1000000", *public)

    def run(config, *options):
        (tmp_path / "schemathesis.toml").write_text(config)
        where = (f"{server.url}/openapi.json", "--url", server.url)
        ran = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", *where, *options, *AMOUNT],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "CARDBEAT_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        print(ran.stdout)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "Traceback" not in server.log.read_text()

    return run


def test_every_answer_is_as_described(schemathesis):
    schemathesis(f"hooks = {str(HOOKS)!r}\n", "--checks", "all")


def test_no_key_reads_another_keys_checks(schemathesis, tmp_path):
    (tmp_path / "users.yaml").write_text(TWO_USERS)
    checks = "object_level_authorization,use_after_free,ensure_resource_availability,ignored_auth"
    config = '[auth.wfc]\npath = "users.yaml"\npeers = ["one", "two"]\n'
    schemathesis(
        config,
        "--include-path-regex",
        "^/checks",
        "--phases",
        "fuzzing,stateful",
        "--checks",
        checks,
    )
