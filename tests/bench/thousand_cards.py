"""A thousand different cards in ten scripts over HTTP, and the memory of the whole server after them.

    python -m tests.bench.thousand_cards [CARDS]

Prints how long the first card took, the median of all, and the memory now and at its highest.
"""

import json
import re
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from cardbeat.cards.request import TEMPLATES, THEMES
from tests.bench.cards import turned
from tests.bench.mixed import TIERS
from tests.bench.running import serving

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


def main(count: int) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as tiers:
        Path(tiers.name).write_text(TIERS)
        with serving("--tiers", tiers.name) as server:
            url = f"http://127.0.0.1:{server.port}"
            with urllib.request.urlopen(f"{url}/register", data=b"", timeout=10) as answer:
                key = json.loads(answer.read())["key"]
            times = [_draw(url, key, number) for number in range(count)]
            held = Path(f"/proc/{server.pid}/status").read_text()
    highest, now = (int(re.search(rf"{name}:\s+(\d+) kB", held)[1]) * 1.024 / 1000 for name in ("VmHWM", "VmRSS"))
    print(f"first card {times[0]:.0f} ms, median of {count} {statistics.median(times):.1f} ms")
    print(f"memory now {now:.1f} MB, at its highest {highest:.1f} MB")


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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
