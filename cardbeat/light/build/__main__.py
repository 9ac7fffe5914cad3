"""Replaces all files of `cardbeat/light`."""

import zlib
from pathlib import Path

from cardbeat.cards.drawing.background import BAND_END, STRIDE
from cardbeat.cards.drawing.layout import HEIGHT
from cardbeat.cards.drawing.png import BAND_ROWS
from cardbeat.light.build.lights import LIGHTS, rows_of

FOLDER = Path(__file__).resolve().parents[1]


def deflated(rows: bytes) -> bytes:
    """A band that refers to no other one, ended with an empty stored block."""
    compressor = zlib.compressobj(9, wbits=-15, memLevel=9)
    return compressor.compress(rows) + compressor.flush(zlib.Z_SYNC_FLUSH)


def main() -> None:
    for old in FOLDER.glob("*.bin"):
        old.unlink()
    for name in LIGHTS:
        for mirrored in (False, True):
            rows, band = rows_of(name, mirrored).tobytes(), STRIDE * BAND_ROWS
            bands = [deflated(rows[start : start + band]) for start in range(0, len(rows), band)]
            if b"".join(bands).count(BAND_END) != HEIGHT // BAND_ROWS:
                raise SystemExit(f"a band of {name} holds the mark of its end")
            (FOLDER / f"{name}{'-mirrored' * mirrored}.bin").write_bytes(b"".join(bands))


if __name__ == "__main__":
    main()
