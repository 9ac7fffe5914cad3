"""Replaces all files of `cardbeat/light`."""

from pathlib import Path

from PIL import Image

from cardbeat.cards.drawing.canvas import png_file, ramp_of
from cardbeat.cards.drawing.colours import THEME_OF, rgb, shades
from cardbeat.cards.drawing.layout import HEIGHT, WIDTH
from cardbeat.light.build.lights import LIGHTS, indices_of

FOLDER = Path(__file__).resolve().parents[1]


def main() -> None:
    for old in FOLDER.glob("*.png"):
        old.unlink()
    for name in LIGHTS:
        theme = next(theme for theme in THEME_OF.values() if theme.light == name)
        colours = ramp_of(theme)
        if theme.panel:
            colours += shades((rgb(theme.ramp[0]),), theme.panel)
        indices = indices_of(name)
        rows = Image.new("L", (WIDTH + 1, HEIGHT))
        rows.paste(indices, (1, 0))
        palette = bytes(part for colour in colours for part in colour)
        picture = png_file(palette, rows.tobytes(), level=9)
        (FOLDER / f"{name}.png").write_bytes(picture)


if __name__ == "__main__":
    main()
