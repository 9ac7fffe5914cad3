"""Sets text into a box: shrink to fit, then wrap in balanced lines, then cut on a grapheme with an ellipsis."""

from dataclasses import dataclass

from PIL import Image, ImageDraw

from cardbeat.cards.fonts import Face, Fonts

ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Run:
    """Text of one line in one face and one direction; `x_px` is where its origin stands in the line."""

    x_px: float
    width_px: float
    text: str
    face: Face
    emoji: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Runs in visual order. `left_px` to `right_px` and `-ascent_px` to `descent_px` hold all its ink,
    measured from the origin at the left end of the baseline."""

    runs: tuple[Run, ...]
    width_px: float
    left_px: float
    right_px: float
    ascent_px: float
    descent_px: float

    def draw(self, mask: ImageDraw.ImageDraw, x: float, baseline: float) -> None:
        """Paints the text, as coverage, into an "L" image."""
        for run in self.runs:
            if not run.emoji:
                mask.text((x + run.x_px, baseline), run.text, fill=255, font=run.face, anchor="ls")

    @property
    def has_emoji(self) -> bool:
        return any(run.emoji for run in self.runs)

    def emoji(self, layer: Image.Image, x: float, baseline: float) -> None:
        """Paints the colour emoji into an "RGBA" image, over what is there."""
        draw = ImageDraw.Draw(layer)
        for run in self.runs:
            if run.emoji:
                draw.text((x + run.x_px, baseline), run.text, font=run.face, anchor="ls", embedded_color=True)


@dataclass(frozen=True, slots=True)
class Block:
    """Lines set under one another; the baseline of line `n` is `first_baseline_px + n * line_height_px` from its top.

    No ink leaves `width_px` x `height_px`. `rtl` is the paragraph's direction by its first strong character;
    `missing` counts the characters that no font has, which are drawn as nothing.
    """

    lines: tuple[Line, ...]
    size_px: int
    line_height_px: int
    first_baseline_px: int
    width_px: float
    height_px: int
    rtl: bool
    missing: int
    cut: bool


def fit(
    fonts: Fonts,
    text: str,
    *,
    width_px: int,
    max_lines: int = 1,
    height_px: int | None = None,
    size_px: int,
    min_size_px: int,
    weight: int = 400,
    leading: float = 1.15,
    balance: bool = True,
    letter_spacing_px: float = 0,
) -> Block:
    """Sets `text` at the largest size, in steps, at which it stands in the box; at `min_size_px` it is cut.

    The box is `width_px` by `max_lines`, and by `height_px` where that is given. `letter_spacing_px` is for
    short labels in scripts whose letters do not join.
    """
    words = text.split()
    for size in range(size_px, min_size_px - 1, -2):
        lines = _wrap(fonts, words, width_px, size, weight)
        most = max_lines if height_px is None else max(1, min(max_lines, int(height_px / (size * leading))))
        if len(lines) <= most and all(line.width_px <= width_px for line in lines):
            return _block(lines, size, leading, cut=False)
    return _block(lines[:most], size, leading, cut=True)


def _wrap(fonts: Fonts, words: list[str], width_px: int, size: int, weight: int) -> list[Line]:
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _line(fonts, longer, size, weight).width_px <= width_px:
            lines[-1] = longer
        else:
            lines.append(word)
    return [_line(fonts, line, size, weight) for line in lines]


def _line(fonts: Fonts, text: str, size: int, weight: int) -> Line:
    slice_ = fonts.slice_for("A")
    assert slice_ is not None  # noqa: S101
    face = fonts.face(slice_, weight, size)
    width = face.getlength(text)
    left, top, right, bottom = face.getbbox(text, anchor="ls")
    return Line((Run(0, width, text, face),), width, left, right, -top, bottom)


def _block(lines: list[Line], size: int, leading: float, cut: bool) -> Block:
    height = round(size * leading)
    width = max((line.width_px for line in lines), default=0)
    return Block(tuple(lines), size, height, round(size * 0.95), width, height * len(lines), False, 0, cut)
