"""The seal of a stored card: a text chunk in the PNG by which nothing else is ever taken for it. Pure."""

import hashlib
import re
import zlib
from dataclasses import dataclass

_IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_DIGEST_LENGTH = 32
_KEYWORD = b"cardbeat\x00"
_OWNER_LENGTH = 16
_CONTENT = re.compile(_KEYWORD + rb"([0-9a-f]{32})([0-9a-f]{16})([0-9]{8})")
"""What a seal says: the digest, the owner, and how many characters no font had."""
_SEAL_BYTES = 12 + len(_KEYWORD) + _DIGEST_LENGTH + _OWNER_LENGTH + 8
TAIL_BYTES = _SEAL_BYTES + len(_IEND)
"""At the end of a stored card, with its seal."""
NOBODY = "0" * _OWNER_LENGTH
"""The owner of a card that no key has asked for."""


@dataclass(frozen=True, slots=True)
class StoredCard:
    """A card as it is served: `png` carries its seal, `etag` names its content, `owner` whose room it takes."""

    png: bytes
    etag: str
    missing_glyphs: int
    owner: str


def owner_of(key_id: str) -> str:
    """How a seal names a key, whose image anybody may have: by a hash of its identifier."""
    return hashlib.sha256(key_id.encode()).hexdigest()[:_OWNER_LENGTH]


def seal(name: str, png: bytes, missing_glyphs: int, owner: str = NOBODY) -> StoredCard:
    """Puts a text chunk before the end of a PNG that binds its content to its file name, and names its owner."""
    body = png.removesuffix(_IEND)
    told = f"{name} {missing_glyphs} {owner} ".encode()
    digest = hashlib.sha256(told + body).hexdigest()[:_DIGEST_LENGTH]
    chunk = b"tEXt%s%s%s%08d" % (_KEYWORD, digest.encode(), owner.encode(), missing_glyphs)
    sealed = b"%s%s%s%s%s" % (
        body,
        (len(chunk) - 4).to_bytes(4, "big"),
        chunk,
        zlib.crc32(chunk).to_bytes(4, "big"),
        _IEND,
    )
    return StoredCard(sealed, f'"{digest}"', missing_glyphs, owner)


def unseal(name: str, data: bytes) -> StoredCard | None:
    """The card that was sealed under this name, or None for anything else, however alike."""
    said = _said(data)
    if said is None:
        return None
    card = seal(name, data[:-TAIL_BYTES] + _IEND, int(said[3]), said[2].decode())
    return card if card.png == data else None


def owner_in(tail: bytes) -> str | None:
    """The owner that the last `TAIL_BYTES` of a card name, sound or not; None where no seal stands there."""
    said = _said(tail)
    return said and said[2].decode()


def _said(data: bytes) -> re.Match[bytes] | None:
    return _CONTENT.fullmatch(data[8 - TAIL_BYTES : -4 - len(_IEND)])
