"""Draws many cards on all cores: a thread for each, with a process that draws."""

from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from threading import Thread

from cardbeat.cards.drawing.render import Drawing
from cardbeat.cards.painter import Painter
from cardbeat.cards.request import Card
from cardbeat.host.system import usable_cores

FEW = 16
"""So many cards are drawn sooner than one more process has started."""

Result = tuple[str, Drawing | str]
"""A card's place and its drawing, or a sentence on why there is none."""


def draw(
    cards: Mapping[str, Card], accent: str | None
) -> Iterator[Result]:
    """Each card, in the order in which they are done."""
    done = SimpleQueue[Result]()
    # Shared by all threads: a step of it is one operation of the interpreter.
    waiting = iter(cards.items())

    def work(painter: Painter) -> None:
        for output, card in waiting:
            try:
                done.put((output, painter.draw(card)))
            except (
                Exception
            ) as error:  # of one text; the others are drawn
                last_line = str(error).rpartition("\n")[2]
                done.put((output, f"drawing failed: {last_line}"))

    count = min(usable_cores(), 1 + len(cards) // FEW)
    painters = [Painter(accent) for _ in range(count)]
    for painter in painters:
        Thread(target=work, args=[painter], daemon=True).start()
    try:
        for _ in cards:
            yield done.get()
    finally:
        # Where the caller stops early, the cards that are left fail at once.
        for painter in painters:
            painter.close()
