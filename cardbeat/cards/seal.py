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
_SEAL = re.compile(_KEYWORD + rb"([!-~]+) ([0-9]+) ([0-9a-f]{8})")


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
    """The card with a seal before its end. `of` is printable ASCII without spaces.

    The seal is a chunk: its length, type and text, and a CRC of the latter two.
    """
    picture = png.removesuffix(IEND)
    checksum = f"{zlib.crc32(picture):08x}"
    chunk = _KEYWORD + f"{of} {missing_glyphs} {checksum}".encode()
    length = (len(chunk) - 4).to_bytes(4, "big")
    crc = zlib.crc32(chunk).to_bytes(4, "big")
    return StoredCard(
        picture + length + chunk + crc + IEND,
        of,
        missing_glyphs,
        f'"{checksum}"',
    )


def unseal(png: bytes, *, is_whole: bool = False) -> StoredCard | None:
    """The card that was sealed so, byte by byte; None for any other data.

    Of data known to be such a card (`is_whole`) only the seal is read.
    """
    begin = png.rfind(_KEYWORD)
    match = _SEAL.match(png, max(begin, 0))
    if match is None:
        return None
    card = StoredCard(
        png, match[1].decode(), int(match[2]), f'"{match[3].decode()}"'
    )
    if (
        is_whole
        or seal(card.of, png[: begin - 4], card.missing_glyphs) == card
    ):
        return card
    return None
