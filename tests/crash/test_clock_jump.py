"""The wall clock of the machine is set by an hour while the artifact runs."""

from datetime import datetime

import pytest

from tests.crash.client import ask, checks_key, new_check
from tests.support import wait_until

HOUR = 3600


def deadline(check):
    return datetime.fromisoformat(check["deadline_at"]).timestamp()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_an_hours_jump_alerts_nobody_wrongly_and_loses_nobody(start, faults, jump):
    faults.set_clock(0)
    server = start("--data", "data", "--sweep-seconds", "0.5")
    key = checks_key(server)
    steady, silent = new_check(server, key, period_seconds=600), new_check(server, key, period_seconds=5)

    def read(check):
        return ask(server, "GET", f"/checks/{check['id']}", key=key).json["check"]

    ask(server, "GET", f"/ping/{steady['id']}")
    before = deadline(read(steady))
    wait_until(lambda: ask(server, "GET", "/healthz").status == 200)
    faults.set_clock(jump)
    wait_until(lambda: abs(deadline(read(steady)) - before - jump) < 60)
    wait_until(lambda: read(silent)["status"] == "overdue")
    assert read(steady)["status"] == "on_time"
