"""A request as a line of the log."""

import re
from collections.abc import Sequence

import pytest

from cardbeat.log import Kind
from cardbeat.web.access import REFUSED_EACH, AccessLog, access_line
from cardbeat.web.message import Request, Response


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


def test_answers_have_a_line_each_with_its_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "cardbeat.access")
    AccessLog().note([(Request("GET", "/", "/"), Response(), 0.001)] * 2)
    lines = caplog.messages[0].splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GET / 200 0 1.0ms 127.0.0.1 - -", line)


def test_of_refused_requests_each_network_has_some_lines_a_second_and_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[str] = []
    uncounted: list[str] = []

    def put(kind: Kind, lines: Sequence[str], more: int = 0) -> None:
        written.extend(lines)
        uncounted.extend([kind.more % more] * bool(more))

    def note(status: int, network: str, count: int) -> None:
        request = Request("GET", "/x", "/x", client=network, network=network)
        access.note([(request, Response(status), 0.001)] * count)

    access, second = AccessLog(put), 1_700_000_000.0
    monkeypatch.setattr("cardbeat.web.access.time.time", lambda: second)
    note(404, "192.0.2.1", REFUSED_EACH + 7)
    note(400, "192.0.2.1", 1)
    assert len(written) == REFUSED_EACH
    assert [line.split()[0] for line in uncounted] == ["7", "1"]
    note(200, "192.0.2.1", 2 * REFUSED_EACH)
    note(404, "192.0.2.2", REFUSED_EACH)
    assert len(written) == 4 * REFUSED_EACH
    second += 1
    note(404, "192.0.2.1", 1)
    assert len(written) == 4 * REFUSED_EACH + 1
    assert len(uncounted) == 2


def test_good_answers_of_quiet_routes_have_no_line() -> None:
    written: list[str] = []
    access = AccessLog(lambda _kind, lines, more=0: written.extend(lines), {"/healthz"})
    health, other = (Request("GET", path, path, pattern=path) for path in ("/healthz", "/other"))
    answers = [(health, Response(200), 0.001), (health, Response(503), 0.001), (other, Response(200), 0.001)]
    access.note(answers[:1])
    assert not written
    access.note(answers)
    assert [" ".join(line.split()[2:5]) for line in written] == ["GET /healthz 503", "GET /other 200"]
