import io
import logging
import sys
import threading

import pytest

from cardbeat.log import RECORDS, SELDOM_SECONDS, SENTENCES, BatchHandler, Kind, Seldom
from tests.support import FakeClock, wait_until

FEW = Kind(3, "%d more")


class Stderr(io.StringIO):
    """Takes nothing before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.asked.set()
        assert self.let_go.wait(10)
        self.writes.append(text)
        return len(text)

    @property
    def lines(self) -> list[str]:
        return "".join(self.writes).splitlines()


@pytest.fixture
def stderr() -> Stderr:
    return Stderr()


def log(handler: BatchHandler, text: str, **values: object) -> None:
    handler.handle(logging.makeLogRecord({"msg": text, **values}))


def test_who_logs_does_not_wait_and_what_waits_is_bounded(stderr: Stderr) -> None:
    handler = BatchHandler(stderr)
    log(handler, "first")
    assert stderr.asked.wait(10)
    for number in range(RECORDS.most + 50):
        log(handler, str(number))
    assert not handler.finish(0)
    stderr.let_go.set()
    assert handler.finish(10)
    assert stderr.lines == [
        "first",
        *map(str, range(RECORDS.most)),
        "50 lines were dropped: stderr is too slow",
    ]
    handler.close()


def test_the_same_trouble_is_told_at_once_and_then_once_in_a_while_with_how_often_it_came(caplog) -> None:
    clock = FakeClock(5000)
    seldom = Seldom(logging.getLogger("cardbeat.seldom"), clock)
    for _ in range(3):
        seldom.error("full")
    seldom.error("locked")
    clock.advance(SELDOM_SECONDS)
    for _ in range(2):
        seldom.error("full")
    clock.advance(SELDOM_SECONDS)
    seldom.error("locked")
    assert [record.getMessage() for record in caplog.records] == [
        "full",
        "locked",
        "full (and 2 times since the last such line)",
        "locked",
    ]


def test_sentences_that_are_all_different_are_told_and_few_are_remembered(caplog) -> None:
    seldom = Seldom(logging.getLogger("cardbeat.seldom"), FakeClock(5000))
    for _ in range(2):
        for number in range(SENTENCES + 1):
            seldom.error(str(number))
    assert len(caplog.records) == 2 * (SENTENCES + 1)


def test_a_record_is_written_at_once_and_lines_of_a_kind_with_it(stderr: Stderr) -> None:
    stderr.let_go.set()
    handler = BatchHandler(stderr, batch_seconds=3600)
    for number in range(5):
        log(handler, f"of a kind {number}", kind=FEW)
    handler.put(FEW, ["a line", "another"])
    log(handler, "a record")
    expected = ["of a kind 0\nof a kind 1\nof a kind 2\na record\n4 more\n"]
    wait_until(lambda: stderr.writes == expected)
    handler.close()


def test_a_record_with_a_number_of_lines_counts_them_alone(stderr: Stderr) -> None:
    stderr.let_go.set()
    handler = BatchHandler(stderr, batch_seconds=3600)
    log(handler, "first", kind=FEW)
    log(handler, "%d more", args=(7,), kind=FEW, more=7)
    log(handler, "a record")
    wait_until(lambda: stderr.writes == ["first\na record\n7 more\n"])
    handler.close()


def test_lines_of_a_kind_are_gathered_and_each_batch_has_room_for_some(stderr: Stderr) -> None:
    stderr.let_go.set()
    handler = BatchHandler(stderr)
    for _ in range(2):
        stderr.writes.clear()
        handler.put(FEW, ["1", "2"])
        handler.put(FEW, ["3", "4"])
        wait_until(lambda: stderr.lines == ["1", "2", "3", "1 more"])
    handler.close()


def test_a_stderr_that_is_gone_ends_nothing() -> None:
    gone = io.StringIO()
    gone.close()
    handler = BatchHandler(gone)
    log(handler, "lost")
    assert handler.finish(10)
    handler.close()


def test_a_record_that_can_not_be_formatted_does_not_disturb_who_logs(
    stderr: Stderr, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    stderr.let_go.set()
    handler = BatchHandler(stderr)
    log(handler, "%d", args=("no number",))
    log(handler, "next")
    wait_until(lambda: stderr.lines == ["next"])
    handler.close()


def test_a_record_whose_trace_cannot_be_shown_is_written_with_its_error(stderr: Stderr, monkeypatch) -> None:
    def no_line(*_args: object) -> str:
        raise EOFError("the zipapp is shorter now")

    monkeypatch.setattr("linecache.getline", no_line)
    monkeypatch.setattr("linecache.getlines", no_line)
    monkeypatch.setattr("linecache.checkcache", no_line)
    stderr.let_go.set()
    handler = BatchHandler(stderr)
    logger = logging.getLogger("cardbeat.shorter")
    try:
        raise ValueError("a reason")
    except ValueError:
        record = logger.makeRecord("cardbeat", logging.ERROR, "", 0, "a request failed", (), sys.exc_info())
        handler.handle(record)
    assert handler.finish(10)
    assert "a request failed: ValueError('a reason')" in "".join(stderr.writes)
