"""Draws texts of 68 languages beside Chromium with Noto, and lists what differs, with its reason.

    python -m tests.bench.languages

Needs Debian's packages chromium, fonts-noto-core, fonts-noto-extra and fonts-noto-cjk. Compared are where
a line may end, and the width, height and amount of the ink. Fails if a difference has no reason.

`languages.json` has the reasons. In "lines", by language: how many breaks more and fewer there may
be here, and why. In "ink", by script: why its ink is another, and by what part of it at most.
"""

import json
import shutil
from io import BytesIO
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps, ImageStat
from playwright.sync_api import sync_playwright

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.text import Style, fit
from cardbeat.typeset.unicode.breaks import Break, breaks
from cardbeat.typeset.unicode.clusters import clean, clusters
from cardbeat.typeset.unicode.han import language_of

SIZE_PX = 40
MARGIN_PX = 40
TOLERANCES = {"width": 0.02, "height": 0.06, "amount": 0.12}
"""Parts by which the ink may be more or less without being listed."""
HERE = Path(__file__)
KNOWN = json.loads(HERE.with_suffix(".json").read_text("utf-8"))
MEASURE = HERE.with_suffix(".js").read_text("utf-8")
COMPOUND = "a compound breaks after its hyphen, and a path after its stroke, if nothing else fits"
PERCENT = "a percent sign stays with its number"
HAN = {"ja": "JP", "ko": "KR", "zh-Hans": "SC", "zh-Hant": "TC"}
NO_REASON = (0, 0, None)


class Language(NamedTuple):
    """A line of `languages.txt`."""

    code: str
    script: str
    text: str

    @property
    def font(self):
        if self.code in HAN:
            return f"Noto Sans CJK {HAN[self.code]}"
        style = "Serif" if self.script == "tibetan" else "Sans"
        return f"Noto {style} {self.script.capitalize()}"


class Drawn(NamedTuple):
    """A sentence on one line, black on white, and its pieces where lines are as short as can be."""

    ink: Image.Image
    pieces: list[str]

    def sizes(self):
        """In pixels."""
        ink = ImageOps.invert(self.ink)
        left, top, right, bottom = ink.getbbox() or (0, 0, 1, 1)
        amount = ImageStat.Stat(ink).sum[0] / 255
        return {
            "width": right - left,
            "height": bottom - top,
            "amount": amount,
        }

    def ends(self):
        """After how many characters, without spaces, a line may end."""
        lengths = [len(piece.replace(" ", "")) for piece in self.pieces]
        return set(accumulate(lengths))


def main():
    lines = HERE.with_suffix(".txt").read_text("utf-8").splitlines()
    fonts = Fonts()
    unexplained = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"],
        )
        page = browser.new_page(viewport={"width": 4_000, "height": 400})
        for line in lines:
            language = Language(*line.split("\t"))
            ours = drawn_here(fonts, language)
            theirs = drawn_on(page, language)
            found = line_difference(language, ours, theirs)
            found += ink_differences(language, ours, theirs)
            for difference, reason in found:
                unexplained += not reason
                told = reason or "NO REASON IS KNOWN"
                print(language.code, f"{difference}: {told}", line[:40])
        browser.close()
    print(
        f"{len(lines)} texts, {unexplained} differences without a reason"
    )
    return int(unexplained > 0)


def drawn_here(fonts, language):
    text = language.text
    code = language_of(text, language.code)
    style = Style(400, SIZE_PX, SIZE_PX)
    block = fit(fonts, text, style, 9_000, language=code)
    (line,) = block.lines
    size = (
        line.width_px + 2 * MARGIN_PX,
        block.height_px + 2 * MARGIN_PX,
    )
    image = Image.new("L", size, 255)
    baseline = MARGIN_PX + block.first_baseline_px
    image.paste(0, (MARGIN_PX, baseline + line.ink_y), line.ink)
    return Drawn(image, pieces_of(language))


def pieces_of(language):
    text = clean(language.text)
    graphemes = clusters(text)
    found = breaks(graphemes, language_of(text, language.code))
    pieces = [""]
    for grapheme, place in zip(graphemes, found, strict=True):
        if place >= Break.GOOD:
            pieces.append("")
        pieces[-1] += grapheme
    return [piece.strip() for piece in pieces if piece]


def drawn_on(page, language):
    font = f"{SIZE_PX}px/{4 * SIZE_PX}px 'Noto Sans','{language.font}'"
    page.set_content(
        f"<html lang={language.code}><style>body{{margin:0;background:#fff}}div{{font:{font}}}"
        "#line{white-space:nowrap;display:inline-block;padding:0 40px}"
        "#pieces{width:1px;overflow-wrap:normal}</style>"
        "<div id=line dir=auto></div><div id=pieces></div></html>"
    )
    pieces = page.evaluate(MEASURE, language.text)
    shot = Image.open(BytesIO(page.locator("#line").screenshot()))
    return Drawn(shot.convert("L"), [piece.strip() for piece in pieces])


def line_difference(language, ours, theirs):
    if ours.pieces == theirs.pieces:
        return []
    more = ours.ends() - theirs.ends()
    fewer = theirs.ends() - ours.ends()
    reason = reason_of_breaks(language, more, fewer)
    only = [piece for piece in ours.pieces if piece not in theirs.pieces]
    told = f"{len(more)} breaks more, {len(fewer)} fewer, near {only[:1]}"
    return [(told, reason)]


def reason_of_breaks(language, more, fewer):
    text = language.text.replace(" ", "")
    others = {end for end in fewer if text[end : end + 1] != "%"}
    if not more:
        if not others:
            return PERCENT
        if all(text[end - 1] in "-/" for end in others):
            return COMPOUND
    known = KNOWN["lines"].get(language.code, NO_REASON)
    most_more, most_fewer, reason = known
    if len(more) > most_more or len(others) > most_fewer:
        return None
    return reason


def ink_differences(language, ours, theirs):
    known = [KNOWN["ink"].get(language.script, (None, 0))]
    if any(map(str.isascii, language.text.replace(" ", ""))):
        known.append(KNOWN["ink"].get("latin", (None, 0)))
    reason, most = max(known, key=itemgetter(1))
    found = []
    others = theirs.sizes()
    for name, size in ours.sizes().items():
        ratio = size / others[name]
        if abs(ratio - 1) > TOLERANCES[name]:
            why = reason if abs(ratio - 1) < most else None
            found.append((f"{name} of the ink is {ratio:.2f} of it", why))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
