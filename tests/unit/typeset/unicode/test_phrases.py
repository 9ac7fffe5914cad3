"""Phrases of Japanese and words of Chinese."""

from itertools import pairwise

import pytest

from cardbeat.typeset.unicode.phrases import PhraseModel, phrase_starts


def test_a_phrase_begins_where_more_than_half_of_all_weights_speak_for_it() -> None:
    model = PhraseModel({"UW4": {"b": 10}, "BW2": {"ab": 2, "xb": -3}})
    assert list(model.starts("abxb")) == [1, 3]
    assert list(PhraseModel({"UW4": {"b": 10}, "UW1": {"z": 30}}).starts("abb")) == []


def test_what_stands_outside_the_text_has_no_weight() -> None:
    assert list(PhraseModel({"UW1": {"b": 10}, "UW3": {"b": -1, "a": 5}}).starts("ab")) == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ja", "今日は とても 天気です。"),
        ("ja", "スマートフォンで 撮る 美しい 夜景写真の 撮り方ガイド"),
        ("zh-Hans", "我们 重新 设计了 整个 任务 系统"),
        ("zh-Hant", "台北市 政府 公告 明日"),
        ("zh-Hans", "每天 两百万个 文件 里的 三本 书"),
    ],
)
def test_titles_are_parted_into_phrases(language: str, text: str) -> None:
    joined = text.replace(" ", "")
    starts = sorted({*phrase_starts(joined, language), len(joined)})
    assert [joined[a:b] for a, b in pairwise(starts)] == text.split()
