"""Whose Han shapes a text wants."""

import pytest

from cardbeat.typeset.unicode.han import language_of, small_words


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
        ("東京", "ja"),
        ("直木賞", "ja"),
        ("經濟部", "zh-Hant"),
        ("佢哋喺度食嘢㗎", "zh-Hant"),
        ("朱镕基与陶喆：王珺、李赟", "zh-Hans"),
        ("ㄅㄆㄇ", "zh-Hant"),
    ],
)
def test_the_text_tells_whose_han_shapes_it_wants(text, language):
    assert language_of(text) == language


def test_a_language_tag_decides():
    tags = {
        "ja": "ja",
        "JA-jp": "ja",
        "zh-TW": "zh-Hant",
        "zh-Hant-HK": "zh-Hant",
        "zh": "zh-Hans",
        "ko": "ko",
    }
    assert {tag: language_of("骨直", tag) for tag in tags} == tags


def test_a_tag_of_another_language_leaves_the_guess():
    assert language_of("かな", "de") == language_of("かな", "xx") == "ja"


@pytest.mark.parametrize(
    ("text", "tag", "word"),
    [
        ("Rust vs. Go in 2026: a comparison", "", "a"),
        ("Die Zukunft der Stadt", "", "der"),
        ("Die hard", "de-AT", "die"),
        ("Кофе в зёрнах", "", "в"),
    ],
)
def test_small_words_are_those_of_the_language(text, tag, word):
    assert word in small_words(text, tag)
    assert not small_words(text, "ja")


@pytest.mark.parametrize(
    ("domain", "language"),
    [
        ("example.jp", "ja"),
        ("www.example.co.kr", "ko"),
        ("example.tw.", "zh-Hant"),
        ("EXAMPLE.HK", "zh-Hant"),
        ("example.cn", "zh-Hans"),
        ("example.com", "zh-Hans"),
        ("jp", "ja"),
    ],
)
def test_the_country_of_the_domain_decides_where_the_characters_leave_it_open(
    domain, language
):
    assert language_of("直木", domain=domain) == language


def test_characters_that_a_country_does_not_write_outweigh_its_domain() -> (
    None
):
    assert language_of("简体标题", domain="example.jp") == "zh-Hans"
    assert language_of("日本語の本", domain="example.cn") == "ja"
