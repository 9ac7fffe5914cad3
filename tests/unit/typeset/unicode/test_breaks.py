"""Where a line may end."""

from itertools import pairwise

import pytest

from cardbeat.typeset.unicode.breaks import Break, breaks, breaks_at_hyphens
from cardbeat.typeset.unicode.clusters import clean, clusters


def pieces(text: str, least: Break = Break.GOOD, language: str | None = None) -> list[str]:
    found = clusters(clean(text))
    parts: list[str] = []
    for cluster, good in zip(found, breaks(found, language), strict=True):
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
        ("well-known state-of-the-art", ["well-known ", "state-of-the-art"]),
        ("well–known", ["well–", "known"]),
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


def test_thai_never_breaks_between_a_letter_and_its_signs() -> None:
    assert pieces("กำลังเที่ยวไทย") == ["กำลัง", "เที่ยว", "ไทย"]
    assert all(not part.startswith(("ะ", "า", "ำ", "ๆ", "\u0e34")) for part in pieces("น้ำใจะๆ ที่นี่", Break.EMERGENCY))


@pytest.mark.parametrize(
    "words",
    [
        "မြန်မာနိုင်ငံ တော် အစိုးရ သည် စီးပွားရေး",
        "ສະຖາບັນ ພາສາ ລາວ ແຫ່ງ ມະຫາວິທະຍາໄລ ແຫ່ງຊາດ",
        "សាកល វិទ្យាល័យ ភូមិន្ទ ភ្នំពេញ រៀបចំ សន្និសីទ អន្តរជាតិ ប្រចាំឆ្នាំ",
        "มหาวิทยาลัย ธรรมศาสตร์ จัด งาน สัมมนา วิชาการ นานาชาติ ประจำ ปี",
        "เรื่อง ต่างๆ ที่ น่า สนใจ",
    ],
)
def test_lines_end_between_words_of_scripts_without_spaces(words: str) -> None:
    assert pieces(words.replace(" ", "")) == words.split()


def test_syllables_without_a_word_list_are_not_broken() -> None:
    assert pieces("ꦱꦸꦫ꧈ꦧꦪ") == ["ꦱꦸ", "ꦫ꧈", "ꦧ", "ꦪ"]


def test_tibetan_breaks_after_its_dots() -> None:
    assert pieces("བོད་སྐད་") == ["བོད་", "སྐད་"]


def test_japanese_breaks_well_between_phrases_and_fairly_between_characters() -> None:
    text = "東京都知事選挙の結果を分析する"
    assert pieces(text, language="ja") == ["東京都知事選挙の", "結果を", "分析する"]
    assert pieces(text, Break.FAIR, language="ja") == list(text)


def test_words_of_katakana_break_poorly() -> None:
    text = "新しいサーバーを作る"
    assert pieces(text, Break.FAIR, language="ja") == ["新", "し", "い", "サーバー", "を", "作", "る"]
    assert "サー" in pieces(text, Break.POOR, language="ja")


def test_a_number_stays_with_the_sign_of_what_it_counts() -> None:
    assert pieces("在2024年10月") == ["在", "2024年", "10月"]


def test_a_prefix_of_hebrew_stays_with_its_word() -> None:
    assert pieces("ה-API של ה-אתר ובית־ספר") == ["ה-API ", "של ", "ה-אתר ", "ובית־ספר"]


@pytest.mark.parametrize("text", ["a word .NET", "wait , what", "( this )", "— — —"])
def test_no_line_starts_or_ends_with_a_sign_that_belongs_to_the_other_side(text: str) -> None:
    assert not any(part.strip().startswith((".", ",", ")")) or part.strip() == "(" for part in pieces(text))


def test_a_zero_width_space_breaks_also_before_a_space_and_a_sign() -> None:
    assert pieces("a\u200b !") == ["a\u200b ", "!"]


def test_a_call_is_rather_kept_whole() -> None:
    found = breaks(clusters("when O(log n) is (on average) fine"))
    assert [found[at] for at in (5, 11, 14, 17, 21, 30)] == [
        *(Break.GOOD, Break.FAIR, Break.GOOD, Break.GOOD, Break.GOOD, Break.GOOD),
    ]


def test_phrases_are_looked_for_in_han_alone() -> None:
    assert pieces("Sale🎉🎉 now", language="ja") == pieces("Sale🎉🎉 now")


@pytest.mark.parametrize(
    "word",
    [
        "Donau-dampf-schiff-fahrt-se-lek-tri-zi-tä-ten-haupt-be-triebs-werk",
        "Rechtsschutzversicherungs-gesellschaften",
        "Rindfleischetikettierungs-überwachungs-aufgaben-übertragungs-gesetz",
        "пре-вы-со-ком-но-го-расс-мо-три-тельст-вую-щий",
        "ηλεκ-τροεγ-κε-φα-λο-γρα-φη-μα-το-λο-γι-κος",
        "inter-na-tio-na-li-za-tion",
        "troubleshootingly",
        "Orchestrierungs-plattform",
        "x" * 60,
        "שלום" * 10,
        "https://example.org/a-path",
    ],
)
def test_only_a_long_word_of_letters_gets_hyphens_and_only_between_its_syllables(word: str) -> None:
    syllables = [word] if "/" in word else word.split("-")
    graphemes = clusters(clean("".join(syllables)))
    found, hyphens = breaks_at_hyphens(graphemes, "ja", set())
    ends = [0, *sorted(hyphens), len(graphemes)]
    assert ["".join(graphemes[a:b]) for a, b in pairwise(ends)] == syllables
    assert {found[place] for place in hyphens} <= {Break.POOR}
