import threading

import pytest

from cardbeat.heartbeat.report import report
from tests.kit.lists import each
from tests.kit.receiver import NO_CONTENT, Receiver, hang, say
from tests.kit.support import wait_until


def wait_for_the_end():
    """Until no report is under way."""
    wait_until(
        lambda: "report" not in set(each(threading.enumerate(), "name"))
    )


@pytest.mark.parametrize(
    ("data", "logged"),
    [
        (NO_CONTENT, ""),
        (b"HTTP/1.1 500 x\r\n\r\n", "500"),
        (b"", "failed"),
        (b"garbage\r\n", "failed"),
    ],
)
def test_the_url_is_requested_and_what_goes_wrong_is_logged(
    caplog, data, logged
):
    with Receiver(say(data)) as receiver:
        report(f"{receiver.url}?rid=1")
        wait_for_the_end()
    (request,) = receiver.received
    assert request.head == "GET /hook?rid=1 HTTP/1.1"
    assert request.headers["user-agent"].startswith("cardbeat/")
    assert logged in caplog.text
    assert bool(caplog.records) == bool(logged)


def test_no_sweep_waits_for_a_slow_monitor():
    with Receiver(hang) as receiver:
        report(receiver.url)
        wait_until(lambda: receiver.received)
    wait_for_the_end()
