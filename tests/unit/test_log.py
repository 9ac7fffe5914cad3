import logging
import threading

import pytest

from cardbeat.log import QUEUED_RECORDS, QueuedHandler


class Held(logging.Handler):
    """Writes nothing before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert self.let_go.wait(10)
        self.written.append(record.getMessage())


def test_who_logs_does_not_wait_and_what_waits_is_bounded() -> None:
    held = Held()
    handler = QueuedHandler(held)
    for number in range(QUEUED_RECORDS + 50):
        handler.handle(logging.makeLogRecord({"msg": str(number)}))
    assert not handler.finish(0)
    held.let_go.set()
    assert handler.finish(10)
    assert not handler._stalled
    assert QUEUED_RECORDS <= len(held.written) <= QUEUED_RECORDS + 1
    assert held.written[:3] == ["0", "1", "2"]
    handler.close()


def test_what_is_logged_is_written_when_the_call_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cardbeat.log.STALL_SECONDS", 10)
    held = Held()
    held.let_go.set()
    handler = QueuedHandler(held)
    for number in range(300):
        handler.handle(logging.makeLogRecord({"msg": str(number)}))
        assert len(held.written) == number + 1
    handler.close()
