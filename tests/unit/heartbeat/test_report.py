import contextlib
import socket
import threading

import pytest

from cardbeat.heartbeat.report import Report
from tests.support import wait_until


@pytest.fixture
def monitor():
    """A monitor that answers each connection with `answer(connection)`; gives its URL and the requests it saw."""
    with contextlib.ExitStack() as undo:
        listener = undo.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(10)
        requests = []

        def serve(answer, connections):
            with contextlib.suppress(OSError):
                for _ in range(connections):
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(10)
                        requests.append(connection.recv(4096))
                        answer(connection)

        def start(answer, connections=1):
            thread = threading.Thread(target=serve, args=(answer, connections))
            thread.start()
            undo.callback(thread.join)
            return f"http://127.0.0.1:{listener.getsockname()[1]}/ping/abc?rid=1", requests

        yield start


def say(text):
    return lambda connection: connection.sendall(text)


def ended(report):
    """Report, and wait until that is done."""
    report()
    wait_until(lambda: "report" not in {thread.name for thread in threading.enumerate()})


@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        (b"HTTP/1.0 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 500 x\r\n\r\n", "500"),
        (b"", "failed"),
        (b"garbage\r\n", "failed"),
    ],
)
def test_the_url_is_requested_and_what_goes_wrong_is_logged(monitor, caplog, answer, logged):
    url, requests = monitor(say(answer))
    ended(Report(url))
    assert requests[0].startswith(b"GET /ping/abc?rid=1 HTTP/1.1\r\n")
    assert b"User-Agent: cardbeat/" in requests[0]
    assert logged in caplog.text
    assert bool(caplog.records) == bool(logged)


def test_a_slow_monitor_is_not_asked_again_meanwhile(monitor, caplog):
    done = threading.Event()
    url, requests = monitor(lambda _: done.wait(10))
    report = Report(url)
    report()
    report()
    done.set()
    wait_until(lambda: "report" not in {thread.name for thread in threading.enumerate()})
    assert "still under way" in caplog.text
    assert len(requests) == 1


def test_a_report_that_can_not_be_begun_is_not_the_last(monitor, caplog, monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    url, requests = monitor(say(b"HTTP/1.0 204 No Content\r\n\r\n"))
    report = Report(url)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        report()
    assert "can't start new thread" in caplog.text
    ended(report)
    assert len(requests) == 1
