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
import time
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, Final

import cardbeat
from cardbeat.host.system import end_in, kill_first, stop_signals_held

if TYPE_CHECKING:
    from cardbeat.cards.drawing.render import Drawing, Renderer
    from cardbeat.cards.request import Card

log = logging.getLogger(__name__)

DRAWING_SECONDS: Final = 20
"""The process ends when a card takes longer; on Windows it does not."""
RETRY_SECONDS: Final = 60.0
"""Where no process draws, the server draws for this long before it tries again."""
_WORK: Final = "import sys; sys.path[:] = sys.argv[2:]; from cardbeat.cards.drawing_process import work; work()"


class DrawingProcess:
    """As `Renderer`, for one thread. A process that was killed is replaced, and its card drawn anew, once.

    Where no process can be started, or none has drawn a card, they are drawn in this one.
    """

    def __init__(self, accent: str | None = None) -> None:
        self._accent = accent
        # Guards the process: one thread starts it, or another one that draws; a third ends it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = self._has_drawn = False
        self._here: Renderer | None = None
        self._here_until = -inf

    def start(self) -> "subprocess.Popen[bytes] | None":
        """Start the process, if it does not run, and return it. None if none can be started, which is logged once."""
        with self._lock:
            if not self._process and not self._is_closed and time.monotonic() >= self._here_until:
                try:
                    # This package may be found by what is no entry of `sys.path`.
                    path = [os.path.abspath(entry) for entry in (os.path.dirname(cardbeat.__path__[0]), *sys.path)]
                    command = [sys.executable, "-ISc", _WORK, self._accent or "", *path]
                    # The settings may hold a database's password.
                    env = {name: value for name, value in os.environ.items() if not name.startswith("CARDBEAT_")}
                    pipe = subprocess.PIPE
                    with stop_signals_held():
                        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env)  # noqa: S603
                    kill_first(self._process.pid)
                except OSError as error:
                    self._draw_here(error.strerror or "")
            return self._process

    def render(self, card: "Card") -> "Drawing":
        """Draw a card. Raises `RuntimeError` if that fails."""
        from cardbeat.cards.drawing.render import Drawing  # noqa: PLC0415 - the first answer needs none

        for _ in range(2):
            process = self.start()
            if self._is_closed:
                raise RuntimeError("the server stops")
            if not process:
                break
            try:
                drawn = _ask(process, tuple(card))
            except Exception:
                # Whatever it was, such as too little memory here: the rest of the answer must not pass for the next.
                if (status := self._end()) is not None:
                    log.warning("the process that draws ended with status %d", status)
            else:
                self._has_drawn, self._here_until = True, -inf
                if isinstance(drawn, str):
                    raise RuntimeError(drawn)
                return Drawing(*drawn)
        else:
            if self._has_drawn or status in (-9, -14):
                hint = f"-9 mostly means that memory ran out, -14 that a card took {DRAWING_SECONDS} s"
                raise RuntimeError(f"the process that draws ended twice, with status {status}; {hint}")
            self._draw_here(f"it ended with status {status}")
        self._here = self._here or _renderer(self._accent)
        return self._here.render(card)

    def close(self) -> None:
        """End the process, if it runs, and start none any more."""
        self._is_closed = True
        self._end()

    def _draw_here(self, reason: str) -> None:
        if self._here_until == -inf:
            log.warning("the server draws cards itself, because no other process can: %s", reason)
        self._here_until = time.monotonic() + RETRY_SECONDS

    def _end(self) -> int | None:
        """Kill the process and return its status, which is that before if it has ended; None if there is none."""
        with self._lock:
            process, self._process = self._process, None
        if not process or not process.stdin or not process.stdout:
            return None
        process.kill()
        status = process.wait()
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        return status


def _ask(process: "subprocess.Popen[bytes]", card: tuple[str, ...]) -> Any:
    if not process.stdin or not process.stdout:
        raise EOFError
    process.stdin.write(marshal.dumps(card))
    process.stdin.flush()
    return marshal.load(process.stdout)  # noqa: S302 - the other side is this program


def work() -> None:
    """Draw each card that comes through the standard input, until that is closed."""
    from cardbeat.cards.request import Card  # noqa: PLC0415 - the server imports this module at its start

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    renderer = _renderer(sys.argv[1] or None)
    with suppress(EOFError, OSError):
        while True:
            card = Card(*marshal.load(sys.stdin.buffer))  # noqa: S302
            end_in(DRAWING_SECONDS)
            try:
                drawn: Any = tuple(renderer.render(card))
            except Exception:
                import traceback  # noqa: PLC0415 - hardly ever needed

                drawn = f"drawing failed\n{traceback.format_exc()}"
            end_in(0)
            sys.stdout.buffer.write(marshal.dumps(drawn))
            sys.stdout.buffer.flush()


def _renderer(accent: str | None) -> "Renderer":
    from cardbeat.cards.drawing.render import Renderer  # noqa: PLC0415
    from cardbeat.typeset.faces.fonts import Fonts  # noqa: PLC0415

    return Renderer(Fonts(), accent)
