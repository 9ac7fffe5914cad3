"""Stop signals for a command that works for long: it ends where nothing is half done, with one line."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from cardbeat.errors import StartupError
from cardbeat.system import STOP_SIGNALS

RequireGoing = Callable[[], None]
"""Raises `StartupError` once a stop was asked for. To be called again and again, where all can still be undone."""


def always_going() -> None:
    """For work that nothing stops."""


@contextlib.contextmanager
def stop_signals_noted(outcome: str) -> Iterator[RequireGoing]:
    """Let a stop signal do nothing but be noted, and give what raises then, with the outcome in its sentence.

    In the main thread only. At the end the signals do again what they did.
    """
    numbers: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        numbers.append(number)

    def require_going() -> None:
        if numbers:
            raise StartupError(f"stopped by {signal.Signals(numbers[0]).name}; {outcome}")

    before = {number: signal.signal(number, note) for number in STOP_SIGNALS}
    try:
        yield require_going
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
