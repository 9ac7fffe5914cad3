"""Several threads set and draw text with the same opened fonts."""

from concurrent.futures import ThreadPoolExecutor

from PIL import Image

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import fit

TITLES = ("Plain words", "مرحبا بالعالم", "हिन्दी शीर्षक", "日本語の題", "ภาษาไทย", "emoji 👩‍👩‍👧‍👦 🇩🇪", "한국어", "שלום")


def drawn(fonts: Fonts, title: str) -> bytes:
    layer = Image.new("RGBA", (500, 90))
    line = fit(fonts, title, Style(700, 48, 24), 500).lines[0]
    line.draw_emoji(layer, 0, 60)
    mask = Image.new("L", layer.size)
    if line.ink:
        mask.paste(line.ink, (line.ink_x, 60 + line.ink_y))
    return mask.tobytes() + layer.tobytes()


def test_threads_that_share_faces_and_close_each_others_draw_what_one_alone_draws() -> None:
    fonts = Fonts(max_bytes=150_000)
    alone = {title: drawn(fonts, title) for title in TITLES}
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda n: drawn(fonts, TITLES[n % len(TITLES)]), range(96)))
    assert all(together[n] == alone[TITLES[n % len(TITLES)]] for n in range(96))
