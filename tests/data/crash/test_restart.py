"""A restart of the server loses no ping of a crontab line as the documentation has it."""

import signal
import subprocess
import time

from tests.kit.artifact import free_port
from tests.kit.client import ask, checks_key, new_check
from tests.kit.documentation import blocks

CRONTAB = blocks("README", "crontab")[0].partition("&& ")[2].split()
RESTARTS = 4
PAUSE_SECONDS = 0.02


def test_pings_of_crontab_lines_outlast_restarts(start):
    port = free_port()
    server = start(port=port)
    key = checks_key(server)
    check = new_check(server, key)
    command = [*CRONTAB[:-1], f"{server.url}/ping/{check['id']}"]
    pings = []
    for _ in range(RESTARTS):
        pings += ping_for(0.3, command)
        server.process.send_signal(signal.SIGTERM)
        while server.process.poll() is None:
            pings += ping_for(PAUSE_SECONDS, command)
        pings += ping_for(0.1, command)
        server = start(port=port)
    assert [ping.wait(60) for ping in pings] == [0] * len(pings)
    assert ask(server, "GET", f"/checks/{check['id']}", key=key).json[
        "check"
    ]["ping_count"] >= len(pings)


def ping_for(seconds, command):
    """Pings that are begun one after another for so long, none of them waited for."""
    pings, ends = [], time.monotonic() + seconds
    while time.monotonic() < ends:
        pings.append(subprocess.Popen(command))
        time.sleep(PAUSE_SECONDS)
    return pings
