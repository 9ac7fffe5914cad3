"""A request as a line of the log."""

import logging
import threading

import pytest

from cardbeat.web.access import AccessLog, access_line
from cardbeat.web.message import Answered, Request, Response


def line_of(target: str, pattern: str | None = None, seconds: float = 0.0012) -> str:
    request = Request("GET", target, "-", client="192.0.2.1", id="a-1", pattern=pattern)
    return access_line(request, Response(200, b"12345", {"X-Cache": "HIT"}), seconds)


def test_a_line_of_the_log_tells_all_but_secrets() -> None:
    assert line_of("/og?key=sk_1", "/og") == "GET /og? 200 5 1.2ms 192.0.2.1 HIT a-1"
    assert line_of("/ping/abcdefghijklmnop", "/ping/{id}") == "GET /ping/{id} 200 5 1.2ms 192.0.2.1 HIT a-1"
    assert line_of("/x/sk_abcdefghijkl/y") == "GET /x/sk_a.../y 200 5 1.2ms 192.0.2.1 HIT a-1"
    assert line_of("/\x85\xe2") == r"GET /\x85\xe2 200 5 1.2ms 192.0.2.1 HIT a-1"
    assert line_of("/og", "/og", 1.5).endswith(" a-1 slow")


def test_a_line_of_the_log_stays_short_however_long_the_path() -> None:
    assert len(line_of("/abc" * 2000)) < 300


def answered(request_id: str = "-") -> Answered:
    return Request("GET", "/", "/", id=request_id), Response(), 0.001


def test_lines_that_stderr_is_too_slow_for_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    access = AccessLog()
    for count in (19_999, 3, 1):
        access.note([answered()] * count)
    with caplog.at_level("INFO", "cardbeat.access"):
        access.start()
        access.stop(seconds=60)
    written = caplog.records[0].getMessage().splitlines()
    assert len(written) == 20_001
    assert written[19_999].endswith("GET / 200 0 1.0ms 127.0.0.1 - -")
    assert written[20_000].endswith(" 3 lines were dropped: stderr is too slow")


def test_good_answers_of_quiet_routes_have_no_line(caplog: pytest.LogCaptureFixture) -> None:
    access = AccessLog()
    access.quiet_patterns = frozenset(("/healthz",))
    health, other = (Request("GET", path, path, pattern=path) for path in ("/healthz", "/other"))
    answers = [(health, Response(200), 0.001), (health, Response(503), 0.001), (other, Response(200), 0.001)]
    access.note(answers[:1])
    access.note(answers)
    with caplog.at_level("INFO", "cardbeat.access"):
        access.start()
        access.stop(seconds=60)
    (written,) = caplog.records
    assert [" ".join(line.split()[2:5]) for line in written.getMessage().splitlines()] == [
        "GET /healthz 503",
        "GET /other 200",
    ]


def test_a_stop_writes_what_came_while_a_batch_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    access = AccessLog()
    written = []
    begun, go_on = threading.Event(), threading.Event()

    def write(_form: str, _now: str, lines: str) -> None:
        begun.set()
        assert go_on.wait(10)
        written.append(lines)

    monkeypatch.setattr(logging.getLogger("cardbeat.access"), "info", write)
    access.start()
    access.note([answered("first")])
    assert begun.wait(10)
    access.note([answered("last")])
    access.stop(seconds=0)
    go_on.set()
    access.stop(seconds=10)
    assert [line.rpartition(" ")[2] for line in written] == ["first", "last"]
