"""Jobs as people run them, against the artifact: lines of crontabs in real shells."""

import os
import re
import shutil
import urllib.request

import pytest

from tests.kit.artifact import clean_environment, ran
from tests.kit.client import checks_key, new_check
from tests.kit.documentation import block
from tests.kit.lists import each
from tests.kit.receiver import Receiver
from tests.kit.support import wait_until

CRONTAB = block("checks", "crontab", "/$?").removeprefix("30 2 * * * ")
URL = "http://127.0.0.1:8080/ping/ID"
FAILED = ("check.overdue", "failed")
RECOVERED = ("check.recovered", "failed")


class Job:
    """A check that a job pings, and its receiver."""

    def __init__(self, server, receiver):
        self._receiver = receiver
        check = new_check(
            server, checks_key(server), webhook_url=receiver.url
        )
        self.ping_url = check["ping_url"]

    def waits_for(self, *alerts):
        """Until these have been heard, and no other ones: type and reason."""

        def told():
            heard = each(self._receiver.received, "json")
            return [
                (alert["type"], alert["data"]["reason"])
                for alert in heard
            ]

        wait_until(lambda: told() == [*alerts])

    def asks(self, end):
        urllib.request.urlopen(self.ping_url + end, timeout=60).close()


@pytest.fixture
def job(start):
    server = start("--sweep-seconds", "1", "--allow-private-webhooks")
    with Receiver() as receiver:
        yield Job(server, receiver)


def test_a_crontab_line_tells_each_exit_status_of_its_job(job, tmp_path):
    script = tmp_path / "backup"
    script.touch(mode=0o755)
    line = CRONTAB.replace("/usr/local/bin/backup", str(script)).replace(
        URL, job.ping_url
    )
    for text, alerts in (
        ("exit 0", []),
        ("exit 3", [FAILED]),
        ("exit 255", [FAILED]),
        ("exit 0", [FAILED, RECOVERED]),
        ("kill -9 $$", [FAILED, RECOVERED, FAILED]),
    ):
        script.write_text(f"#!/bin/sh\n{text}\n")
        done = ran("/bin/sh", "-c", line)
        # cron would mail it. The shell's own words on a signal are not ours.
        assert done.returncode == 0
        assert done.stdout == ""
        assert "curl" not in done.stderr
        job.waits_for(*alerts)


def test_busybox_pings(job, tmp_path):
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not here")
    for program in ("wget", "timeout"):
        (tmp_path / program).symlink_to(busybox)
    job.asks("/fail")
    job.waits_for(FAILED)
    line = block("checks", "busybox").replace(URL, job.ping_url)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = ran("/bin/sh", "-c", line, env=clean_environment(PATH=path))
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr == ""
    job.waits_for(FAILED, RECOVERED)


def test_powershell_asks_for_what_tells_the_exit_status(job):
    """No PowerShell is here: only the address that it asks for is tried."""
    (address,) = re.findall(r'"(http.+?)"', block("checks", "powershell"))
    end = address.removeprefix(URL)
    job.asks(end.replace("$status", "-1073741510"))
    job.waits_for(FAILED)
