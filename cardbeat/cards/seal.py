"""The seal of a stored card: a text chunk in the PNG by which nothing else is ever taken for it. Pure."""

import hashlib
import zlib
from dataclasses import dataclass

from cardbeat.cards.request import as_sent

_IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_DIGEST_LENGTH = 32
_KEYWORD = b"cardbeat\x00"
_SEAL_BYTES = 12 + len(_KEYWORD) + _DIGEST_LENGTH + 8


@dataclass(frozen=True, slots=True)
class StoredCard:
    """A card as it is served: `png` carries its seal, `digest` names its content."""

    png: bytes
    digest: str
    missing_glyphs: int

    @property
    def etag(self) -> str:
        return f'"{self.digest}"'


def file_name(target: str) -> str:
    """The stored file of a request target as sent (CONTRACT 3)."""
    return hashlib.sha256(as_sent(target)).hexdigest() + ".png"


def seal(name: str, png: bytes, missing_glyphs: int) -> StoredCard:
    """Puts a text chunk before the end of a PNG that binds its content to its file name."""
    body = png.removesuffix(_IEND)
    digest = hashlib.sha256(b"%s %d " % (name.encode(), missing_glyphs) + body).hexdigest()[:_DIGEST_LENGTH]
    chunk = b"tEXt%s%s%08d" % (_KEYWORD, digest.encode(), missing_glyphs)
    sealed = b"%s%s%s%s%s" % (
        body,
        (len(chunk) - 4).to_bytes(4, "big"),
        chunk,
        zlib.crc32(chunk).to_bytes(4, "big"),
        _IEND,
    )
    return StoredCard(sealed, digest, missing_glyphs)


def unseal(name: str, data: bytes) -> StoredCard | None:
    """The card that was sealed under this name, or None for anything else, however alike."""
    count = data[-len(_IEND) - 12 : -len(_IEND) - 4]
    if not count.isdigit():
        return None
    card = seal(name, data[: -len(_IEND) - _SEAL_BYTES] + _IEND, int(count))
    return card if card.png == data else None
