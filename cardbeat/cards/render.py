"""Draws a card: lays it out, paints it, and compresses it as a PNG."""

import hashlib
import threading
from dataclasses import dataclass
from importlib import resources

from PIL import Image, features

from cardbeat.cards.background import Background, background
from cardbeat.cards.canvas import Canvas
from cardbeat.cards.emoji_contrast import EmojiContrast, Rescue, cells, outlined
from cardbeat.cards.figures import panel, part_of_disc, person, rounded
from cardbeat.cards.layout import WIDTH, Shape, Text
from cardbeat.cards.request import Card
from cardbeat.cards.templates import lay_out
from cardbeat.cards.themes import Theme
from cardbeat.resources import read_bytes
from cardbeat.typeset.edge import hanging_px
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.line import TextLine

DRAWING_FOLDERS = ("cards", "fonts", "typeset", "words")
"""Folders of the package that hold what a drawing is made with."""
TEXT_DECODING = ("characters.py", "web/query.py")
"""Other files, which decide what texts a URL holds and whether they show anything."""
NOT_DRAWING = {"drawing_queue.py", "eviction.py", "folder.py", "routes.py", "store.py"}
"""Files there that may change without a stored card changing."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A PNG of 1200 x 630, and how many characters no font had."""

    png: bytes
    missing_glyphs: int


class Renderer:
    """Draws cards and keeps the empty backgrounds. Any number of threads may use one."""

    def __init__(self, fonts: Fonts) -> None:
        self._fonts = fonts
        self._serif = fonts.with_serif()
        self._contrast = EmojiContrast(fonts.emoji)
        self._backgrounds: dict[tuple[Theme, bool], Background] = {}
        """By theme and whether mirrored. Written under `_lock`, which also lets each be made only once."""
        self._lock = threading.Lock()

    def render(self, card: Card) -> Drawing:
        layout = lay_out(self._fonts, self._serif, card)
        canvas = Canvas(self._background(layout.theme, layout.mirrored))
        painter = _Painter(canvas, self._contrast)
        for shape in layout.shapes:
            painter.shape(shape)
        for text in layout.texts:
            painter.text(text)
        return Drawing(canvas.png(), layout.missing_glyphs)

    def _background(self, theme: Theme, mirrored: bool) -> Background:
        with self._lock:
            found = self._backgrounds.get((theme, mirrored))
            if found is None:
                found = self._backgrounds[theme, mirrored] = empty_card(theme, mirrored)
            return found


def empty_card(theme: Theme, mirrored: bool) -> Background:
    """The background of a theme's cards. Takes some 60 ms: callers keep it."""
    canvas = Canvas(background(theme, mirrored))
    for disc in theme.discs:
        coverage, left, top = part_of_disc(WIDTH - disc.x if mirrored else disc.x, disc.y, disc.radius)
        canvas.paint_over_inks(coverage, left, top, disc.colour)
    if theme.panel:
        canvas.paint_over_inks(panel(mirrored), 0, 0, theme.panel)
    return canvas.as_background()


def renderer_version() -> str:
    """Changes with whatever changes a drawing: the code and fonts named above, and whether Raqm shapes text."""
    package = resources.files("cardbeat")
    names = [f"{folder}/{file.name}" for folder in DRAWING_FOLDERS for file in (package / folder).iterdir()]
    digest = hashlib.sha256()
    for name in sorted([*names, *TEXT_DECODING]):
        if name.endswith((".py", ".json", ".bin", ".txt")) and name.rpartition("/")[2] not in NOT_DRAWING:
            digest.update(read_bytes(name))
    shaping = "raqm" if features.check("raqm") else "basic"
    return f"{digest.hexdigest()[:12]}-{shaping}"


class _Painter:
    """Paints shapes and texts onto one canvas."""

    def __init__(self, canvas: Canvas, contrast: EmojiContrast) -> None:
        self._canvas, self._contrast = canvas, contrast

    def shape(self, shape: Shape) -> None:
        coverage = person(shape.width) if shape.person else rounded(shape.width, shape.height, shape.radius)
        over = shape.over or self._canvas.colour_at(shape.x, shape.y)
        self._canvas.paint(coverage, shape.x, shape.y, shape.colour, over)

    def text(self, text: Text) -> None:
        block = text.block
        for n, line in enumerate(block.lines):
            x, baseline = text.x + _indent(text, line), text.y + block.first_baseline_px + n * block.line_height_px
            if line.ink:
                self._canvas.paint(line.ink, x + line.ink_x, baseline + line.ink_y, text.colour, text.over)
            if line.emoji:
                self._emoji(text, line, x, baseline - line.ascent_px)

    def _emoji(self, text: Text, line: TextLine, x: int, y: int) -> None:
        """Those of a line, whose upper left corner is given. What would be lost is outlined, or a sign in ink."""
        layer = Image.new("RGBA", (line.width_px, line.ascent_px + line.descent_px))
        line.draw_emoji(layer, 0, line.ascent_px)
        for cell in cells(line, layer.height):
            picture = layer.crop(cell.box)
            rescue = self._contrast.judge(cell.drawn, picture, text.colour)
            if rescue is Rescue.INK:
                self._canvas.paint(picture.getchannel("A"), x + cell.box[0], y, text.colour, text.over)
                layer.paste((0, 0, 0, 0), cell.box)
            elif rescue is Rescue.OUTLINE:
                grown, edge = outlined(picture, text.block.size_px)
                self._canvas.paint(grown, x + cell.box[0] - edge, y - edge, text.colour, text.over)
        self._canvas.add_emoji(layer, x, y)


def _indent(text: Text, line: TextLine) -> int:
    """How far right of its box's left side a line begins: less than 0 where its first letter hangs out."""
    spare = text.width - line.width_px
    if text.align == "left":
        return -hanging_px(line, text.block.size_px)
    return spare // 2 if text.align == "center" else spare


RENDERER_VERSION = renderer_version()
