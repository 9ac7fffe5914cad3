"""Packs rows of palette indices as a PNG, reusing what is known of rows that nothing was painted on.

The rows are packed in bands that do not refer to one another, so that a band of the empty background is packed once.
"""

import struct
import zlib
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

BAND_ROWS = 15
"""Fewer cost bytes, more cost time: each band is one that some text touches."""
LEVEL = 3
"""A third of the time of zlib's usual 6 for a sixth more bytes; a band of the background is packed once, with 6."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ZLIB_HEADER = b"\x78\x9c"
_LAST_BLOCK = b"\x03\x00"


def packed_bands(rows: bytes, band_bytes: int) -> list[bytes]:
    """Every band of the rows, packed."""
    return [_packed(rows[start : start + band_bytes], 6) for start in range(0, len(rows), band_bytes)]


def unpacked(bands: Iterable[bytes]) -> bytes:
    """The rows of packed bands."""
    return zlib.decompressobj(-15).decompress(b"".join(bands))


def packed_rows(rows: bytes, band_bytes: int, known: Sequence[bytes], changed: Collection[int]) -> bytes:
    """A zlib stream of all rows, of which only the changed bands are packed anew, neighbours together."""
    packed = [_ZLIB_HEADER]
    for is_changed, group in groupby(range(len(known)), key=changed.__contains__):
        bands = list(group)
        if is_changed:
            packed.append(_packed(rows[bands[0] * band_bytes : (bands[-1] + 1) * band_bytes], LEVEL))
        else:
            packed += known[bands[0] : bands[-1] + 1]
    return b"".join((*packed, _LAST_BLOCK, struct.pack(">I", zlib.adler32(rows))))


def png(width: int, height: int, palette: bytes, stream: bytes) -> bytes:
    """A PNG of one byte a pixel. Each row in the stream begins with its filter type."""
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", stream), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _packed(rows: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, wbits=-15)
    return packer.compress(rows) + packer.flush(zlib.Z_SYNC_FLUSH)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
