"""Phrases of Japanese and words of Chinese."""

from itertools import pairwise

import pytest

from cardbeat.typeset.unicode.words import phrase_starts


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ja", "今日は とても 天気です。"),
        ("ja", "スマートフォンで 撮る 美しい 夜景写真の 撮り方ガイド"),
        ("zh-Hans", "我们 重新 设计了 整个 任务 系统"),
        ("zh-Hant", "台北市 政府 公告 明日"),
        ("zh-Hans", "我们的 文件 系统"),
    ],
)
def test_titles_are_parted_into_phrases(language, text):
    joined = text.replace(" ", "")
    starts = sorted({*phrase_starts(joined, language), len(joined)})
    assert [joined[a:b] for a, b in pairwise(starts)] == text.split()
