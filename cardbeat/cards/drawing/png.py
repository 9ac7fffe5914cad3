"""Writes rows of palette indices as a PNG. Rows of an empty background are compressed once, for all cards.

Rows are compressed in bands, each with DEFLATE (RFC 1951) and ended with an empty stored block. No band refers to
another, so bands of the background can stand between those that were painted on.
"""

import struct
import zlib
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

BAND_ROWS = 15  # smaller bands cost bytes, larger ones time: a band is compressed again if any text touches it
LEVEL = 2  # takes a quarter of the time of zlib's default, 6, and makes a quarter more bytes
DENSEST = 6

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ZLIB_HEADER = b"\x78\x9c"
_FINAL_BLOCK = b"\x03\x00"  # an empty block that ends the DEFLATE stream


def inflated(bands: Iterable[bytes]) -> bytes:
    """The rows of compressed bands."""
    return zlib.decompressobj(-15).decompress(b"".join(bands))


def zlib_stream(
    rows: bytes, band_bytes: int, known: Sequence[bytes], changed: Collection[int], level: int = LEVEL
) -> bytes:
    """All rows as a zlib stream (RFC 1950). Changed bands are compressed, neighbours together; others are `known`."""
    parts = [_ZLIB_HEADER]
    for is_changed, group in groupby(range(len(known)), key=changed.__contains__):
        bands = list(group)
        if is_changed:
            parts.append(_deflated(rows[bands[0] * band_bytes : (bands[-1] + 1) * band_bytes], level))
        else:
            parts += known[bands[0] : bands[-1] + 1]
    return b"".join((*parts, _FINAL_BLOCK, struct.pack(">I", zlib.adler32(rows))))


def png_file(width: int, height: int, palette: bytes, stream: bytes) -> bytes:
    """A PNG with a palette and one byte a pixel. Each row in the zlib stream begins with its filter type, 0."""
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", stream), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _deflated(rows: bytes, level: int) -> bytes:
    compressor = zlib.compressobj(level, wbits=-15)
    return compressor.compress(rows) + compressor.flush(zlib.Z_SYNC_FLUSH)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
