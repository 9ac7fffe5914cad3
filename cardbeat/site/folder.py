"""The folder of the cards, and how this and that of the pages are read.

Each card's PNG says in its seal what drew it; there is no other record. A PNG without such a seal
is the user's, and stays. Files are written whole or not at all.
"""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from cardbeat.cards.drawing.render import Drawing, own_version
from cardbeat.cards.request import Card
from cardbeat.cards.seal import seal, unseal
from cardbeat.host.staging import written_whole
from cardbeat.site.names import same_file
from cardbeat.site.source import bytes_of, names_in

_OURS = "site:"
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
            drawn_of = _seal_of(self.path / output)
        except FileNotFoundError:
            return False
        if drawn_of:
            return drawn_of == self._name_of(card)
        self.replaced.append(output)
        return True

    def put(self, output: str, card: Card, drawing: Drawing) -> None:
        place = self.path / output
        place.parent.mkdir(parents=True, exist_ok=True)
        name = self._name_of(card)
        sealed = seal(name, drawing.png, drawing.missing_glyphs)
        with written_whole(place) as file:
            file.write(sealed.png)

    def unused(self, used: Iterable[str]) -> list[str]:
        """The cards in the folder that are not used now."""
        names = set(map(same_file, used))
        found = []
        for output in names_in(self.path, (".png",)):
            with suppress(OSError):
                is_used = same_file(output) in names
                if not is_used and _seal_of(self.path / output):
                    found.append(output)
        return found

    def _name_of(self, card: Card) -> str:
        """What the seal of a card says: its texts, look and renderer, as a digest."""
        drawn_from = json.dumps([_renderer_version(self.accent), *card])
        return _OURS + hashlib.sha256(drawn_from.encode()).hexdigest()


def _seal_of(path: Path) -> str:
    """What a card was drawn of; empty for another file. Raises `OSError`."""
    card = unseal(bytes_of(path))
    return card.of if card and card.of.startswith(_OURS) else ""
