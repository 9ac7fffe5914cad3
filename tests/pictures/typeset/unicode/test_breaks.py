"""Where a line may end."""

import pytest

from cardbeat.typeset.unicode.breaks import Break, breaks
from cardbeat.typeset.unicode.clusters import clean, clusters


def pieces(text, least=Break.GOOD, language=""):
    found = clusters(clean(text))
    parts: list[str] = []
    for cluster, good in zip(found, breaks(found, language), strict=True):
        if parts and good < least:
            parts[-1] += cluster
        else:
            parts.append(cluster)
    return parts


@pytest.mark.parametrize(
    "parted",
    [
        "two |words",
        "a |non\u00a0breaking |space",
        "well-known |state-of-the-art",
        "well–|known",
        "-5 |to |10-12",
        "https://example.org/long/path",
        "« Où ? »",
        "zero\u200b|width",
        "a\u200b |!",
        "word\u2060joiner/x",
        "한국어 |제목",
        "日|本|語|で|す。",
        "「直|接」|と",
        "ちょっ|と|キャー",
        "我|用|Python|写",
        "在|2024年|10月",
        "กำลัง|เที่ยว|ไทย",
        "ꦱꦸ|ꦫ꧈|ꦧ|ꦪ",
        "བོད་|སྐད་",
        "ה-API |של |ה-אתר |ובית־ספר",
    ],
)
def test_lines_end_between_words_and_ideographs_but_not_before_signs_and_small_kana(
    parted,
):
    assert pieces(parted.replace("|", "")) == parted.split("|")


def test_thai_never_breaks_between_a_letter_and_its_signs():
    assert all(
        not part.startswith(("ะ", "า", "ำ", "ๆ", "\u0e34"))
        for part in pieces("น้ำใจะๆ ที่นี่", Break.INSIDE)
    )


def test_japanese_breaks_well_between_phrases_and_fairly_between_characters():
    text = "東京都知事選挙の結果を分析する"
    assert pieces(text, language="ja") == [
        "東京都知事選挙の",
        "結果を",
        "分析する",
    ]
    assert pieces(text, Break.ALLOWED, language="ja") == list(text)


def test_words_of_katakana_break_poorly():
    text = "新しいサーバーを作る"
    assert pieces(text, Break.ALLOWED, language="ja") == [
        "新",
        "し",
        "い",
        "サーバー",
        "を",
        "作",
        "る",
    ]
    assert "サー" in pieces(text, Break.INSIDE, language="ja")


@pytest.mark.parametrize(
    "text", ["a word .NET", "wait , what", "( this )", "— — —"]
)
def test_no_line_starts_or_ends_with_a_sign_that_belongs_to_the_other_side(
    text,
):
    assert not any(
        part.strip().startswith((".", ",", ")")) or part.strip() == "("
        for part in pieces(text)
    )


def test_a_compound_may_break_after_its_hyphen_a_path_at_last():
    assert pieces("state-of-the-art", Break.ALLOWED) == [
        "state-",
        "of-",
        "the-",
        "art",
    ]
    assert pieces("/usr/local-lib/x-y", Break.ALLOWED)[0].startswith(
        "/usr/local-"
    )
    assert pieces("/usr/local-lib/x", Break.SLASH) == [
        "/usr/",
        "local-",
        "lib/",
        "x",
    ]
    assert pieces("soft\u00adhyphens and/or", Break.ALLOWED) == [
        "softhyphens ",
        "and/or",
    ]
