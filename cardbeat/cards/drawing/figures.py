"""The shapes on cards, as coverage: "L" images, 255 where a whole pixel is inside."""

from functools import lru_cache

from PIL import Image, ImageChops, ImageDraw

from cardbeat.cards.drawing.layout import HEIGHT, PANEL, PANEL_RADIUS, PANEL_TAIL, WIDTH

_SUPERSAMPLING = 4
_HEAD = (0.33, 0.2, 0.67, 0.54)  # an ellipse in parts of a disc's size: left, top, right, bottom
_SHOULDERS = (0.14, 0.64, 0.86, 1.36)


# All threads share what these keep: don't change it. `lru_cache` has a lock of its own.
@lru_cache(8)
def rounded(width: int, height: int, radius: int) -> Image.Image:
    """A rectangle with rounded corners."""
    whole = Image.new("L", (width, height), 255)
    disc = _disc(2 * radius) if radius else whole
    for right in (False, True):
        for low in (False, True):
            corner = disc.crop((radius * right, radius * low, radius * (right + 1), radius * (low + 1)))
            whole.paste(corner, ((width - radius) * right, (height - radius) * low))
    return whole


@lru_cache(2)
def person(size: int) -> Image.Image:
    """A head and shoulders, cut off by a disc of that size."""
    scale = size * _SUPERSAMPLING
    large = Image.new("L", (scale, scale))
    for box in (_HEAD, _SHOULDERS):
        ImageDraw.Draw(large).ellipse([part * scale for part in box], fill=255)
    return ImageChops.multiply(large.reduce(_SUPERSAMPLING), _disc(size))


def panel(mirrored: bool) -> Image.Image:
    """The bubble of the template `blog` with its tail, on an image as large as the card."""
    whole = Image.new("L", (WIDTH, HEIGHT))
    whole.paste(rounded(PANEL.width, PANEL.height, PANEL_RADIUS), (PANEL.x, PANEL.y))
    left, top = min(x for x, _ in PANEL_TAIL), min(y for _, y in PANEL_TAIL)
    width, height = max(x for x, _ in PANEL_TAIL) - left, max(y for _, y in PANEL_TAIL) - top
    tail = Image.new("L", (width * _SUPERSAMPLING, height * _SUPERSAMPLING))
    corners = [((x - left) * _SUPERSAMPLING, (y - top) * _SUPERSAMPLING) for x, y in PANEL_TAIL]
    ImageDraw.Draw(tail).polygon(corners, fill=255)
    whole.paste(tail.reduce(_SUPERSAMPLING), (left, top))
    return whole.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else whole


def part_of_disc(x: int, y: int, radius: int) -> tuple[Image.Image, int, int]:
    """The part of a disc around a point that is on the card, and its upper left corner."""
    left, top = x - radius, y - radius
    box = max(-left, 0), max(-top, 0), min(2 * radius, WIDTH - left), min(2 * radius, HEIGHT - top)
    return _disc(2 * radius).crop(box), max(left, 0), max(top, 0)


def _disc(size: int) -> Image.Image:
    scale = size * _SUPERSAMPLING
    large = Image.new("L", (scale, scale))
    ImageDraw.Draw(large).ellipse((0, 0, scale - 1, scale - 1), fill=255)
    return large.reduce(_SUPERSAMPLING)
