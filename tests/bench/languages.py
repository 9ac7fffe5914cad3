"""Draws texts of 68 languages beside Chromium with Noto, and lists what differs, each with its reason.

    python -m tests.bench.languages FOLDER

Needs Debian's packages chromium, fonts-noto-core, fonts-noto-extra and fonts-noto-cjk. Writes `languages-N.png`: of
each language ours above and Chromium's below. Compared are where a line may end, and the width, height and amount of
the ink.
Fails if a difference has no reason.
"""

import shutil
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageOps, ImageStat
from playwright.sync_api import Page, sync_playwright

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import fit
from cardbeat.typeset.unicode.breaks import Break, breaks
from cardbeat.typeset.unicode.clusters import clean, clusters
from cardbeat.typeset.unicode.han import language_of
from tests.bench.running import parser_of

SIZE_PX = 40
MARGIN_PX = 40
TOLERANCES = {"width": 0.02, "height": 0.06, "amount": 0.12}
"""Parts by which the ink may be more or less without being listed."""
A_PICTURE = 17
"""Languages in one."""

STROKE = "a line may end after each stroke of an address here, in Chromium only after its hyphens"
OLDER_LIST = "Chromium has an older copy of ICU's list of words; ICU 78 itself breaks as here"
COMPOUND = "a compound breaks after its hyphen here only where nothing else fits"
CHINESE = "lines of Chinese end well only between words here, in Chromium between any two characters"
LINES = {
    "bo": (0, 1, "no line ends between a tsheg and a digit here"),
    "en": (2, 1, STROKE),
    "fr": (0, 4, "no line ends beside the spaces inside quotation marks and before signs"),
    "he": (0, 1, "no line ends after a hyphen behind Hebrew here (LB21a of Unicode 15), in Chromium before a letter"),
    "ja": (0, 49, "lines of Japanese end well only between phrases here, in Chromium between any two characters"),
    "km": (2, 3, OLDER_LIST),
    "ko": (0, 41, "lines of Korean end only between words here, in Chromium between any two syllables"),
    "lo": (1, 6, OLDER_LIST),
    "my": (1, 4, OLDER_LIST),
    "th": (0, 1, OLDER_LIST),
    "zh-Hans": (0, 30, CHINESE),
    "zh-Hant": (0, 30, CHINESE),
}
"""By language how many breaks more and fewer there may be here, and why."""
INTER = "Inter is drawn here, Noto Sans there", 0.1
INK = {
    "latin": INTER,
    "arabic": ("the newer Noto Sans Arabic has wider digits than Debian's", 0.06),
    "greek": INTER,
    "cyrillic": INTER,
    "japanese": ("Chromium sets a bracket behind a comma closer", 0.03),
    "thaana": ("the newer Noto Sans Thaana has smaller letters than Debian's", 0.5),
}
"""By script, why its ink is another, and by what part of it at most that may be."""


class Language(NamedTuple):
    """A line of `languages.txt`."""

    code: str
    script: str
    text: str


class Drawn(NamedTuple):
    """A sentence on one line, black on white, and the pieces that stay together where lines are as short as can be."""

    ink: Image.Image
    pieces: list[str]


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    languages = [Language(*line.split("\t")) for line in _texts().splitlines()]
    fonts = Fonts()
    ours = [_ours(fonts, language) for language in languages]
    theirs = _chromium(languages)
    unexplained = 0
    for language, *pair in zip(languages, ours, theirs, strict=True):
        for difference, reason in _differences(language, *pair):
            unexplained += not reason
            print(f"{language.code:8} {difference}: {reason or 'NO REASON IS KNOWN'} in {language.text[:30]!r}")
    for start in range(0, len(languages), A_PICTURE):
        part = slice(start, start + A_PICTURE)
        picture = _picture(languages[part], ours[part], theirs[part])
        picture.save(folder / f"languages-{start // A_PICTURE + 1}.png")
    count = len({language.code for language in languages})
    print(f"{len(languages)} texts of {count} languages, {unexplained} differences without a reason")
    return int(unexplained > 0)


def _texts() -> str:
    return Path(__file__).with_suffix(".txt").read_text("utf-8")


def _ours(fonts: Fonts, language: Language) -> Drawn:
    code = language.code if language.script in ("japanese", "korean", "han") else None
    block = fit(fonts, language.text, Style(400, SIZE_PX, SIZE_PX), 9_000, language=code)
    (line,) = block.lines
    size = line.width_px + 2 * MARGIN_PX, line.ascent_px + line.descent_px + 2 * MARGIN_PX
    image = Image.new("L", size, 255)
    if line.ink:
        image.paste(0, (MARGIN_PX + line.ink_x, MARGIN_PX + line.ascent_px + line.ink_y), line.ink)
    return Drawn(image, _pieces(language))


def _pieces(language: Language) -> list[str]:
    text = clean(language.text)
    graphemes = clusters(text)
    pieces: list[str] = []
    for grapheme, good in zip(graphemes, breaks(graphemes, language_of(text, language.code)), strict=True):
        if pieces and good < Break.GOOD:
            pieces[-1] += grapheme
        else:
            pieces.append(grapheme)
    return [piece.strip() for piece in pieces]


def _chromium(languages: Sequence[Language]) -> list[Drawn]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 4_000, "height": 400})
        drawn = [_in_chromium(page, language) for language in languages]
        browser.close()
    return drawn


def _in_chromium(page: Page, language: Language) -> Drawn:
    page.set_content(
        f"<html lang={language.code}><style>body{{margin:0;background:#fff}}div{{font:{SIZE_PX}px/{4 * SIZE_PX}px"
        f" 'Noto Sans','{_family(language)}'}}#line{{white-space:nowrap;display:inline-block;padding:0 40px}}"
        "#pieces{width:1px;overflow-wrap:normal}</style><div id=line dir=auto></div><div id=pieces></div></html>"
    )
    pieces: list[str] = page.evaluate(_MEASURE, language.text)
    shot = page.locator("#line").screenshot()
    return Drawn(Image.open(BytesIO(shot)).convert("L"), [piece.strip() for piece in pieces])


def _family(language: Language) -> str:
    han = {"ja": "JP", "ko": "KR", "zh-Hans": "SC", "zh-Hant": "TC"}
    if language.code in han:
        return f"Noto Sans CJK {han[language.code]}"
    return "Noto Serif Tibetan" if language.script == "tibetan" else f"Noto Sans {language.script.capitalize()}"


_MEASURE = """text => {
  document.querySelector('#line').textContent = document.querySelector('#pieces').textContent = text
  const node = document.querySelector('#pieces').firstChild, pieces = [], range = document.createRange()
  const top = document.querySelector('#pieces').getBoundingClientRect().top
  let at = 0
  for (const character of text) {
    range.setStart(node, at)
    range.setEnd(node, at += character.length)
    const boxes = range.getClientRects()
    const box = boxes[boxes.length - 1]
    const line = box ? Math.floor(((box.top + box.bottom) / 2 - top) / 160) : pieces.length - 1
    while (pieces.length <= line) pieces.push('')
    pieces[Math.max(line, pieces.length - 1)] += character
  }
  return pieces
}"""
"""Puts a text into both boxes, and returns the lines of the narrow one."""


def _differences(language: Language, ours: Drawn, theirs: Drawn) -> Iterator[tuple[str, str | None]]:
    if ours.pieces != theirs.pieces:
        mine, other = (set(_ends(pieces)) for pieces in (ours.pieces, theirs.pieces))
        text = language.text.replace(" ", "")
        more, fewer = len(mine - other), len(other - mine)
        most_more, most_fewer, why = LINES.get(language.code, (0, 0, None))
        known = more <= most_more and fewer <= most_fewer
        if not more and all(text[end - 1] == "-" for end in other - mine):
            known, why = True, COMPOUND
        if not fewer and all(text[end - 1] == "/" for end in mine - other):
            known, why = True, STROKE
        yield f"lines: {more} breaks more, {fewer} fewer ({_first(ours, theirs)})", why if known else None
    for name, one, two in zip(TOLERANCES, _measures(ours.ink), _measures(theirs.ink), strict=True):
        if abs(one / two - 1) > TOLERANCES[name]:
            mixed = any(map(str.isascii, language.text.replace(" ", "")))
            known = INK.get(language.script, (None, 0)), INTER if mixed else (None, 0)
            reason, most = max(known, key=lambda why: why[1])
            yield f"{name} of the ink: {one / two:.2f} of Chromium's", reason if abs(one / two - 1) < most else None


def _ends(pieces: Sequence[str]) -> Iterator[int]:
    length = 0
    for piece in pieces:
        yield (length := length + len(piece.replace(" ", "")))


def _first(ours: Drawn, theirs: Drawn) -> str:
    """The first pieces that differ, ours before theirs."""
    one, two = next(pair for pair in zip(ours.pieces, theirs.pieces, strict=False) if pair[0] != pair[1])
    return f"{one!r}, {two!r}"


def _measures(image: Image.Image) -> tuple[float, float, float]:
    """Width, height and amount of the ink, in pixels."""
    ink = ImageOps.invert(image)
    left, top, right, bottom = ink.getbbox() or (0, 0, 1, 1)
    return right - left, bottom - top, ImageStat.Stat(ink).sum[0] / 255


def _picture(languages: Sequence[Language], ours: Sequence[Drawn], theirs: Sequence[Drawn]) -> Image.Image:
    """Of each language ours above and theirs below, with the code before them, at two thirds of their size."""
    inks = [ImageOps.invert(drawn.ink) for pair in zip(ours, theirs, strict=True) for drawn in pair]
    lines = [ink.crop(ink.getbbox()) for ink in inks]
    row = 2 * SIZE_PX
    picture = Image.new("L", (max(line.width for line in lines) + 150, row * len(lines) + 20), 255)
    draw = ImageDraw.Draw(picture)
    for n, line in enumerate(lines):
        picture.paste(0, (130, 20 + n * row), line)
        if n % 2 == 0:
            draw.text((10, 30 + n * row), languages[n // 2].code, fill=0, font_size=30)
            draw.line((0, 5 + n * row, picture.width, 5 + n * row), fill=200)
    return picture.resize((picture.width * 2 // 3, picture.height * 2 // 3))


if __name__ == "__main__":
    raise SystemExit(main())
