"""Which font draws what."""

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from PIL import features

from cardbeat.typeset.faces.catalogue import FontSubset, read_catalogue
from cardbeat.typeset.faces.fonts import FontChoice, Fonts
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import fit
from cardbeat.typeset.unicode.clusters import clusters


@pytest.fixture(scope="module")
def fonts() -> Fonts:
    return Fonts()


def subsets(fonts: Fonts, graphemes: list[str], language: str = "zh-Hans") -> list[str]:
    return [subset.name if (subset := subset_of(choice)) else "" for choice in fonts.choose(graphemes, language)]


def subset_of(choice: FontChoice) -> FontSubset | None:
    return choice.pieces[0].subset if choice.pieces else None


def text_of(choice: FontChoice) -> str:
    return "".join(piece.text for piece in choice.pieces)


def is_emoji(choice: FontChoice) -> bool:
    return bool(choice.pieces) and choice.pieces[0].subset.emoji


@pytest.mark.parametrize(("language", "region"), [("ja", "j"), ("ko", "k"), ("zh-Hans", "s"), ("zh-Hant", "t")])
def test_each_region_draws_its_own_shape(fonts: Fonts, language: str, region: str) -> None:
    for character in "直骨角次海":
        chosen = subset_of(fonts.choose([character], language)[0])
        assert chosen
        assert region in chosen.regions


def test_a_character_that_one_region_lacks_is_borrowed(fonts: Fonts) -> None:
    assert subset_of(fonts.choose(["们"], "ko")[0])


def test_punctuation_goes_with_the_script_beside_it(fonts: Fonts) -> None:
    assert subsets(fonts, ["a", "“", "b"])[1].startswith("inter")
    assert subsets(fonts, ["中", "“", "文"])[1].startswith("han")
    assert subsets(fonts, ["ا", " ", "ب"])[1] == subsets(fonts, ["ا"])[0]
    assert fonts.choose(["₂", ",", "a"], "ja")[1].pieces == fonts.choose([","], "ja")[0].pieces


def test_an_emoji_family_is_one_glyph(fonts: Fonts) -> None:
    for emoji in ("👩‍👩‍👧‍👦", "👍🏽", "🇩🇪", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "❤️", "☕"):
        chosen = fonts.choose([emoji], "ja")[0]
        assert is_emoji(chosen)
        assert len(text_of(chosen)) == 1


def test_an_emoji_in_text_style_is_text(fonts: Fonts) -> None:
    assert not is_emoji(fonts.choose(["☕\ufe0e"], "ja")[0])
    assert not any(is_emoji(choice) for choice in fonts.choose(["1", "#", "©"], "ja"))


def test_an_unknown_sequence_draws_its_parts(fonts: Fonts) -> None:
    assert len(text_of(fonts.choose(["🐢\u200d🚀"], "ja")[0])) == 2


@pytest.mark.parametrize(
    ("sequence", "parts"),
    [
        ("🐦‍🦀", "🐦🦀"),
        ("🏃🏽‍⬆️", "🏃🏽 ⬆️"),
        ("👨‍👩‍👦‍👶", "👨‍👩‍👦👶"),
        ("🇽🇽", "🇽 🇽"),
        ("👩‍🦀", "👩🦀"),
        ("😀\ufe0e", "😀"),  # no font has it as text
        ("a\ufe0f", "a"),
        ("🐢\u20e0", "🐢"),
        ("🐢\u200d→", "🐢→"),
    ],
)
def test_an_emoji_sequence_without_a_picture_draws_each_part(fonts: Fonts, sequence: str, parts: str) -> None:
    each = [choice for choice in fonts.choose(clusters(parts), "ja") if text_of(choice) != " "]
    (chosen,) = fonts.choose([sequence], "ja")
    assert chosen.pieces == tuple(piece for choice in each for piece in choice.pieces)
    assert all(piece.subset.covers(character) for piece in chosen.pieces for character in piece.text)


@pytest.mark.parametrize(
    ("sequence", "lost"),
    [
        ("🐢\u200d🚀", 1),
        ("🇽🇽", 1),
        ("👨‍👩‍👦‍👶", 1),
        ("🏴\U000e0075\U000e0073\U000e007f", 1),
        ("👍🏽", 0),
        ("🐢\u200d", 0),
    ],
)
def test_a_picture_that_falls_off_a_sequence_is_missing(fonts: Fonts, sequence: str, lost: int) -> None:
    assert fonts.choose([sequence], "ja")[0].missing == lost


def test_what_no_font_has_is_drawn_as_nothing(fonts: Fonts) -> None:
    graphemes = ["\U00012000", "a\u1acf", "\ue000", "\U0010ffff", "\u200e"]
    assert [text_of(choice) for choice in fonts.choose(graphemes, "ja")] == ["", "a", "", "", ""]


@pytest.mark.parametrize("grapheme", ["а\u0301", "ї\u0301", "ɔ\u0301", "ɔ\u0303", "ɔ\u0302", "ɛ\u030c", "m\u0300"])
def test_a_letter_is_drawn_with_its_mark_in_the_family_of_its_neighbours(fonts: Fonts, grapheme: str) -> None:
    (choice,) = fonts.choose([grapheme], "ja")
    assert [(piece.subset.name, piece.text) for piece in choice.pieces] == [("inter-marks", grapheme)]
    assert not choice.missing


@pytest.mark.parametrize("grapheme", ["ʋ\u0300", "t\u0361", "a\u030d", "o\u0358", "ı\u0328", "x\u20d7", "A\u0331"])
def test_a_mark_is_drawn_where_a_font_places_it(fonts: Fonts, grapheme: str) -> None:
    (choice,) = fonts.choose([grapheme], "ja")
    assert text_of(choice) == grapheme
    assert not choice.missing


@pytest.mark.parametrize(("grapheme", "drawn"), [("ʖ\u20d7", "ʖ"), ("ж\u20d7\u0301", "ж\u0301")])
def test_a_mark_that_no_font_places_on_its_letter_is_missing(fonts: Fonts, grapheme: str, drawn: str) -> None:
    (choice,) = fonts.choose([grapheme], "ja")
    assert (text_of(choice), choice.missing) == (drawn, 1)


def test_a_keycap_is_an_emoji_with_or_without_its_selector(fonts: Fonts) -> None:
    with_selector, without = fonts.choose(["1\ufe0f\u20e3", "1\u20e3"], "ja")
    assert is_emoji(without)
    assert with_selector == without


def families(fonts: Fonts, headline: str, language: str = "ja") -> set[str]:
    """What draws the letters of a headline: `source`, `noto-serif`, `noto-serif-han`, `sans` and so on."""
    graphemes = clusters(headline)
    chosen = zip(graphemes, subsets(fonts.with_serif(), graphemes, language), strict=True)
    return {
        re.sub("-(latin|greek|cyrillic|marks|vietnamese|[jstk]+-(common|rare)).*", "", name)
        for g, name in chosen
        if g[0].isalpha()
    }


@pytest.mark.parametrize("headline", ["Slow Queues, part 2: λόγος", "За\u0301мок", "Ça va", "Ẹ̀kọ́ Yorùbá", "я́"])
def test_letters_with_marks_have_serifs_where_all_letters_have(fonts: Fonts, headline: str) -> None:
    assert families(fonts, headline) == {"source-serif"}


@pytest.mark.parametrize(
    ("headline", "language", "drawn"),
    [
        ("Learning 漢字 with Rust", "ja", {"source-serif", "noto-serif-han"}),
        ("Rust入門：所有権", "ja", {"source-serif", "noto-serif-han"}),
        ("我们的软件", "zh-Hans", {"noto-serif-han"}),
        ("台北市政府的網站", "zh-Hant", {"noto-serif-han"}),
        ("대한민국의 웹", "ko", {"noto-serif-han"}),
        ("تعلم Rust من الصفر", "ja", {"source-serif", "noto-naskh-arabic"}),
        ("שלום עולם", "ja", {"noto-serif-hebrew"}),
        ("हिन्दी क्षत्रिय", "ja", {"noto-serif-devanagari"}),
        ("ภาษาไทย", "ja", {"noto-serif-thai"}),
        ("Rust ᏣᎳᎩ", "ja", {"source-serif", "sans-cherokee"}),
        ("What Homer means by ἀρχῇ", "ja", {"source-serif", "inter"}),
    ],
)
def test_each_script_of_a_headline_has_serifs_on_all_its_letters_or_on_none(
    fonts: Fonts, headline: str, language: str, drawn: set[str]
) -> None:
    assert families(fonts, headline, language) == drawn
    assert fonts.with_serif().suits(headline, language)


def test_one_han_character_without_serifs_takes_them_from_all_others(fonts: Fonts) -> None:
    assert families(fonts, "Rust 所有権と鼺") == {"source-serif", "han"}


@pytest.mark.parametrize("headline", ["Ἐν ἀρχῇ ἦν ὁ λόγος", "ᏣᎳᎩ Rust ᎦᏬᏂᎯᏍᏗ", "ʋ ŋgɔ̃"])
def test_serifs_do_not_suit_a_headline_most_of_whose_letters_have_none(fonts: Fonts, headline: str) -> None:
    assert not fonts.with_serif().suits(headline, "ja")
    assert not {name for name in subsets(fonts, clusters(headline)) if name.startswith(("source", "noto"))}


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm draws Nastaliq")
def test_urdu_headlines_are_in_nastaliq_and_those_of_arabic_persian_and_pashto_in_naskh(fonts: Fonts) -> None:
    assert families(fonts, "اردو میں پروگرامنگ سیکھنا") == {"noto-nastaliq-urdu"}
    for naskh in ("تعلم البرمجة", "آموزش برنامه‌نویسی", "پښتو ژبه، ډېر ښه", "ڕۆژنامە و ڵ"):
        assert families(fonts, naskh) == {"noto-naskh-arabic"}
    assert families(Fonts(shaping=False), "اردو میں پروگرامنگ سیکھنا") == {"noto-naskh-arabic"}


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm draws Nastaliq")
@pytest.mark.parametrize(
    "headline", ["اردو میں API سیکھنا", "اردو 1 میں 2 پروگرامنگ 3 سیکھنا 4 ہے", "اردو میں پروگرامنگ " * 5]
)
def test_urdu_headlines_that_are_long_or_mixed_are_not_in_nastaliq(fonts: Fonts, headline: str) -> None:
    assert "noto-nastaliq-urdu" not in families(fonts, headline)


@pytest.mark.parametrize("sign", "→⇒←↔≤≠≥≈∞√⌘⇧")
def test_arrows_and_signs_are_of_the_family_of_the_letters(fonts: Fonts, sign: str) -> None:
    (subset,) = subsets(fonts, [sign])
    assert subset.startswith("inter")


@pytest.mark.parametrize("grapheme", ["ọ́", "ẹ̀", "ṣ́", "я́", "Ю́", "Я́"])
def test_marks_of_yoruba_and_of_stressed_russian_are_of_the_family_of_the_letters(fonts: Fonts, grapheme: str) -> None:
    assert subsets(fonts, clusters(grapheme)) == ["inter-marks"]


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm joins them")
@pytest.mark.parametrize("syllable", ["ᄒᆞᆫ", "ᄊᆞ", "듀ᇰ", "말〯", "미〮"])
def test_old_hangul_is_joined_into_syllables(fonts: Fonts, syllable: str) -> None:
    (choice,) = fonts.choose(clusters(syllable), "ko")
    assert (subset_of(choice).name, choice.missing) == ("sans-old-hangul", 0)  # type: ignore[union-attr]
    plain = [fit(fonts, text, Style(400, 100, 100), 900).width_px for text in (syllable.rstrip("〮〯"), "한")]
    assert plain[0] < 1.2 * plain[1]


def test_a_space_is_about_as_wide_in_every_script(fonts: Fonts) -> None:
    spaces = {s.name: s.advance(" ", 400) for s in read_catalogue() if s.covers(" ")}
    assert not {name: width for name, width in spaces.items() if not width or not 140 < width < 350}


def test_superscripts_and_subscripts_that_no_font_has_are_small_letters(fonts: Fonts) -> None:
    line, above, below = (fonts.choose([character], "ja")[0].pieces[0] for character in "5⁵₅")
    assert above.text == below.text == line.text
    assert above.subset.rise_em > 0 > below.subset.rise_em
    assert subset_of(fonts.choose(["₂"], "ja")[0]) is subset_of(fonts.choose(["₃"], "ja")[0])


def test_threads_that_meet_a_small_letter_at_once_draw_it_in_one_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    fonts, both, replace = Fonts(), Barrier(2), FontSubset._replace

    def replace_together(subset: FontSubset, **changes: float) -> FontSubset:
        both.wait(timeout=10)
        return replace(subset, **changes)

    monkeypatch.setattr(FontSubset, "_replace", replace_together)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda grapheme: fonts.choose([grapheme], "ja"), "₂₃")
    assert subset_of(one[0]) is subset_of(other[0])
