"""Where a line may end."""

import pytest

from cardbeat.typeset.breaks import Break, breaks
from cardbeat.typeset.clusters import clean, clusters


def pieces(text: str, least: Break = Break.GOOD) -> list[str]:
    found = clusters(clean(text))
    parts: list[str] = []
    for cluster, good in zip(found, breaks(found), strict=True):
        if parts and good < least:
            parts[-1] += cluster
        else:
            parts.append(cluster)
    return parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two words", ["two ", "words"]),
        ("a non\u00a0breaking space", ["a ", "non\u00a0breaking ", "space"]),
        ("well-known", ["well-", "known"]),
        ("-5 to 10-12", ["-5 ", "to ", "10-12"]),
        ("https://example.org/long/path", ["https://example.org/", "long/", "path"]),
        ("« Où ? »", ["« Où ? »"]),
        ("zero\u200bwidth", ["zero\u200b", "width"]),
        ("word\u2060joiner/x", ["word\u2060joiner/", "x"]),
        ("한국어 제목", ["한국어 ", "제목"]),
    ],
)
def test_lines_end_between_words(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("日本語です。", ["日", "本", "語", "で", "す。"]),
        ("「直接」と", ["「直", "接」", "と"]),
        ("ちょっとキャー", ["ちょっ", "と", "キャー"]),
        ("我用Python写", ["我", "用", "Python", "写"]),
    ],
)
def test_ideographs_break_anywhere_but_before_closing_signs_and_small_kana(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_thai_breaks_before_leading_vowels_and_never_between_a_letter_and_its_signs() -> None:
    assert pieces("กำลังเที่ยวไทย") == ["กำลัง", "เที่ยว", "ไทย"]
    assert all(not part.startswith(("ะ", "า", "ำ", "ๆ", "\u0e34")) for part in pieces("น้ำใจะๆ ที่นี่", Break.EMERGENCY))


def test_myanmar_breaks_between_syllables() -> None:
    assert pieces("မြန်မာ") == ["မြန်", "မာ"]


def test_tibetan_breaks_after_its_dots() -> None:
    assert pieces("བོད་སྐད་") == ["བོད་", "སྐད་"]
