"""Draws many cards on all cores: a thread for each, with a process that draws."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final

from cardbeat.cards.drawing.render import Drawing
from cardbeat.cards.painter import Painter, renderer_of
from cardbeat.cards.request import Card
from cardbeat.host.system import usable_cores

FEW: Final = 16
"""So many cards are drawn sooner than a process has started."""

Result = tuple[int, Drawing | str]
"""A card's number and its drawing, or a sentence on why there is none."""


def draw(cards: Sequence[Card], accent: str | None) -> Iterator[Result]:
    """Each card, in the order in which they are done."""
    if len(cards) <= FEW:
        for number, card in enumerate(cards):
            yield number, _drawn(renderer_of(accent).render, card)
        return
    numbers = SimpleQueue[int]()
    for number in range(len(cards)):
        numbers.put(number)
    done = SimpleQueue[Result]()

    def work(painter: Painter) -> None:
        with suppress(Empty):
            while True:
                number = numbers.get_nowait()
                done.put((number, _drawn(painter.draw, cards[number])))

    painters = [Painter(accent) for _ in range(usable_cores())]
    for painter in painters:
        Thread(target=work, args=[painter], daemon=True).start()
    try:
        for _ in cards:
            yield done.get()
    finally:
        # Where the caller stops early, the cards that are left fail at once.
        for painter in painters:
            painter.close()


def _drawn(draw: Callable[[Card], Drawing], card: Card) -> Drawing | str:
    try:
        return draw(card)
    except Exception as error:  # of one text; the others are drawn
        last_line = str(error).rpartition("\n")[2]
        return f"drawing failed: {last_line}"
