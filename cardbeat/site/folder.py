"""The folder of the cards, with a manifest of what was drawn. Files are written whole or not at all."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, NamedTuple

from cardbeat.cards.drawing.png import SIGNATURE
from cardbeat.cards.drawing.render import Drawing, own_version
from cardbeat.cards.request import Card
from cardbeat.cards.seal import IEND
from cardbeat.host.ownership import give_away
from cardbeat.host.system import READ_FLAGS, remove, replace
from cardbeat.site.names import problem_of, same_file
from cardbeat.site.page import READ_BYTES, image_tags, with_lines

MANIFEST: Final = ".cardbeat.json"
MANIFEST_BYTES: Final = 64 * 1024 * 1024
CARD_BYTES: Final = 1024 * 1024

_renderer_version = cache(own_version)


class ManifestEntry(NamedTuple):
    """A card of the manifest: digests of what it shows, with the renderer's version, and of its file."""

    of: str
    png: str
    missing_glyphs: int


class Folder:
    """The cards in a folder, by their places in it, in one accent. The end of a `with` block writes the manifest.

    All methods raise `OSError`.
    """

    def __init__(self, path: Path, accent: str | None = None) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path.resolve()
        self.accent = accent
        self._before = _read_manifest(self.path / MANIFEST)
        self._drawn = dict(self._before)
        self.replaced: list[str] = []

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn != self._before:
            with written_whole(self.path / MANIFEST) as file:
                file.write(json.dumps(self._drawn, indent=0, sort_keys=True).encode())

    def has(self, output: str, card: Card) -> bool:
        """Whether this card is there as this renderer draws it, or a picture that has `replaced` it since."""
        drawn = self._drawn.get(output)
        if drawn is None or drawn.of != self._digest_of(card):
            return False
        if self._is_ours(output):
            return True
        if is_replaced := self._is_replaced(output):
            self.replaced.append(output)
        return is_replaced

    def put(self, output: str, card: Card, drawing: Drawing) -> None:
        place = self._place(output)
        if (output not in self._drawn or self._is_replaced(output)) and place.exists():
            # A killed run lists nothing. Where `A.png` and `a.png` are one file, a card may be listed by either name.
            there, new = _digest(_content(place, CARD_BYTES)), _digest(drawing.png)
            if there != new and all(there != card.png for card in self._drawn.values()):
                raise OSError(0, f"the file there is not in {MANIFEST}, so it may be your own; move it away")
        # One after the other: `mkdir(parents=True)` calls itself for each, and some hundreds are too many for Python.
        for folder in reversed(() if place.parent.is_dir() else place.relative_to(self.path).parents):
            (self.path / folder).mkdir(exist_ok=True)
        with written_whole(place) as file:
            file.write(drawing.png)
        self._drawn[output] = ManifestEntry(self._digest_of(card), _digest(drawing.png), drawing.missing_glyphs)

    def missing_glyphs(self, output: str) -> int:
        return self._drawn[output].missing_glyphs

    def unused(self, used: Iterable[str]) -> list[str]:
        """The cards that are not used now. A file that is no longer the card is none of them."""
        used = {same_file(output): output for output in used}
        return sorted(
            output
            for output in self._drawn.keys() - set(used.values())
            if self._is_ours(output) and not self._is_one_file(output, used.get(same_file(output)))
        )

    def prune(self, unused: Iterable[str]) -> None:
        """Remove cards, and the folders that are empty then."""
        for output in unused:
            place = self._place(output)
            remove(place)
            del self._drawn[output]
            with contextlib.suppress(OSError):
                for folder in place.relative_to(self.path).parents[:-1]:
                    (self.path / folder).rmdir()

    def _digest_of(self, card: Card) -> str:
        return _digest(json.dumps([_renderer_version(self.accent), *card]).encode())

    def _is_ours(self, output: str) -> bool:
        """Whether a card's file is as it was written."""
        with contextlib.suppress(OSError):
            return _digest(_content(self._place(output), CARD_BYTES)) == self._drawn[output].png
        return False

    def _is_replaced(self, output: str) -> bool:
        """Whether a card's file is another PNG, of its user. One that does not end as a PNG is a damaged card."""
        if self._is_ours(output):
            return False
        with contextlib.suppress(OSError), open(os.open(self._place(output), READ_FLAGS), "rb") as file:
            begin = file.read(len(SIGNATURE))
            file.seek(-len(IEND), os.SEEK_END)
            return begin == SIGNATURE and file.read() == IEND
        return False

    def _is_one_file(self, output: str, other: str | None) -> bool:
        """Whether two places are one here, as `A.png` and `a.png` on macOS and Windows."""
        with contextlib.suppress(OSError):
            return other is not None and os.path.samefile(self.path / output, self.path / other)
        return False

    def _place(self, output: str) -> Path:
        """Where a card's file is. Raises `OSError` if a link is on the way."""
        path = self.path / output
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            raise OSError(0, "a link leads elsewhere")
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # raises for a link that leads to itself, which stays in the real path
        return path


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place, mode and owner of `path` at the end; after an error nothing has changed."""
    # A name that can't be guessed, and "x": else a link of that name would lead the bytes elsewhere.
    temporary = path.with_name(f".cardbeat-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            if path.exists():
                give_away(file.fileno(), path)
                shutil.copymode(path, temporary)
        replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            remove(temporary)
        raise


def write_image_tags(page: Path, url: str, title: str) -> None:
    """Let the head of a page name its image. All other bytes stay. Raises `OSError`."""
    # The old file is closed before the new one takes its place, as Windows asks for.
    with written_whole(page) as new, open(os.open(page, READ_FLAGS), "rb") as old:
        tagged = with_lines(old.read(READ_BYTES), image_tags(url, title))
        if tagged is None:
            raise OSError(0, "the end of its head was not found")
        new.write(tagged)
        shutil.copyfileobj(old, new)


def _read_manifest(path: Path) -> dict[str, ManifestEntry]:
    """What a manifest tells; nothing if it is missing or damaged, and all cards are drawn."""
    try:
        rows = {
            output: ManifestEntry(str(of), str(png), int(n))
            for output, (of, png, n) in json.loads(_content(path, MANIFEST_BYTES)).items()
        }
    except (OSError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return {}
    return {
        output: drawn
        for output, drawn in rows.items()
        if not problem_of(output) and PurePosixPath(output).as_posix() == output
    }


def _content(path: Path, most: int) -> bytes:
    """The bytes of a regular file. Raises `OSError`, also for a pipe, which would never end, and past `most` bytes."""
    with open(os.open(path, READ_FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or os.fstat(file.fileno()).st_size > most:
            raise OSError(0, "what is there is not a file of cardbeat; move it away")
        return file.read(most)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
