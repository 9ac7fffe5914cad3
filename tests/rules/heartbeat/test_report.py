import threading

import pytest

from cardbeat.heartbeat.report import Report
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
        Report(f"{receiver.url}?rid=1")()
        wait_for_the_end()
    (request,) = receiver.received
    assert request.head == "GET /hook?rid=1 HTTP/1.1"
    assert request.headers["user-agent"].startswith("cardbeat/")
    assert logged in caplog.text
    assert bool(caplog.records) == bool(logged)


def test_a_slow_monitor_is_not_asked_again_meanwhile(caplog):
    with Receiver(hang) as receiver:
        report = Report(receiver.url)
        report()
        wait_until(lambda: receiver.received)
        report()
    wait_for_the_end()
    assert "still under way" in caplog.text
    assert receiver.connections == 1


def test_a_report_that_can_not_be_begun_is_not_the_last(
    caplog, monkeypatch
):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with Receiver() as receiver:
        report = Report(receiver.url)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            report()
        assert "can't start new thread" in caplog.text
        report()
        wait_for_the_end()
    assert receiver.connections == 1
