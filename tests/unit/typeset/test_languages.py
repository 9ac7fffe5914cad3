"""Lines in more scripts than `test_text` has, and words that are easily drawn wrong: nothing of them is missing."""

import pytest
from PIL import features

from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.paragraph import Style
from cardbeat.typeset.text import Block, fit

LINES = {
    "Adlam": "𞤀𞤣𞤤𞤢𞤥 𞤆𞤵𞤤𞤢𞤪",
    "Arabic": "مَرْحَبًا بالعالم العربي",
    "Balinese": "ᬩᬲᬩᬮᬶ",
    "Burmese": "မြန်မာဘာသာစကား",
    "Cantonese": "佢哋喺度食嘢㗎",
    "Cham": "ꨌꩌ ꨀꨇꩉ",
    "Chinese, simplified": "朱镕基与陶喆：王珺、李赟",
    "Chinese, traditional": "台北市政府的網站",
    "Coptic": "ⲙⲉⲧⲣⲉⲙⲛ̀ⲭⲏⲙⲓ",
    "Ewe": "Eʋegbe ŋgɔ̃ ʋɔ̀",
    "Greek, polytonic": "Ἐν ἀρχῇ ἦν ὁ λόγος",
    "Hebrew": "שָׁלוֹם עולם",
    "Japanese": "𠮷野家と髙島屋の直木賞",
    "Javanese": "ꦧꦱꦗꦮ",
    "Kurdish": "زمانی کوردی، ڕۆژنامە و ڵ",
    "Lingala": "Mɔ́kɔ́ sɔ̂lɔ̂ ɛ̌",
    "Lisu": "ꓡꓲ‐ꓢꓴ",
    "Malayalam": "മലയാളം ഭാഷ ശ്രീ",
    "Meetei": "ꯃꯤꯇꯩꯂꯣꯟ",
    "Ol Chiki": "ᱥᱟᱱᱛᱟᱲᱤ",
    "Pashto": "پښتو ژبه، ټول ډېر ړومبی ږ",
    "Runic": "ᚠᚢᚦᚨᚱᚲ",
    "Russian with stress": "За́мок и замо́к",
    "Sundanese": "ᮘᮞ ᮞᮥᮔ᮪ᮓ",
    "Taiwanese": "chia̍h o͘ Pe̍h-ōe-jī",
    "Tamil": "தமிழ் மொழி ஸ்ரீ",
    "Thai": "มหาวิทยาลัยธรรมศาสตร์ น้ำ",
    "Tłı̨chǫ": "Tłı̨chǫ Yatıì",
    "Ukrainian with stress": "Украї́нська мо́ва",
    "Uyghur": "ئۇيغۇر تىلى، ۋە ڭ",
    "Vai": "ꕙꔤ",
    "Yoruba": "Ẹ̀kọ́ Yorùbá ọ̀rọ̀",
    "emoji": "🐦‍🔥 🫩 🪊 🫆 1⃣ 🧑‍🧑‍🧒 🏃🏽‍➡️",
    "fractions": "⅓ ⅔ ⅛ ⅜ ½ ¾ ⅒",
    "phonetics": "t͡ʃ d͡ʒ ɛ̃ ŋ̊",
    "vectors": "x⃗ + y⃗",
}
ENGINES = [pytest.param(False, id="basic")] + [pytest.param(True, id="raqm")] * bool(features.check("raqm"))


@pytest.fixture(scope="module", params=ENGINES)
def fonts(request: pytest.FixtureRequest) -> Fonts:
    return Fonts(shaping=request.param)


def drawn(fonts: Fonts, text: str) -> Block:
    return fit(fonts, text, Style(700, 64, 40), 1056)


@pytest.mark.parametrize("name", LINES)
def test_nothing_of_a_line_is_missing(fonts: Fonts, name: str) -> None:
    block = drawn(fonts, LINES[name])
    assert not block.missing
    assert not block.cut


@pytest.mark.parametrize(("with_mark", "without"), [("мо́в", "мов"), ("ɔ̃", "ɔ"), ("ca̍", "ca"), ("sɔ̂nɔ̂", "sɔnɔ")])
def test_a_mark_takes_no_room_on_the_line(fonts: Fonts, with_mark: str, without: str) -> None:
    marked, plain = drawn(fonts, with_mark), drawn(fonts, without)
    assert abs(marked.width_px - plain.width_px) <= 0.06 * 64 * len(without)
    assert marked.lines[0].ascent_px > plain.lines[0].ascent_px


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm draws Nastaliq")
@pytest.mark.parametrize("text", ["قابلِ اعتماد پس منظر کے کام", "تشکیلِ", "کیسے", "ہچکچاہٹ مُسَلَّمَہ ہے", "می‌ٹ"])
def test_words_of_nastaliq_keep_their_marks(text: str) -> None:
    block = drawn(Fonts().with_serif(), text)
    assert (block.missing, block.cut) == (0, False)
