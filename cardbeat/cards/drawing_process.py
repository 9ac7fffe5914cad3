"""Draws the server's cards in a process of its own: one that draws would keep the interpreter's lock from pings.

Each side writes values of `marshal` into a pipe: a `Card`, and then its `Drawing` or a text that tells of an error. The
process ends with the server, however that ends, as its pipe is closed then.
"""

import logging
import marshal
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import cardbeat
from cardbeat.host.system import stop_signals_held

if TYPE_CHECKING:
    from cardbeat.cards.drawing.render import Drawing, Renderer
    from cardbeat.cards.request import Card

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 1.0
"""How long a card that is being drawn may take at the end."""
_WORK: Final = "import sys; sys.path[:] = sys.argv[2:]; from cardbeat.cards.drawing_process import work; work()"


class DrawingProcess:
    """As `Renderer`, for one thread. A process that was killed is replaced, and its card drawn anew, once.

    Where no process can be started, or none has drawn a card, they are drawn in this one.
    """

    def __init__(self, accent: str | None = None) -> None:
        self._accent = accent
        # Guards all below: one thread starts the process, or another one that draws; a third ends it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._here: Renderer | None = None
        self._has_drawn = self._is_closed = False

    def start(self) -> None:
        """Start the process, if it does not run."""
        with self._lock:
            if self._process or self._here or self._is_closed:
                return
            try:
                # This package may be found by what is no entry of `sys.path`.
                path = [os.path.abspath(entry) for entry in (os.path.dirname(cardbeat.__path__[0]), *sys.path)]
                command = [sys.executable, "-ISc", _WORK, self._accent or "", *path]
                with stop_signals_held():
                    self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
            except OSError as error:
                self._draw_here(error.strerror or "")

    def render(self, card: "Card") -> "Drawing":
        """Draw a card. Raises `RuntimeError` if that fails."""
        from cardbeat.cards.drawing.render import Drawing  # noqa: PLC0415 - the first answer needs none

        for _ in range(2):
            self.start()
            if self._here:
                return self._here.render(card)
            try:
                drawn = self._ask(tuple(card))
            except (OSError, EOFError, ValueError, TypeError):
                self._end()
            else:
                self._has_drawn = True
                if isinstance(drawn, str):
                    raise RuntimeError(drawn)
                return Drawing(*drawn)
        if self._has_drawn or self._is_closed:
            raise RuntimeError("the process that draws was ended twice, maybe for lack of memory")
        return self._draw_here("it ended at once").render(card)

    def close(self) -> None:
        """End the process, if it runs, and start none any more."""
        self._is_closed = True
        self._end()

    def _draw_here(self, reason: str) -> "Renderer":
        log.warning("the server draws cards itself, because no other process can: %s", reason)
        self._here = _renderer(self._accent)
        return self._here

    def _ask(self, card: tuple[str, ...]) -> Any:
        if not (process := self._process) or not process.stdin or not process.stdout:
            raise EOFError
        process.stdin.write(marshal.dumps(card))
        process.stdin.flush()
        return marshal.load(process.stdout)  # noqa: S302 - the other side is this program

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process and process.stdin and process.stdout:
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def work() -> None:
    """Draw each card that comes through the standard input, until that is closed."""
    from cardbeat.cards.request import Card  # noqa: PLC0415 - the server imports this module at its start

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    renderer = _renderer(sys.argv[1] or None)
    with suppress(EOFError, OSError):
        while True:
            card = Card(*marshal.load(sys.stdin.buffer))  # noqa: S302
            try:
                drawn: Any = tuple(renderer.render(card))
            except Exception as error:
                drawn = f"drawing failed with {error!r}"
            sys.stdout.buffer.write(marshal.dumps(drawn))
            sys.stdout.buffer.flush()


def _renderer(accent: str | None) -> "Renderer":
    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415

    return Renderer(Fonts(), accent)
