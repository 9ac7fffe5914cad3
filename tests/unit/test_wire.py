"""A response as bytes, and a request as a line of the log."""

import logging
import threading

import pytest

from cardbeat.web.access import AccessLog, access_line
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.wire import response_head


def on_the_wire(response: Response) -> bytes:
    return response_head(response, "a-1", "Sun, 06 Nov 1994 08:49:37 GMT", keep_alive=True)


def test_a_response_has_its_length_and_one_empty_line() -> None:
    assert on_the_wire(Response(200, b"body", {"ETag": '"1"'})) == (
        b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n"
        b"X-Request-Id: a-1\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        b'ETag: "1"\r\nContent-Length: 4\r\n\r\n'
    )


def test_a_response_may_be_kept_where_it_says_so() -> None:
    head = on_the_wire(Response(200, b"", {"Cache-Control": "public"}))
    assert head.count(b"Cache-Control") == 1
    assert b"Cache-Control: public\r\n" in head


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_that_can_have_no_body_states_no_length(status: int) -> None:
    assert b"Content-Length" not in on_the_wire(Response(status))


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "\r\n\r\n"])
def test_a_header_can_not_break_out_of_its_line(value: str) -> None:
    for headers in ({"Location": value}, {value: "a"}):
        with pytest.raises(ValueError, match="line end"):
            on_the_wire(Response(200, b"", headers))


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
        access.stop(patience_seconds=60)
    written = caplog.records[0].getMessage().splitlines()
    assert len(written) == 20_001
    assert written[19_999].endswith("GET / 200 0 1.0ms 127.0.0.1 - -")
    assert written[20_000].endswith(" 3 lines were dropped: stderr is too slow")


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
    access.stop(patience_seconds=0)
    go_on.set()
    access.stop(patience_seconds=10)
    assert [line.rpartition(" ")[2] for line in written] == ["first", "last"]
