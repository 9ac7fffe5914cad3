"""Stop signals for long commands: the command ends at a safe point, with one line."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from cardbeat.errors import StartupError
from cardbeat.host.system import on_stop_signals

RequireGoing = Callable[[], None]
"""Raises `StartupError` after a stop signal. Call it often, at points where everything can still be
undone."""


def always_going() -> None:
    """A `RequireGoing` that never raises."""


@contextlib.contextmanager
def stop_signals_noted(outcome: str, *, at_once: bool = False) -> Iterator[RequireGoing]:
    """Note stop signals instead of obeying them; the given function raises once there was one,
    naming the `outcome`.

    With `at_once` the signal itself raises, also in a wait for input, which a noted signal does not
    end. In the main thread only. Restores the former handlers at the end.
    """
    numbers: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        numbers.append(number)
        if at_once:
            require_going()

    def require_going() -> None:
        if numbers:
            raise StartupError(f"stopped by {signal.Signals(numbers[0]).name}; {outcome}")

    before = on_stop_signals(note)
    try:
        yield require_going
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
