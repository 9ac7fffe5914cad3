"""The folder of the cards. Each card's PNG says in its seal what drew it; there is no other record.

A PNG without such a seal is the user's, and stays. Files are written whole or not at all.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from cardbeat.cards.drawing.render import Drawing, own_version
from cardbeat.cards.request import Card
from cardbeat.cards.seal import StoredCard, seal, unseal
from cardbeat.host.staging import written_whole
from cardbeat.host.system import READ_FLAGS
from cardbeat.site.names import same_file

CARD_BYTES: Final = 1024 * 1024
_OURS: Final = "site:"
"""The seals of these cards begin so, those of a server's stored cards do not."""

_renderer_version = cache(own_version)


class Folder:
    """The cards in a folder, by their places in it, in one accent. All methods raise `OSError`.

    `replaced` are the places where a file is that is not a card: an optimised card, or the user's
    own.
    """

    def __init__(self, path: Path, accent: str | None = None) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.accent = accent
        self.replaced: list[str] = []

    def has(self, output: str, card: Card) -> bool:
        """Whether this card is there as this renderer draws it, or a file that replaced it."""
        try:
            there = _card_in(self.path / output)
        except FileNotFoundError:
            return False
        if there:
            return there.of == self._name_of(card)
        self.replaced.append(output)
        return True

    def put(self, output: str, card: Card, drawing: Drawing) -> None:
        place = self.path / output
        place.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(place) as file:
            file.write(
                seal(
                    self._name_of(card), drawing.png, drawing.missing_glyphs
                ).png
            )

    def unused(self, used: Iterable[str]) -> list[str]:
        """The cards in the folder that are not used now."""
        names = set(map(same_file, used))
        found: list[str] = []
        for path in self.path.rglob("*"):
            output = path.relative_to(self.path).as_posix()
            if (
                path.suffix.lower() == ".png"
                and same_file(output) not in names
                and _is_card(path)
            ):
                found.append(output)
        return sorted(found)

    def _name_of(self, card: Card) -> str:
        """What the seal of a card says: its texts, look and renderer, as a digest."""
        drawn_from = json.dumps([_renderer_version(self.accent), *card])
        return _OURS + hashlib.sha256(drawn_from.encode()).hexdigest()


def _is_card(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return _card_in(path) is not None
    return False


def _card_in(path: Path) -> StoredCard | None:
    """The card in a file; None for another file. Raises `OSError`."""
    with open(os.open(path, READ_FLAGS), "rb") as file:
        card = unseal(file.read(CARD_BYTES))
    return card if card and card.of.startswith(_OURS) else None
