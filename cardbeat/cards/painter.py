"""Draws cards in a process of its own.

In the server's process a drawing would keep the interpreter's lock from pings, and a crash of
native code would end the server. Each side writes values of `marshal` into a pipe: a `Card`, then
its `Drawing` or the text of an error.
"""

import logging
import marshal
import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from functools import cache
from math import inf
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

import cardbeat
from cardbeat.host.system import STOP_SIGNALS

if TYPE_CHECKING:
    from cardbeat.cards.drawing.render import Drawing, Renderer
    from cardbeat.cards.request import Card

log = logging.getLogger(__name__)

DRAWING_SECONDS: Final = 20
_WORK: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from cardbeat.cards import painter; painter.work()"
)
ALLOCATOR: Final = dict.fromkeys(
    ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "33554432"
)
"""Lets glibc keep the memory of a freed picture, of 2 MB, for the next one.

Without these it gives 400 pages back and takes them again for each card, 10 % of a card's time.
"""


class Painter:
    """Draws cards for one thread, in a process that ends with this one, however this one ends.

    1. A process that draws a card for longer than `seconds` is killed.
    2. A process that ends or answers anything odd is replaced, and its card is drawn once more. If
       it went on, the rest of its answer would be taken for the next card.
    3. Where no process can be started, the card is drawn in this one.
    """

    def __init__(
        self,
        accent: str | None = None,
        *,
        seconds: float = DRAWING_SECONDS,
    ) -> None:
        self._accent = accent
        self._seconds = seconds
        # `start` and `close` are called by other threads too: these are used under the lock.
        self._lock = Lock()
        self._process: Any = None
        self._is_closed = False
        self._until = inf

    def start(self) -> Any:
        """The process, started unless it runs. Raises `OSError`."""
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the program stops")
            if self._process is None:
                self._process = _started(self._accent)
                Thread(
                    target=self._watch, args=[self._process], daemon=True
                ).start()
            return self._process

    def draw(self, card: "Card") -> "Drawing":
        """Draw a card. Raises `RuntimeError` if that fails."""
        until = time.monotonic() + self._seconds
        for _ in range(2):
            try:
                process = self.start()
            except OSError as error:
                log.warning(
                    "a card is drawn here, no other process can be started: %s",
                    error,
                )
                return renderer_of(self._accent).render(card)
            self._until = until
            try:
                return _answer(process, card)
            except RuntimeError:
                raise
            except Exception:
                self._end()
            finally:
                self._until = inf
            if time.monotonic() >= until:
                break
        raise RuntimeError(
            f"the process that draws ended twice, or after {self._seconds} s"
        )

    def _watch(self, process: Any) -> None:
        """Kill the process if a card takes too long: a timer for each card takes 0.2 ms of CPU."""
        while process.poll() is None:
            time.sleep(min(1.0, self._seconds))
            if time.monotonic() >= self._until:
                process.kill()

    def close(self) -> None:
        """End the process, and start no other one."""
        self._is_closed = True
        self._end()

    def _end(self) -> None:
        """Kill the process, if there is one. The log has its status: -9 may mean out of memory."""
        with self._lock:
            process = self._process
            self._process = None
        if process is None:
            return
        process.kill()
        # Closes its pipes and waits for it. What was not written can't be.
        with suppress(OSError), process:
            pass
        if not self._is_closed:
            log.warning(
                "the process that draws ended with status %d",
                process.returncode,
            )


def _answer(process: Any, card: "Card") -> "Drawing":
    """The answer of a process. Raises `RuntimeError` with an error's text, anything for others."""
    from cardbeat.cards.drawing.render import Drawing  # noqa: PLC0415 - not at the start

    process.stdin.write(marshal.dumps(tuple(card)))
    process.stdin.flush()
    answer = marshal.load(process.stdout)  # noqa: S302 - the other side is this program
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return Drawing(*answer)


def _started(accent: str | None) -> Any:
    """A process that draws. Raises `OSError`."""
    # This package may be found by what is no entry of `sys.path`.
    places = filter(
        None, (os.path.dirname(cardbeat.__path__[0]), *sys.path)
    )
    command = (
        sys.executable,
        "-ISc",
        _WORK,
        accent or "",
        *map(os.path.abspath, places),
    )
    pipe = subprocess.PIPE
    return subprocess.Popen(  # noqa: S603
        command, stdin=pipe, stdout=pipe, env={**ALLOCATOR, **os.environ}
    )


def work() -> None:
    """Draw each card that comes through the standard input, until that is closed."""
    for number in STOP_SIGNALS:
        # They come to the whole group: this process ends with the one that started it.
        signal.signal(number, signal.SIG_IGN)
    from cardbeat.cards.request import Card  # noqa: PLC0415 - the server does without it

    renderer = renderer_of(sys.argv[1] or None)
    with suppress(EOFError, OSError):
        while True:
            card = Card(*marshal.load(sys.stdin.buffer))  # noqa: S302
            sys.stdout.buffer.write(marshal.dumps(_drawn(renderer, card)))
            sys.stdout.buffer.flush()


def _drawn(renderer: "Renderer", card: "Card") -> tuple[Any, ...] | str:
    try:
        return tuple(renderer.render(card))
    except Exception:
        return f"drawing failed\n{traceback.format_exc().rstrip()}"


@cache
def renderer_of(accent: str | None) -> "Renderer":
    """What draws cards in this process, for any number of threads."""
    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415 - not at the start
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415

    return Renderer(Fonts(), accent)
