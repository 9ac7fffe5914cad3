import io
import logging
import re
import sys
import threading
from unittest.mock import Mock

import pytest

from cardbeat.log import SELDOM_SECONDS, BatchHandler, Seldom
from tests.kit.support import FakeClock, wait_until


class Stderr(io.StringIO):
    """Takes nothing before it is let go."""

    def __init__(self):
        super().__init__()
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.writes = []

    def write(self, text):
        self.asked.set()
        assert self.let_go.wait(60)
        self.writes.append(text)
        return len(text)

    @property
    def lines(self):
        return "".join(self.writes).splitlines()


@pytest.fixture
def stderr():
    return Stderr()


def log(handler, text, **values):
    handler.handle(logging.makeLogRecord({"msg": text, **values}))


def test_who_logs_does_not_wait_and_lines_beyond_the_limit_are_counted(
    stderr,
):
    handler = BatchHandler(stderr, most_lines=4)
    log(handler, "first")
    assert stderr.asked.wait(60)
    handler.put(["a", "b", "c"])
    for text in ("kept", "dropped", "dropped"):
        log(handler, text)
    handler.put(["dropped"] * 3)
    assert not handler.finish(0)
    stderr.let_go.set()
    assert handler.finish(60)
    *lines, last = stderr.lines
    assert lines == ["first", "a", "b", "c", "kept"]
    assert last.endswith(
        " WARNING 5 lines were dropped: stderr is too slow"
    )
    handler.close()


def test_lines_are_written_soon_and_in_order(stderr):
    stderr.let_go.set()
    handler = BatchHandler(stderr)
    for number in range(3):
        handler.put([f"{number}a", f"{number}b"])
        log(handler, f"{number}c")
    wait_until(
        lambda: (
            stderr.lines
            == ["0a", "0b", "0c", "1a", "1b", "1c", "2a", "2b", "2c"]
        )
    )
    handler.put(["later"])
    wait_until(lambda: stderr.lines[-1] == "later")
    handler.close()


def test_a_stderr_that_is_gone_ends_nothing():
    gone = io.StringIO()
    gone.close()
    handler = BatchHandler(gone)
    log(handler, "lost")
    assert handler.finish(60)
    handler.close()


def test_a_record_that_can_not_be_shown_is_written_as_it_is(
    stderr, monkeypatch
):
    """A replaced artifact has no lines for a trace."""
    for name in ("getline", "getlines", "checkcache"):
        monkeypatch.setattr(
            f"linecache.{name}", Mock(side_effect=EOFError)
        )
    stderr.let_go.set()
    handler = BatchHandler(stderr)
    log(handler, "%d", args=("no number",), levelname="INFO")
    try:
        raise ValueError("a reason")
    except ValueError:
        log(handler, "a request failed", exc_info=sys.exc_info())
    assert handler.finish(60)
    unformatted, untraced = stderr.lines
    assert unformatted.startswith("INFO %d ('no number',)")
    assert re.search(
        r"a request failed.*ValueError\('a reason'\)", untraced
    )


def test_trouble_is_told_once_in_a_while(caplog):
    clock = FakeClock(5000)
    seldom = Seldom(logging.getLogger("cardbeat.seldom"), clock)
    for _ in range(3):
        seldom.error("full")
    seldom.error("locked")
    clock.advance(SELDOM_SECONDS)
    seldom.error("full")
    assert caplog.messages == ["full", "locked", "full"]
