"""Jobs as people run them, against the running artifact: a crontab line in a real shell, curl, and borgmatic."""

import json
import re
import subprocess
import sys
import venv

import pytest

from tests.artifact import ROOT, clean_environment
from tests.browser.api import Api
from tests.receiver import Receiver
from tests.support import wait_until

TEXTS = "".join(path.read_text() for path in (ROOT / "README.md", *(ROOT / "cardbeat").glob("docs/*.md")))
(CRONTAB,) = re.findall(r"^30 2 \* \* \* (/usr/local/bin/backup; curl .*/ping/ID/\$\?)$", TEXTS, re.MULTILINE)
PACKAGE = "borgmatic==2.1.10"
BORGMATIC = """
import logging, sys
from borgmatic.hooks.monitoring import healthchecks, monitor

hook, states = {"ping_url": sys.argv[1], "send_logs": True}, [monitor.State[name] for name in sys.argv[2:]]
logging.getLogger().setLevel(logging.DEBUG)
logging.getLogger().addHandler(logging.StreamHandler(sys.stderr))
healthchecks.initialize_monitor(hook, {}, "config.yaml", logging.INFO, False)
for _ in range(3000):
    logging.getLogger("borgmatic").info("a file that was saved, " + 40 * "x")
logging.getLogger().handlers[0].setLevel(logging.WARNING)
for state in states:
    healthchecks.ping_monitor(hook, {}, "config.yaml", state, logging.INFO, False)
healthchecks.destroy_monitor(hook, {}, logging.INFO, False)
"""


@pytest.fixture
def api(start):
    return Api(start("--sweep-seconds", "1", "--allow-private-webhooks").url)


@pytest.fixture
def heard(api):
    """A check of a job, and what its receiver has heard: type and reason."""
    with Receiver() as receiver:
        key = api.checks_key()
        check = api.check(key, webhook_url=receiver.url)
        yield check, lambda: [(it.json["type"], it.json["data"]["reason"]) for it in receiver.received]
    after = api("GET", f"checks/{check['id']}", key=key)["check"]
    assert (after["version"], after["updated_at"]) == (check["version"], check["updated_at"])


FAILED, RECOVERED = ("check.overdue", "failed"), ("check.recovered", "failed")


def test_a_crontab_line_tells_each_exit_status_of_its_job(heard, tmp_path):
    check, told = heard
    job = tmp_path / "backup"
    job.touch(mode=0o755)
    line = CRONTAB.replace("/usr/local/bin/backup", str(job)).replace(
        "http://127.0.0.1:8080/ping/ID", check["ping_url"]
    )
    for script, after in (
        ("exit 0", []),
        ("exit 3", [FAILED]),
        ("exit 255", [FAILED]),
        ("exit 0", [FAILED, RECOVERED]),
        ("kill -9 $$", [FAILED, RECOVERED, FAILED]),
    ):
        job.write_text(f"#!/bin/sh\n{script}\n")
        ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
        # cron would mail it. The shell's own words on a signal are not ours.
        assert (ran.returncode, ran.stdout, "curl" in ran.stderr) == (0, "", False)
        wait_until(lambda after=after: told() == after)


def test_a_job_of_healthchecks_says_by_curl_when_it_starts(heard, api):
    check, told = heard
    uuid = re.sub("(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", check["id"])
    for word in ("start", "log", "start?rid=3fbc1b6d-1b2b-4b60-8a8e-000000000000"):
        curl = ["curl", "-m", "10", "--retry", "5", "-fsS", f"{api.url}/ping/{uuid}/{word}"]
        ran = subprocess.run(curl, capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(ran.stdout)["status"] == "on_time"
    assert told() == []


@pytest.fixture(scope="module")
def borgmatic(tmp_path_factory):
    """Runs borgmatic's hook in an environment of its own; gives what it logs."""
    folder = tmp_path_factory.mktemp("borgmatic")
    venv.create(folder, symlinks=True)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "-q", PACKAGE]
    if subprocess.run(pip, capture_output=True, check=False).returncode:
        pytest.skip("pip can't install borgmatic")

    def run(*argv):
        command = [python, "-c", BORGMATIC, *argv]
        ran = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=60, check=True)
        return ran.stderr.replace("\n", " ")

    return run


def test_borgmatic_tells_start_end_and_failure_with_its_logs(heard, borgmatic):
    check, told = heard
    assert "Healthchecks error" not in borgmatic(check["ping_url"], "START", "LOG", "FINISH")
    assert told() == []
    borgmatic(check["ping_url"], "START", "FAIL")
    wait_until(lambda: told() == [FAILED])
    borgmatic(check["ping_url"], "START", "LOG", "FINISH")
    wait_until(lambda: told() == [FAILED, RECOVERED])
    # What it says if a ping is refused, so that its silence above means something.
    assert "Healthchecks error: 404" in borgmatic(check["ping_url"][:-1], "FINISH")
