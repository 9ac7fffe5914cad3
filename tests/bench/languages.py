"""Draws texts of 68 languages beside Chromium with Noto, and lists what differs, with its reason.

    python -m tests.bench.languages

Needs Debian's packages chromium, fonts-noto-core, fonts-noto-extra and fonts-noto-cjk. Compared are where
a line may end, and the width, height and amount of the ink. Fails if a difference has no reason.

`languages.json` has the reasons. In "lines", by language: how many breaks more and fewer there may
be here, and why. In "ink", by script: why its ink is another, and by what part of it at most.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps, ImageStat
from playwright.sync_api import Page, sync_playwright

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.text import Style, fit
from cardbeat.typeset.unicode.breaks import Break, breaks
from cardbeat.typeset.unicode.clusters import clean, clusters
from cardbeat.typeset.unicode.han import language_of
from tests.bench.running import parser_of

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
    def font(self) -> str:
        if self.code in HAN:
            return f"Noto Sans CJK {HAN[self.code]}"
        name = self.script.capitalize()
        return (
            f"Noto Serif {name}"
            if self.script == "tibetan"
            else f"Noto Sans {name}"
        )


class Drawn(NamedTuple):
    """A sentence on one line, black on white, and its pieces where lines are as short as can be."""

    ink: Image.Image
    pieces: list[str]

    def sizes(self) -> tuple[float, float, float]:
        """Width, height and amount of the ink, in pixels."""
        ink = ImageOps.invert(self.ink)
        left, top, right, bottom = ink.getbbox() or (0, 0, 1, 1)
        return right - left, bottom - top, ImageStat.Stat(ink).sum[0] / 255

    def ends(self) -> set[int]:
        """After how many characters, without spaces, a line may end."""
        found = set()
        length = 0
        for piece in self.pieces:
            length += len(piece.replace(" ", ""))
            found.add(length)
        return found


def main() -> int:
    parser_of(__doc__, trees=False).parse_args()
    lines = HERE.with_suffix(".txt").read_text("utf-8").splitlines()
    languages = [Language(*line.split("\t")) for line in lines]
    fonts = Fonts()
    ours = [drawn_here(fonts, language) for language in languages]
    theirs = drawn_in_chromium(languages)
    unexplained = 0
    for language, mine, other in zip(languages, ours, theirs, strict=True):
        found = [
            *line_difference(language, mine, other),
            *ink_differences(language, mine, other),
        ]
        for difference, reason in found:
            unexplained += not reason
            start = language.text[:30]
            print(
                f"{language.code:8} {difference}: {reason or 'NO REASON IS KNOWN'} in {start!r}"
            )
    print(
        f"{len(languages)} texts, {unexplained} differences without a reason"
    )
    return int(unexplained > 0)


def drawn_here(fonts: Fonts, language: Language) -> Drawn:
    code = language_of(language.text, language.code)
    block = fit(
        fonts,
        language.text,
        Style(400, SIZE_PX, SIZE_PX),
        9_000,
        language=code,
    )
    (line,) = block.lines
    size = (line.width_px + 2 * MARGIN_PX, block.height_px + 2 * MARGIN_PX)
    image = Image.new("L", size, 255)
    baseline = MARGIN_PX + block.first_baseline_px
    image.paste(0, (MARGIN_PX, baseline + line.ink_y), line.ink)
    return Drawn(image, pieces_of(language))


def pieces_of(language: Language) -> list[str]:
    text = clean(language.text)
    graphemes = clusters(text)
    found = breaks(graphemes, language_of(text, language.code))
    pieces: list[str] = []
    for grapheme, good in zip(graphemes, found, strict=True):
        if pieces and good < Break.GOOD:
            pieces[-1] += grapheme
        else:
            pieces.append(grapheme)
    return [piece.strip() for piece in pieces]


def drawn_in_chromium(languages: Sequence[Language]) -> list[Drawn]:
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 4_000, "height": 400})
        drawn = [drawn_on(page, language) for language in languages]
        browser.close()
    return drawn


def drawn_on(page: Page, language: Language) -> Drawn:
    font = f"{SIZE_PX}px/{4 * SIZE_PX}px 'Noto Sans','{language.font}'"
    page.set_content(
        f"<html lang={language.code}><style>body{{margin:0;background:#fff}}div{{font:{font}}}"
        "#line{white-space:nowrap;display:inline-block;padding:0 40px}"
        "#pieces{width:1px;overflow-wrap:normal}</style>"
        "<div id=line dir=auto></div><div id=pieces></div></html>"
    )
    pieces: list[str] = page.evaluate(MEASURE, language.text)
    shot = Image.open(BytesIO(page.locator("#line").screenshot()))
    return Drawn(shot.convert("L"), [piece.strip() for piece in pieces])


Found = Iterator[tuple[str, str | None]]
"""What differs, and the reason if one is known."""


def line_difference(language: Language, ours: Drawn, theirs: Drawn) -> Found:
    if ours.pieces == theirs.pieces:
        return
    more = ours.ends() - theirs.ends()
    fewer = theirs.ends() - ours.ends()
    most_more, most_fewer, reason = KNOWN["lines"].get(
        language.code, NO_REASON
    )
    text = language.text.replace(" ", "")
    together = {end for end in fewer if text[end : end + 1] == "%"}
    if together and fewer == together and not more:
        reason = PERCENT
    elif not more and all(text[end - 1] in "-/" for end in fewer - together):
        reason = COMPOUND
    elif len(more) > most_more or len(fewer - together) > most_fewer:
        reason = None
    pairs = zip(ours.pieces, theirs.pieces, strict=False)
    mine, other = next(pair for pair in pairs if pair[0] != pair[1])
    yield (
        f"lines: {len(more)} breaks more, {len(fewer)} fewer ({mine!r}, {other!r})",
        reason,
    )


def ink_differences(language: Language, ours: Drawn, theirs: Drawn) -> Found:
    scripts = [language.script]
    if any(map(str.isascii, language.text.replace(" ", ""))):
        scripts.append("latin")
    known = [KNOWN["ink"].get(script, (None, 0)) for script in scripts]
    reason, most = max(known, key=lambda pair: pair[1])
    for name, mine, other in zip(
        TOLERANCES, ours.sizes(), theirs.sizes(), strict=True
    ):
        ratio = mine / other
        if abs(ratio - 1) > TOLERANCES[name]:
            why = reason if abs(ratio - 1) < most else None
            yield f"{name} of the ink: {ratio:.2f} of Chromium's", why


if __name__ == "__main__":
    raise SystemExit(main())
