"""Which emoji can't be seen on their background: dark ones on a dark card, white ones on a white one."""

import json

from PIL import Image, ImageDraw, ImageFont, ImageStat

from cardbeat.fonts.build.emoji import FIRST_CODEPOINT
from cardbeat.fonts.build.subsets import FOLDER, BuiltSubset, read

SIZE_PX = 100
DARKEST, LIGHTEST = 84, 228
"""Brightness, 0 to 255: a colour below the first is not seen on a dark card, from the second on not on a light one."""
MOST_LOST = 0.5  # part of an emoji that may be unseen before it gets an outline
ONE_COLOUR = 0.97  # part of an emoji that is dark if it has no other colour
COLOURED = 64
"""Difference of the strongest and the weakest of red, green and blue in a sign with a colour of its own: ♥️ is red."""
FIRST_PICTOGRAPH = "\U0001f000"
BLACK = "⚫⬛◼◾▪"  # signs that mean their colour


def write_contrast(subsets: list[BuiltSubset]) -> None:
    """`emoji_contrast.json`: the characters that draw black signs, and emoji unseen on dark and on light cards."""
    sequences = (FOLDER / "emoji.txt").read_text("utf-8").splitlines()
    found = {"ink": "", "dark": "", "light": ""}
    for subset in subsets:
        font = ImageFont.truetype(read(f"{subset.name}-400"), SIZE_PX, layout_engine=ImageFont.Layout.BASIC)
        for codepoint in subset.codepoints:
            sequence = sequences[codepoint - FIRST_CODEPOINT]
            is_sign = len(sequence) == 1 and sequence < FIRST_PICTOGRAPH and sequence not in BLACK
            found = {name: found[name] + chr(codepoint) * lost for name, lost in _lost(font, codepoint, is_sign).items()}
    (FOLDER / "emoji_contrast.json").write_text(json.dumps(found, indent=0) + "\n", "ascii")


def _lost(font: ImageFont.FreeTypeFont, codepoint: int, is_sign: bool) -> dict[str, bool]:
    picture = Image.new("RGBA", (SIZE_PX * 11 // 10, SIZE_PX * 13 // 10))
    ImageDraw.Draw(picture).text((0, SIZE_PX), chr(codepoint), font=font, anchor="ls", embedded_color=True)
    opaque = picture.getchannel("A").convert("1", dither=Image.Dither.NONE)
    counts = picture.convert("L").histogram(opaque)
    dark = sum(counts[:DARKEST]) / max(sum(counts), 1)
    light = sum(counts[LIGHTEST:]) / max(sum(counts), 1)
    means = ImageStat.Stat(picture.convert("RGB"), opaque).mean
    if dark >= ONE_COLOUR and is_sign:
        return {"ink": max(means) - min(means) <= COLOURED, "dark": False, "light": False}
    return {"ink": False, "dark": dark > MOST_LOST, "light": light > MOST_LOST}
