"""The seal of a stored card: a text chunk in the PNG that proves the file to be this card. Pure."""

import hashlib
import re
import zlib
from typing import NamedTuple

IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_DIGEST_LENGTH = 32
_KEYWORD = b"cardbeat\x00"
_OWNER_LENGTH = 16
_CONTENT = re.compile(_KEYWORD + rb"([0-9a-f]{32})([0-9a-f]{16})([01])([0-9]{7})")
"""The content of a seal: digest, owner, whether the description was left out, how many characters no font had."""
_SEAL_BYTES = 12 + len(_KEYWORD) + _DIGEST_LENGTH + _OWNER_LENGTH + 8
TAIL_BYTES = _SEAL_BYTES + len(IEND)  # the end of a stored card that holds its seal
NO_OWNER = "0" * _OWNER_LENGTH  # the owner of a card that was drawn without a key


class StoredCard(NamedTuple):
    """A card as it is served: `png` holds its seal, `etag` names its content, `owner` is the key it counts for."""

    png: bytes
    etag: str
    missing_glyphs: int
    owner: str
    left_out: bool = False


def owner_of(key_id: str) -> str:
    """The name of a key in a seal: a hash of its identifier, since images are public."""
    return hashlib.sha256(key_id.encode()).hexdigest()[:_OWNER_LENGTH]


def seal(name: str, png: bytes, missing_glyphs: int, owner: str = NO_OWNER, *, left_out: bool = False) -> StoredCard:
    """The card with a text chunk before its end, which binds the content to the file name and names the owner."""
    body = png.removesuffix(IEND)
    bound = f"{name} {left_out:d}{missing_glyphs} {owner} ".encode()
    digest = hashlib.sha256(bound + body).hexdigest()[:_DIGEST_LENGTH]
    chunk = b"tEXt%s%s%s%d%07d" % (_KEYWORD, digest.encode(), owner.encode(), left_out, missing_glyphs)
    length, checksum = (len(chunk) - 4).to_bytes(4, "big"), zlib.crc32(chunk).to_bytes(4, "big")
    return StoredCard(b"".join((body, length, chunk, checksum, IEND)), f'"{digest}"', missing_glyphs, owner, left_out)


def unseal(name: str, data: bytes) -> StoredCard | None:
    """The card that was sealed under this name, or None for any other data."""
    content = _content_of(data)
    if content is None:
        return None
    left_out = content[3] == b"1"
    card = seal(name, data[:-TAIL_BYTES] + IEND, int(content[4]), content[2].decode(), left_out=left_out)
    return card if card.png == data else None


def owner_in(tail: bytes) -> str | None:
    """The owner in the last `TAIL_BYTES` of a card, which is not verified; None if there is no seal."""
    content = _content_of(tail)
    return content and content[2].decode()


def _content_of(data: bytes) -> re.Match[bytes] | None:
    return _CONTENT.fullmatch(data[8 - TAIL_BYTES : -4 - len(IEND)])
