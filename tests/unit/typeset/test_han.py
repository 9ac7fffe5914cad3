"""Whose Han shapes a text wants."""

import pytest

from cardbeat.typeset.han import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("日本語のタイトル", "ja"),
        ("한국어 漢字", "ko"),
        ("简体中文标题", "zh-Hans"),
        ("繁體中文標題", "zh-Hant"),
        ("東京大学駅", "ja"),
        ("中文", "zh-Hans"),
        ("plain", "zh-Hans"),
    ],
)
def test_the_text_tells_whose_han_shapes_it_wants(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_text_that_can_not_tell_takes_the_given_language() -> None:
    assert language_of("田中", "ja") == "ja"
    assert language_of("한국", "ja") == "ko"
