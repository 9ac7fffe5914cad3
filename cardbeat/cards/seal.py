"""The seal of a card: a text chunk in its PNG that says what was drawn. Pure.

It shows that a file is this card, whole and unchanged. It proves nothing against somebody who can
write the file.
"""

import re
import zlib
from typing import NamedTuple

IEND = b"\x00\x00\x00\x00IEND\xaeB`\x82"
"""The chunk with which every PNG ends."""
_KEYWORD = b"tEXtcardbeat\x00"
_SEAL = re.compile(_KEYWORD + rb"([!-~]+) ([0-9]+) ")


class StoredCard(NamedTuple):
    """A sealed card, which was drawn of what `of` names.

    `etag` is the CRC-32 of the picture. Two pictures of one URL have the same with a chance of one
    in 4 billion, and so small is that of a damaged file to pass for whole.
    """

    png: bytes
    of: str
    missing_glyphs: int
    etag: str


def seal(of: str, png: bytes, missing_glyphs: int) -> StoredCard:
    """The card with a seal before its end. `of` is printable ASCII without spaces."""
    picture = png.removesuffix(IEND)
    checksum = _checksum(picture)
    tail = _tail(of, missing_glyphs, checksum)
    return StoredCard(picture + tail, of, missing_glyphs, f'"{checksum}"')


def unseal(png: bytes) -> StoredCard | None:
    """The card that was sealed so, byte by byte; None for any other data."""
    begin = png.rfind(_KEYWORD)
    match = _SEAL.match(png, max(begin, 0))
    if match is None:
        return None
    end_of_picture = begin - 4
    of = match[1].decode()
    missing_glyphs = int(match[2])
    checksum = _checksum(memoryview(png)[:end_of_picture])
    if png[end_of_picture:] != _tail(of, missing_glyphs, checksum):
        return None
    return StoredCard(png, of, missing_glyphs, f'"{checksum}"')


def _checksum(picture: bytes | memoryview) -> str:
    return f"{zlib.crc32(picture):08x}"


def _tail(of: str, missing_glyphs: int, checksum: str) -> bytes:
    """The seal and the end of the file. A chunk is its length, type and text, and a CRC of these
    two."""
    chunk = _KEYWORD + f"{of} {missing_glyphs} {checksum}".encode()
    length = len(chunk) - 4
    return length.to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big") + IEND
