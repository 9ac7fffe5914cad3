"""A thousand different cards in ten scripts over HTTP, and the memory of the whole server after them.

    python -m tests.bench.thousand_cards [CARDS] [--tree DIR] [--beside DIR] [--rounds N]

Prints how long the first card took, the median of all, and the memory now and at its highest.
"""

import argparse
import re
import statistics
import time
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path

from cardbeat.cards.request import TEMPLATES, THEMES
from tests.bench.cards import turned
from tests.bench.running import Figures, add_rounds, compare, create_key, parser_of, serving

TITLES = (
    "The quick brown fox jumps over lazy dogs",
    "Съешь ещё этих мягких французских булок",
    "Ελληνικά κείμενα για μια δοκιμή",
    "مرحبا بالعالم هذا عنوان طويل قليلا",
    "שלום עולם זאת כותרת ארוכה",
    "हिन्दी में एक लंबा शीर्षक",
    "ภาษาไทย ที่นี่ และ ที่นั่น",
    "简体 中文 标题 设计 可靠的 后台 任务",
    "日本語の タイトルを 設計する 信頼性",
    "한국어 제목 신뢰할 수 있는 작업",
)


def main(arguments: argparse.Namespace) -> None:
    compare(arguments, partial(measure, arguments.cards))


def measure(count: int, tree: Path) -> Figures:
    with serving(tree=tree) as server:
        key = create_key(tree, server.data, "--tier", "unlimited")
        times = [_draw(server.url, key, number) for number in range(count)]
        held = Path(f"/proc/{server.pid}/status").read_text()
    highest, now = (int(re.search(rf"{name}:\s+(\d+) kB", held)[1]) * 1.024 / 1000 for name in ("VmHWM", "VmRSS"))
    return {
        "first card, ms": times[0],
        f"median of {count:,}, ms": statistics.median(times),
        "memory, MB": now,
        "memory at its highest, MB": highest,
    }


def _draw(url: str, key: str, number: int) -> float:
    title = turned(TITLES[number % len(TITLES)], number // len(TITLES))
    card = {
        "title": f"{title} {number}",
        "description": f"{number} {title} {title}",
        "author": title.split()[0],
        "template": TEMPLATES[number % len(TEMPLATES)],
        "theme": THEMES[number % len(THEMES)],
        "key": key,
    }
    started = time.perf_counter()
    with urllib.request.urlopen(f"{url}/og?{urllib.parse.urlencode(card)}", timeout=30) as answer:
        answer.read()
        assert answer.headers["X-Cache"] == "MISS"
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("cards", metavar="CARDS", nargs="?", type=int, default=1000, help="[1000]")
    add_rounds(parser)
    main(parser.parse_args())
