"""Draws a card: lays it out, paints it, and writes it as a PNG. Begin here to read how a card is drawn."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image, ImageDraw, features

from cardbeat.cards.drawing.background import empty_card
from cardbeat.cards.drawing.canvas import Canvas
from cardbeat.cards.drawing.emoji_contrast import EmojiContrast, Rescue, cells, outlined
from cardbeat.cards.drawing.layout import Shape, Text
from cardbeat.cards.drawing.templates import lay_out
from cardbeat.cards.drawing.themes import Colour
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

DRAWING_FOLDERS = ("cards/drawing", "fonts", "light", "typeset", "words")
"""Folders of the package whose code and tables a drawing depends on, sub-folders included."""
OTHER_DRAWING_FILES = ("cards/request.py", "characters.py", "web/query.py")
"""Other files that a drawing depends on: they turn a URL into the texts of a card."""

_SUPERSAMPLING = 4


class Drawing(NamedTuple):
    """A PNG of 1200 x 630, how many characters no font had or nothing shaped, and whether the description had no room.

    `unshaped` are the characters that would have to be shaped.
    """

    png: bytes
    missing_glyphs: int
    left_out: bool = False
    unshaped: int = 0


class Renderer:
    """Draws cards. Any number of threads may use one."""

    def __init__(self, fonts: Fonts, accent: Colour | None = None) -> None:
        self._fonts = fonts
        self._accent = accent
        self._serif = fonts.with_serif()
        self._contrast = EmojiContrast()

    def render(self, card: Card) -> Drawing:
        layout = lay_out(self._fonts, self._serif, card, self._accent)
        canvas = Canvas(empty_card(layout.theme, layout.mirrored))
        for shape in layout.shapes:
            _paint_shape(canvas, shape)
        for text in layout.texts:
            self._paint_text(canvas, text)
        texts = (card.title, card.description, card.author, card.tag, card.domain)
        unshaped = sum(map(self._fonts.unshaped, texts))
        return Drawing(canvas.png(), layout.missing_glyphs + unshaped, layout.left_out, unshaped)

    def _paint_text(self, canvas: Canvas, text: Text) -> None:
        block = text.block
        for n, line in enumerate(block.lines):
            x, baseline = text.x + _indent(text, line), text.y + block.first_baseline_px + n * block.line_height_px
            if line.ink:
                canvas.paint(line.ink, x + line.ink_x, baseline + line.ink_y, text.colour, text.over)
            if line.emoji:
                self._paint_emoji(canvas, text, line, x, baseline - line.ascent_px)

    def _paint_emoji(self, canvas: Canvas, text: Text, line: TextLine, x: int, y: int) -> None:
        """Paint the emoji of a line at its upper left corner. Those that would not be seen are outlined or inked."""
        layer = Image.new("RGBA", (line.width_px, line.ascent_px + line.descent_px))
        line.draw_emoji(layer, 0, line.ascent_px)
        for drawn, box in cells(line, layer.height):
            picture = layer.crop(box)
            rescue = self._contrast.judge(drawn, picture, text.colour)
            if rescue is Rescue.INK:
                canvas.paint(picture.getchannel("A"), x + box[0], y, text.colour, text.over)
                layer.paste((0, 0, 0, 0), box)
            elif rescue is Rescue.OUTLINE:
                grown, edge = outlined(picture, text.block.size_px)
                canvas.paint(grown, x + box[0] - edge, y - edge, text.colour, text.over)
        canvas.add_emoji(layer, x, y)


def renderer_version(package: "Traversable", accent: Colour | None = None) -> str:
    """A name that changes with all that can change a drawing: code, fonts, accent, and whether Raqm shapes text.

    `package` is the folder of this package: on disk, or inside the zipapp.
    """
    import hashlib  # noqa: PLC0415 - the command `card` does without it

    files = {name: package / name for name in OTHER_DRAWING_FILES}
    for folder in DRAWING_FOLDERS:
        files.update(_files_below(package / folder, f"{folder}/"))
    digest = hashlib.sha256()
    for _, file in sorted(files.items()):
        digest.update(file.read_bytes())
    digest.update((accent or "").encode())
    shaping = "raqm" if features.check("raqm") else "basic"
    return f"{digest.hexdigest()[:12]}-{shaping}"


def own_version(accent: Colour | None = None) -> str:
    """The `renderer_version` of this package."""
    from importlib import resources  # noqa: PLC0415 - the command `card` does without it

    return renderer_version(resources.files("cardbeat"), accent)


def _files_below(folder: "Traversable", path: str) -> Iterator[tuple[str, "Traversable"]]:
    """Code and tables below a folder, by path. `build` folders are left out: they draw nothing."""
    for file in folder.iterdir():
        if file.is_dir() and file.name != "build":
            yield from _files_below(file, f"{path}{file.name}/")
        elif file.name.endswith((".py", ".json", ".bin", ".txt")):
            yield path + file.name, file


# Shapes are coverage: "L" images, 255 where a whole pixel is inside. All threads share those that are kept: don't
# change them. `lru_cache` has a lock of its own.
@lru_cache(8)
def rounded(width: int, height: int, radius: int) -> Image.Image:
    """A rectangle with rounded corners."""
    whole = Image.new("L", (width, height), 255)
    round_ = disc(2 * radius) if radius else whole
    for right in (False, True):
        for low in (False, True):
            corner = round_.crop((radius * right, radius * low, radius * (right + 1), radius * (low + 1)))
            whole.paste(corner, ((width - radius) * right, (height - radius) * low))
    return whole


@lru_cache(2)
def triangle(width: int, height: int) -> Image.Image:
    """A triangle that points up."""
    wide, high = width * _SUPERSAMPLING, height * _SUPERSAMPLING
    large = Image.new("L", (wide, high))
    ImageDraw.Draw(large).polygon(((0, high), (wide / 2, 0), (wide, high)), fill=255)
    return large.reduce(_SUPERSAMPLING)


def disc(size: int) -> Image.Image:
    """A disc that fills a square."""
    scale = size * _SUPERSAMPLING
    large = Image.new("L", (scale, scale))
    ImageDraw.Draw(large).ellipse((0, 0, scale - 1, scale - 1), fill=255)
    return large.reduce(_SUPERSAMPLING)


def _paint_shape(canvas: Canvas, shape: Shape) -> None:
    width, height = shape.width, shape.height
    coverage = triangle(width, height) if shape.points_up else rounded(width, height, shape.radius)
    canvas.paint(coverage, shape.x, shape.y, shape.colour, shape.over or canvas.colour_at(shape.x, shape.y))


def _indent(text: Text, line: TextLine) -> int:
    """The distance of a line from its box's left side: less than 0 if its first letter hangs out."""
    spare = text.width - line.width_px
    if text.align == "left":
        return -line.hanging_px(text.block.size_px)
    return spare // 2 if text.align == "center" else spare
