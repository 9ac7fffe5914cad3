"""The one door to font choice: which file inside the package draws a character, and its opened face."""

import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from importlib import resources
from io import BytesIO

from PIL import ImageFont

Face = ImageFont.FreeTypeFont


@dataclass(frozen=True, slots=True)
class Slice:
    """One font in one or more weights, each a WOFF2 file, covering the same characters."""

    name: str
    weights: tuple[int, ...]
    starts: tuple[int, ...]
    """Where covered (even places) and uncovered (odd places) stretches of codepoints begin."""

    def covers(self, codepoint: int) -> bool:
        return bisect_right(self.starts, codepoint) % 2 == 1

    def file(self, weight: int) -> str:
        """The file of the nearest weight there is."""
        return f"{self.name}-{min(self.weights, key=lambda w: abs(w - weight))}.woff2"


class Fonts:
    """The slices in the order they are asked, and a bounded set of opened faces.

    Faces may be used by several threads at once: Pillow holds the interpreter's lock while it calls FreeType.
    """

    def __init__(self, max_faces: int = 64) -> None:
        self._folder = resources.files("cardbeat") / "fonts"
        index = json.loads((self._folder / "index.json").read_text("utf-8"))
        self._slices = [Slice(s["name"], tuple(s["weights"]), tuple(s["starts"])) for s in index["slices"]]
        self._faces: OrderedDict[tuple[str, int], Face] = OrderedDict()
        self._max_faces = max_faces
        self._lock = threading.Lock()

    def slice_for(self, cluster: str) -> Slice | None:
        """The first slice that has every character of a grapheme cluster, else its first character, else None."""
        for part in (cluster, cluster[:1]):
            for candidate in self._slices:
                if all(candidate.covers(ord(c)) for c in part):
                    return candidate
        return None

    def face(self, slice_: Slice, weight: int, size_px: int) -> Face:
        key = (slice_.file(weight), size_px)
        with self._lock:
            face = self._faces.get(key)
            if face is None:
                face = self._faces[key] = self._open(*key)
            self._faces.move_to_end(key)
            while len(self._faces) > self._max_faces:
                self._faces.popitem(last=False)
            return face

    def _open(self, name: str, size_px: int) -> Face:
        return ImageFont.truetype(BytesIO((self._folder / name).read_bytes()), size_px)
