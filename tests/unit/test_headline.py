"""Headlines: how their letters are set."""

from cardbeat.cards.headline import Headline
from cardbeat.cards.styles import HEADLINE
from cardbeat.typeset.fonts import Fonts
from cardbeat.typeset.text import Block, fit

FONTS = Fonts()


def alone(title: str) -> Block:
    return Headline(FONTS, title, "ja").alone(1_000, 400)


def untracked(title: str, size_px: int) -> Block:
    return fit(FONTS, title, width_px=2_000, size_px=size_px, min_size_px=size_px, weight=HEADLINE, language="ja")


def test_european_letters_stand_closer_than_in_other_texts() -> None:
    for title in ("Monitoring", "Новости", "Ελληνικά"):
        block = alone(title)
        closer = (len(title) - 1) * 0.02 * block.size_px
        assert abs(untracked(title, block.size_px).width_px - closer - block.width_px) <= 1 + len(title) / 2


def test_han_letters_stand_as_in_other_texts() -> None:
    block = alone("新闻标题")
    assert block.width_px == untracked("新闻标题", block.size_px).width_px
