"""A response's head as bytes, and what is done behind an answer."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cardbeat.concurrency.later import Workers
from cardbeat.web.exchange import Exchange
from cardbeat.web.message import Holder, Request, Response, header_lines
from cardbeat.web.router import Route, Router


def head_of(response: Response) -> bytes:
    head, given = Exchange(Router(), Workers(0), ()).head_of(
        Request("GET", "/", "/", id="a-1"), response, "Sun, 06 Nov 1994 08:49:37 GMT", keep_alive=True
    )
    assert given is response
    return head


def test_a_response_has_its_length_and_one_empty_line() -> None:
    assert head_of(Response(200, b"body", {"ETag": '"1"'})) == (
        b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n"
        b"X-Request-Id: a-1\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        b'ETag: "1"\r\nContent-Length: 4\r\n\r\n'
    )


def test_a_response_may_be_kept_where_it_says_so() -> None:
    head = head_of(Response(200, b"", {"Cache-Control": "public"}))
    assert head.count(b"Cache-Control") == 1
    assert b"Cache-Control: public\r\n" in head


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_that_can_have_no_body_states_no_length(status: int) -> None:
    assert b"Content-Length" not in head_of(Response(status))


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "\r\n\r\n"])
def test_a_header_can_not_break_out_of_its_line(value: str) -> None:
    for headers in ({"Location": value}, {value: "a"}):
        with pytest.raises(ValueError, match="line end"):
            header_lines(Response(200, b"", headers))


def test_an_answer_that_can_not_be_written_is_replaced_by_a_500() -> None:
    exchange = Exchange(Router(), Workers(0), ())
    request = Request("GET", "/", "/")
    head, given = exchange.head_of(request, Response(200, b"", {"Location": "\n"}), "-", keep_alive=True)
    assert (given.status, head.split(b"\r\n")[0]) == (500, b"HTTP/1.1 500 Internal Server Error")


@dataclass(frozen=True)
class Somebody:
    id: str = "key_1"


class RenewingGuard:
    """Lets everybody in, and has a look taken soon."""

    def __init__(self) -> None:
        self.looked = threading.Event()

    def find(self, request: Request, work_soon: Callable[[Callable[[], None]], None]) -> Holder | None:
        work_soon(self.looked.set)
        return Somebody()

    def look_up(self, request: Request) -> Holder:
        return Somebody()

    def name_of(self, request: Request) -> str | None:
        return None


def test_what_a_guard_wants_done_soon_is_done_behind_the_answer() -> None:
    guard, workers, answer = RenewingGuard(), Workers(1), Response(204)
    router = Router([Route("GET", "/", lambda _: answer, in_loop=True, guard=guard)])
    exchange, request = Exchange(router, workers, ()), Request("GET", "/", "/")
    assert exchange.serve(request) is answer
    assert not guard.looked.is_set()
    exchange.answered.append((request, answer, 0.0))
    exchange.tell()
    assert guard.looked.wait(10)
    workers.stop()
