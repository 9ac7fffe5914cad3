"""Draws every template and theme with every kind of content.

    python -m tests.bench.contact_sheet FOLDER

Writes each card as a PNG, `sheet-<template>.png` with all of a template's, `chat.png` with them 300 pixels wide, and
`cards.jpg` and `accents.jpg` for the documentation.
"""

import argparse
from io import BytesIO
from pathlib import Path

from PIL import Image

from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.request import TEMPLATES, THEMES, card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.bench.running import parser_of

TITLE = "Designing reliable background jobs with nothing but SQLite"
FULL = {
    "title": TITLE,
    "description": "How we moved two million jobs a day from a message broker to a single file, and what we learned "
    "about locks, retries and back-pressure along the way.",
    "author": "Ada Lovelace",
    "tag": "Engineering",
    "domain": "blog.example.com",
}
CONTENTS = {
    "title only": {"title": TITLE},
    "all fields": FULL,
    "one word": {"title": "Changelog", "domain": "example.com"},
    "twelve characters": {"title": "Terms of Use", "tag": "Legal", "description": "What you may do here."},
    "ordinary": {
        "title": "Why our queue is a table",
        "description": "Two million jobs a day in a single file.",
        "author": "Grace Hopper",
        "domain": "example.com",
    },
    "long": {
        "title": f"{TITLE}, and then doing all of it again with a second one, only to find out that the first was "
        "never the problem: a story in five acts, two outages and one very long weekend",
        "description": FULL["description"] * 3,
        "author": "Wolfeschlegelsteinhausenbergerdorff the Elder of Somewhere",
        "tag": "Engineering culture, databases and everything else",
        "domain": "a-very-long-subdomain.of-another-long-domain.example.com",
    },
    "Cyrillic": {
        "title": "Їжак і ліс: як ми перенесли два мільйони задач в один файл",
        "description": "Що ми дізналися про блокування, повтори та зворотний тиск.",
        "author": "Олена Їжакевич",
        "tag": "Інженерія",
        "domain": "blog.example.ua",
    },
    "Japanese": {
        "title": "SQLiteだけで信頼できるバックグラウンドジョブを設計する",
        "description": "1日200万件のジョブをメッセージブローカーから1つのファイルへ移し、ロックや再試行について"
        "学んだこと。",
        "author": "エイダ・ラブレス",
        "tag": "エンジニアリング",
        "domain": "blog.example.jp",
    },
    "Arabic": {
        "title": "تصميم مهام خلفية موثوقة باستخدام SQLite فقط",
        "description": "كيف نقلنا مليوني مهمة يوميًا من وسيط الرسائل إلى ملف واحد، "
        "وما تعلمناه عن الأقفال وإعادة المحاولة.",
        "author": "آدا لوفلايس",
        "tag": "هندسة",
        "domain": "blog.example.com",
    },
    "Hindi": {
        "title": "केवल SQLite के साथ भरोसेमंद बैकग्राउंड जॉब्स बनाना",
        "description": "हमने रोज़ बीस लाख जॉब्स को संदेश ब्रोकर से एक फ़ाइल में कैसे पहुँचाया, और ताले व दोहराव के बारे में क्या सीखा।",
        "author": "एडा लवलेस",
        "tag": "इंजीनियरिंग",
        "domain": "blog.example.in",
    },
    "emoji": {
        "title": "We shipped it 🚀 and the whole team 👩‍💻👨🏽‍💻 went surfing 🏄🏼‍♀️",
        "description": "Flags 🇯🇵🇧🇷🇰🇪, keycaps 1️⃣2️⃣, families 👨‍👩‍👧‍👦 and hearts ❤️‍🔥, all from the artifact.",
        "author": "🦊 Fox",
        "tag": "Release 🎉",
        "domain": "example.com",
    },
    "dark emoji": {"title": "✔️ Done ➕ New™️ 🖤 🎓", "tag": "♠️ Cards", "domain": "example.com"},
    "no glyphs": {"title": "\ue000\ue001", "domain": "example.com"},
    "no glyphs at all": {"title": "\ue000\ue001"},
    "no people": {"title": "Pricing", "description": "Simple plans that grow with you.", "tag": "Product"},
    "author only": {"title": "On writing less code", "author": "Ada Lovelace"},
    "tag only": {"title": "Ten years of running one server", "tag": "Essays"},
}
README = (
    (("default", "dark", "all fields"), ("article", "light", "one word"), ("blog", "light", "Arabic")),
    (("blog", "dark", "title only"), ("article", "dark", "all fields"), ("default", "light", "Japanese")),
)
"""Two columns."""
ACCENTED = (
    (("default", "dark", "#e11d48"), ("blog", "light", "#2563eb")),
    (("blog", "dark", "#16a34a"), ("article", "light", "#9333ea")),
    (("default", "light", "#0d9488"), ("article", "dark", "#f97316")),
)
"""Three columns, in accents."""
GAP = 24


def main(arguments: argparse.Namespace) -> None:
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    renderer = Renderer(Fonts())
    cards = {
        (template, theme, name): _draw(renderer, folder, template, theme, name)
        for template in TEMPLATES
        for theme in THEMES
        for name in CONTENTS
    }
    for template in TEMPLATES:
        columns = [[cards[template, theme, name] for name in CONTENTS] for theme in THEMES]
        _sheet(columns, 600).save(folder / f"sheet-{template}.png")
    columns = [[cards[t, c, name] for name in CONTENTS] for t in TEMPLATES for c in THEMES]
    _sheet(columns, 300).save(folder / "chat.png")
    readme = _sheet([[cards[choice] for choice in column] for column in README], 600)
    readme.save(folder / "cards.jpg", quality=90, optimize=True)
    accented = _sheet([[_in_accent(*look) for look in column] for column in ACCENTED], 400)
    accented.save(folder / "accents.jpg", quality=80, optimize=True)


def _in_accent(template: str, theme: str, accent: str) -> Image.Image:
    drawing = Renderer(Fonts(), accent).render(card_from({**FULL, "template": template, "theme": theme}))
    return Image.open(BytesIO(drawing.png)).convert("RGB")


def _draw(renderer: Renderer, folder: Path, template: str, theme: str, name: str) -> Image.Image:
    drawing = renderer.render(card_from({**CONTENTS[name], "template": template, "theme": theme}))
    (folder / f"{template}-{theme}-{name.replace(' ', '-')}.png").write_bytes(drawing.png)
    print(f"{template:8} {theme:5} {name:12} {len(drawing.png) / 1000:5.1f} KB  {drawing.missing_glyphs} missing")
    return Image.open(BytesIO(drawing.png)).convert("RGB")


def _sheet(columns: list[list[Image.Image]], width: int) -> Image.Image:
    height = width * 630 // 1200
    size = (len(columns) * (width + GAP) + GAP, len(columns[0]) * (height + GAP) + GAP)
    sheet = Image.new("RGB", size, "#d4d4d8")
    for x, column in enumerate(columns):
        for y, card in enumerate(column):
            small = card.resize((width, height), Image.Resampling.LANCZOS)
            sheet.paste(small, (GAP + x * (width + GAP), GAP + y * (height + GAP)))
    return sheet


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the pictures go")
    main(parser.parse_args())
