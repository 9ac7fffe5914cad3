"""Draws many cards on all cores: in processes, or in threads where the system starts no processes.

A worker only draws. It writes nothing, so it can be ended at any moment.
"""

import contextlib
import gc
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any, Final

from cardbeat.cards.drawing.render import Drawing, Renderer
from cardbeat.cards.request import Card
from cardbeat.host.stopping import RequireGoing
from cardbeat.host.system import FORK_IS_SAFE, stop_signals_held, usable_cores
from cardbeat.typeset.faces.fonts import Fonts

LOOK_SECONDS: Final = 0.1
"""Between two looks whether a stop signal came."""
AT_ONCE: Final = 2
"""Cards that a process has: it draws the second while the first is stored."""
MOST_PROCESSES: Final = 60  # Windows waits for 63 pipes at once.

Job = tuple[Card, str | None]
"""A card and the accent of its colours."""
Result = tuple[int, Drawing | str]
"""A card's number and its drawing, or a sentence on why there is none."""
Workers = dict[Any, Any]
"""Processes by the pipes to them."""


def draw(jobs: Sequence[Job], require_going: RequireGoing) -> Iterator[Result]:
    """Each card, in the order in which they are done."""
    # The first of each look is drawn here, so that a copy of this process has the fonts and backgrounds.
    here = {(card.template, card.theme): number for number, (card, _) in reversed(list(enumerate(jobs)))}.values()
    for number in here:
        require_going()
        yield number, _drawn(jobs[number])
    rest = deque(number for number in range(len(jobs)) if number not in here)
    workers = _started(min(usable_cores(), MOST_PROCESSES, len(rest)))
    try:
        yield from (_in_processes if workers else _in_threads)(jobs, rest, workers, require_going)
    finally:
        for process in workers.values():
            process.kill()
            process.join()


def _in_processes(
    jobs: Sequence[Job], rest: deque[int], workers: Workers, require_going: RequireGoing
) -> Iterator[Result]:
    busy: dict[Any, deque[int]] = {pipe: deque() for pipe in workers}

    def hand_out() -> None:
        for pipe, numbers in busy.items():
            if rest and len(numbers) < AT_ONCE:
                numbers.append(rest.popleft())
                with contextlib.suppress(OSError):  # Its process has ended, which the next read finds.
                    pipe.send(jobs[numbers[-1]])

    for _ in range(AT_ONCE):
        hand_out()
    while any(busy.values()):
        require_going()
        ready: list[Any] = wait([pipe for pipe, numbers in busy.items() if numbers], LOOK_SECONDS)
        for pipe in ready:
            number = busy[pipe].popleft()
            try:
                drawn = pipe.recv()
            except (EOFError, OSError):
                drawn = "the process that drew it was killed, maybe for lack of memory"
                # It had not begun with the others.
                rest.extendleft(reversed(busy.pop(pipe)))
            hand_out()
            yield number, drawn
    for number in rest:
        yield number, "no process is left to draw it"


def _in_threads(
    jobs: Sequence[Job], rest: deque[int], _workers: Workers, require_going: RequireGoing
) -> Iterator[Result]:
    pool = ThreadPoolExecutor(usable_cores())
    try:
        for result in zip(rest, pool.map(_drawn, [jobs[number] for number in rest]), strict=True):
            require_going()
            yield result
    finally:
        pool.shutdown(cancel_futures=True)


def _started(count: int) -> Workers:
    """So many processes, or as many as the system starts. One alone would only cost time."""
    forks = FORK_IS_SAFE and threading.active_count() == 1
    context: Any = get_context("fork" if forks else "spawn")
    workers: Workers = {}
    # The collector then leaves alone what copies of this process share.
    gc.freeze()
    with stop_signals_held(), contextlib.suppress(OSError):
        for _ in range(count if count > 1 else 0):
            own, other = context.Pipe()
            # No copy of this process holds the pipes open, so all end with this process, however it ends.
            process = context.Process(target=_work, args=(other, [*workers, own] if forks else []), daemon=True)
            process.start()
            other.close()
            workers[own] = process
    return workers


def _work(pipe: Any, not_own: Sequence[Any]) -> None:
    """Draw the cards that come through a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in not_own:
        other.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_drawn(pipe.recv()))


def _drawn(job: Job) -> Drawing | str:
    card, accent = job
    try:
        return _renderer(accent).render(card)
    except Exception as error:  # of one text; the others are drawn
        return f"drawing failed with {error!r}"


@cache
def _renderer(accent: str | None) -> Renderer:
    return Renderer(Fonts(), accent)
