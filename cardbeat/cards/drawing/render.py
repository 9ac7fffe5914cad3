"""Draws a card: lays it out, paints it, and writes it as a PNG. Begin here."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image, ImageDraw, __version__, features

from cardbeat.cards.drawing.canvas import (
    Background,
    Canvas,
    empty_card,
    needs_ink,
    needs_outline,
    outlined,
)
from cardbeat.cards.drawing.colours import Colour
from cardbeat.cards.drawing.layout import Layout, Shape, Text
from cardbeat.cards.drawing.templates import lay_out
from cardbeat.cards.request import Card
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Emoji
from cardbeat.typeset.unicode.clusters import clean

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

DRAWING_FOLDERS = ("cards/drawing", "fonts", "light", "typeset", "words")
"""Folders of the package whose code and tables a drawing depends on, sub-folders included."""
OTHER_DRAWING_FILES = ("cards/request.py", "text.py", "web/message.py")
"""Other files that a drawing depends on: they turn a URL into the texts of a card."""
_TABLES = (".py", ".json", ".bin", ".txt", ".png", ".json.gz")
_WORD_LISTS = "words/"

_SUPERSAMPLING = 4


class Drawing(NamedTuple):
    """A PNG of 1200 x 630.

    `missing_glyphs` counts characters that no font has, and those that are not shaped; `unshaped`
    these alone.
    """

    png: bytes
    missing_glyphs: int
    unshaped: int = 0


class Renderer:
    """Draws cards, in one thread."""

    def __init__(
        self, fonts: Fonts, accent: Colour | None = None
    ) -> None:
        self._fonts = fonts
        self._accent = accent

    def render(self, card: Card) -> Drawing:
        layout = lay_out(self._fonts, card, self._accent)
        canvas = Canvas(_background(layout._replace(texts=())))
        for text in layout.texts:
            _paint_text(canvas, text)
        texts = (
            card.title,
            card.description,
            card.author,
            card.tag,
            card.domain,
        )
        others = [clean(text) for text in texts if not text.isascii()]
        missing = sum(self._fonts.drawable(text)[1] for text in others)
        unshaped = sum(map(self._fonts.unshaped, texts))
        return Drawing(canvas.png(), missing + unshaped, unshaped)


def renderer_version(
    package: "Traversable", accent: Colour | None = None
) -> str:
    """A name that changes with all that can change a drawing: code, data, accent, Pillow, Raqm.

    `package` is the folder of this package: on disk, or inside the zipapp.
    """
    import hashlib  # noqa: PLC0415 - the command `card` does without it

    files = {name: package / name for name in OTHER_DRAWING_FILES}
    for folder in DRAWING_FOLDERS:
        files.update(_files_below(package / folder, f"{folder}/"))
    digest = hashlib.sha256()
    for _, file in sorted(files.items()):
        digest.update(file.read_bytes())
    digest.update(f"{accent or ''} {__version__}".encode())
    shaping = "raqm" if features.check("raqm") else "basic"
    return f"{digest.hexdigest()[:12]}-{shaping}"


def own_version(accent: Colour | None = None) -> str:
    """The `renderer_version` of this package."""
    from importlib import resources  # noqa: PLC0415 - the command `card` does without it

    return renderer_version(resources.files("cardbeat"), accent)


def _files_below(
    folder: "Traversable", path: str
) -> Iterator[tuple[str, "Traversable"]]:
    """Code and tables below a folder, by path, without the folders `build`, which draw nothing.

    Of the font files, which are 20 MB, only the list of their digests is among them.
    """
    for file in folder.iterdir():
        if file.is_dir():
            if file.name != "build":
                yield from _files_below(file, f"{path}{file.name}/")
        elif file.name.endswith(_TABLES) or path == _WORD_LISTS:
            yield path + file.name, file


def _paint_text(canvas: Canvas, text: Text) -> None:
    block = text.block
    baseline = text.y + block.first_baseline_px
    for line in block.lines:
        spare = text.width - line.width_px
        x = (
            text.x
            + {"left": 0, "center": spare // 2, "right": spare}[
                text.align
            ]
        )
        canvas.paint(
            line.ink, x, baseline + line.ink_y, text.colour, text.over
        )
        for emoji in line.emoji:
            _paint_emoji(
                canvas, text, emoji, x + emoji.x, baseline + emoji.y
            )
        baseline += block.line_height_px


def _paint_emoji(
    canvas: Canvas, text: Text, emoji: Emoji, x: int, y: int
) -> None:
    """Paint an emoji. One that would not be seen is outlined or inked."""
    if needs_ink(emoji.drawn):
        canvas.paint(
            emoji.picture.getchannel("A"), x, y, text.colour, text.over
        )
        return
    if needs_outline(emoji.drawn, text.colour):
        grown, edge = outlined(emoji.picture, text.block.size_px)
        canvas.paint(grown, x - edge, y - edge, text.colour, text.over)
    canvas.add_emoji(emoji.picture, x, y)


@lru_cache(4)
def _background(layout: Layout) -> Background:
    """What is under the texts of a layout. It is kept: don't change it."""
    canvas = Canvas(empty_card(layout.theme, layout.mirrored))
    for shape in layout.shapes:
        _paint_shape(canvas, shape)
    return canvas.background()


def _paint_shape(canvas: Canvas, shape: Shape) -> None:
    coverage = _coverage(
        shape.width, shape.height, shape.radius, shape.points
    )
    over = shape.over or canvas.colour_at(shape.x, shape.y)
    canvas.paint(coverage, shape.x, shape.y, shape.colour, over)


def _coverage(
    width: int, height: int, radius: int, points: str
) -> Image.Image:
    """The coverage of a `Shape`."""
    if not points:
        return rounded(width, height, radius)
    large = Image.new(
        "L", (width * _SUPERSAMPLING, height * _SUPERSAMPLING)
    )
    corners = ((0, large.height / 2), (large.width, 0), large.size)
    ImageDraw.Draw(large).polygon(corners, fill=255)
    image = large.reduce(_SUPERSAMPLING)
    if points == "right":
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return image


def rounded(width: int, height: int, radius: int) -> Image.Image:
    """Coverage ("L") of a rectangle with rounded corners; a disc if the radius is half its size."""
    scale = _SUPERSAMPLING
    large = Image.new("L", (width * scale, height * scale))
    corners = (0, 0, width * scale - 1, height * scale - 1)
    ImageDraw.Draw(large).rounded_rectangle(
        corners, radius * scale, fill=255
    )
    return large.reduce(scale)
