"""Headlines: how their letters are set, and where their lines end."""

import unicodedata

import pytest

from cardbeat.cards.drawing.headline import Headline
from cardbeat.cards.drawing.layout import INNER
from cardbeat.cards.drawing.styles import DESCRIPTION, HEADLINE, TEXT_WORK
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import Block, Setting, fit

FONTS = Fonts()


def alone(title: str) -> Block:
    return Headline(FONTS, title, "ja").alone(1_000, 400)


def untracked(title: str, size_px: int) -> Block:
    return fit(FONTS, title, Style(HEADLINE, size_px, size_px), 2_000, language="ja")


def test_european_letters_stand_closer_than_in_other_texts() -> None:
    for title in ("Monitoring", "Новости", "Ελληνικά"):
        block = alone(title)
        closer = (len(title) - 1) * 0.02 * block.size_px
        assert abs(untracked(title, block.size_px).width_px - closer - block.width_px) <= 1 + len(title) / 2


def test_han_letters_stand_as_in_other_texts() -> None:
    block = alone("新闻标题")
    assert block.width_px == untracked("新闻标题", block.size_px).width_px


def lines_of(block: Block | None) -> list[str]:
    return [line.text for line in block.lines] if block else []


def description() -> Paragraph:
    text = "ロックや再試行について学んだこと。" * 6
    return Paragraph(FONTS, text, DESCRIPTION, INNER, language="ja", max_work=TEXT_WORK)


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        (
            "週末にゼロから作るウェブアプリケーション開発入門",
            ["週末にゼロから作る", "ウェブアプリケーション", "開発入門"],
        ),
        ("バックグラウンドジョブ設計", ["バックグラウンドジョブ設計"]),
        ("開源軟體維護者的日常：在全職工作之外", ["開源軟體維護者的日常：", "在全職工作之外"]),
    ],
)
def test_a_title_is_rather_smaller_than_broken_inside_a_word(title: str, lines: list[str]) -> None:
    assert lines_of(alone(title)) == lines


def test_a_title_may_be_a_little_smaller_than_large_where_its_lines_end_better_so() -> None:
    block, under = Headline(FONTS, "SQLiteだけで信頼できるバックグラウンドジョブを設計する", "ja").above(
        description, 1008, 308
    )
    assert lines_of(block) == ["SQLiteだけで信頼できる", "バックグラウンドジョブを", "設計する"]
    assert (block.size_px, len(lines_of(under))) == (66, 1)


def test_a_description_gives_up_its_place_before_katakana_is_broken() -> None:
    title = "リモートワーク時代のチームコミュニケーションとドキュメント文化の育て方について考える"
    for width, height in ((1056, 370), (1008, 296)):
        block, under = Headline(FONTS, title, "ja").above(description, width, height)
        assert not under
        assert all(not line.startswith(("ュ", "ミ", "ン", "ト")) for line in lines_of(block))


def test_one_long_word_of_katakana_is_broken_rather_than_small() -> None:
    block, under = Headline(FONTS, "インターナショナルビジネスマシーンズ", "ja").above(description, 1008, 296)
    assert under
    assert block.size_px >= 64
    assert len(block.lines) == 2


def test_a_description_that_keeps_its_lines_is_not_also_set_in_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    set_ = []
    block = Setting.block

    def noted(setting: Setting) -> Block:
        set_.append(block(setting))
        return set_[-1]

    monkeypatch.setattr(Setting, "block", noted)
    found = Headline(FONTS, "Terms of Use", "ja").short(description, 1056, 400)
    assert found
    assert set_ == [found[1]]


def test_no_more_lines_are_drawn_at_a_size_at_which_the_first_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: dict[int, list[TextLine]] = {}
    line = Paragraph.line

    def noted(paragraph: Paragraph, start: int, end: int, size: int, **ellipsis: bool) -> TextLine:
        lines.setdefault(size, []).append(line(paragraph, start, end, size, **ellipsis))
        return lines[size][-1]

    monkeypatch.setattr(Paragraph, "line", noted)
    title = "केवल SQLite के साथ भरोसेमंद बैकग्राउंड जॉब्स बनाना"
    block = Headline(FONTS.with_serif(), title, "ja", serif=True).alone(1056, 300)
    assert len(block.lines) > 1
    assert all(len(drawn) == 1 for drawn in lines.values() if drawn[0].width_px > 1056)
    assert not FONTS.faces.shaping or any(drawn[0].width_px > 1056 for drawn in lines.values())


@pytest.mark.parametrize(("digits", "separator", "height"), [(30, " ", 330), (30, "", 398), (60, " ", 398)])
def test_a_title_in_many_runs_is_drawn_at_two_sizes_at_most(
    digits: int, separator: str, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = set()
    line = Paragraph.line

    def noted(paragraph: Paragraph, start: int, end: int, size: int, **ellipsis: bool) -> TextLine:
        sizes.add(size)
        return line(paragraph, start, end, size, **ellipsis)

    monkeypatch.setattr(Paragraph, "line", noted)
    threes = [chr(code) for code in range(0x660, 0x12000) if unicodedata.decimal(chr(code), None) == 3]
    block = Headline(FONTS, (separator.join(threes[:digits]) + "ཧྐྵ") * 3, "ja").above(description, 1056, height)[0]
    assert not block.cut
    assert len([size for size in sizes if size > DESCRIPTION.largest_px]) <= 2
