"""What drawing a text costs is bounded, whatever the text: counted, because times differ between machines."""

import gc
import random
import tracemalloc
import unicodedata
import weakref
from collections.abc import Iterator

import pytest
from PIL import ImageFont, features

from cardbeat.cards.drawing.layout import Layout
from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.drawing.styles import CARD_WORK, TEXT_WORK
from cardbeat.cards.drawing.templates import lay_out
from cardbeat.cards.request import TEMPLATES, TEXTS, card_from
from cardbeat.typeset.faces.fonts import Fonts
from cardbeat.typeset.line import TextLine
from cardbeat.typeset.paragraph import Paragraph, Style
from cardbeat.typeset.text import fit
from cardbeat.typeset.unicode.clusters import clean, clusters
from tests.bench.hostile_texts import ENDLESS, Fields, endless, hostile_fields, mixed_scripts

ENGINES = [pytest.param(False, id="basic")] + [pytest.param(True, id="raqm")] * bool(features.check("raqm"))
STYLE = Style(400, 96, 40, max_lines=5)
BOLD = STYLE._replace(weight=700, leading=1.18)
WIDTH_PX = 1056
MIXED = "".join(mixed_scripts(random.Random(4))["title"] for _ in range(4))
DIGITS = "".join(chr(c) for c in range(0x660, 0x1FBFA) if unicodedata.category(chr(c)) == "Nd")[::3]
HAN_AND_OTHERS = "".join(MIXED[n % len(MIXED)] if n % 4 == 0 else chr(0x4E00 + n * 977 % 20_000) for n in range(90))
CHINESE = (
    "我们如何把每天两百万个后台任务从消息队列迁移到一个普通文件，以及在这个过程中关于锁、重试和背压所学到的一切。"
    "这篇文章还介绍了监控、告警和备份的具体做法。"
)
ORDINARY_TITLE = "Designing reliable background jobs with nothing but SQLite"
REAL = {
    "thousand characters": "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水"
    "玉出昆冈剑号巨阙珠称夜光果珍李柰菜重芥姜海咸河淡鳞潜羽翔龙师火帝鸟官人皇始制文字乃服衣裳推位让国有虞"
    "陶唐吊民伐罪周发殷汤坐朝问道垂拱平章爱育黎首臣伏戎羌遐迩一体率宾归王鸣凤在竹白驹食场化被草木赖及万方",
    "traditional": "天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏閏餘成歲律呂調陽雲騰致雨露結爲霜金生麗水"
    "玉出崑岡劍號巨闕珠稱夜光果珍李柰菜重芥薑海鹹河淡鱗潛羽翔龍師火帝鳥官人皇始制文字乃服衣裳推位讓國有虞"
    "陶唐弔民伐罪周發殷湯坐朝問道垂拱平章愛育黎首臣伏戎羌遐邇壹體率賓歸王鳴鳳在竹白駒食場化被草木賴及萬方",
    "surnames": "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章云苏潘葛"
    "奚范彭郎鲁韦昌马苗凤花方俞任袁柳酆鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元卜顾孟"
    "平黄和穆萧尹姚邵湛汪祁毛禹狄米贝明臧计伏成戴谈宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席季麻强贾路娄危江童颜郭",
    "hindi with english words": "कैसे हमने SQLite के साथ एक दिन में 20 लाख jobs को message broker से एक ही file में ले जाया, "
    "और locks, retries तथा back-pressure के बारे में क्या सीखा, API सहित",
    "twelve emoji": "Launch 🎉🚀🔥💡📦🐍🦀🧪🛠️📈🌍🤖",
    "five scripts": "Hello 東京 Привет שלום สวัสดี",
    "urdu": "یہ ایک بہت لمبا عنوان ہے جس میں صرف اردو کے الفاظ ہیں اور جو یہ دکھاتا ہے "
    "کہ ایک کارڈ میں کتنے الفاظ آ سکتے ہیں",
    "urdu with english words": "یہ ایک لمبا عنوان ہے جس میں API اور SQLite کے ساتھ "
    "cron jobs کو محفوظ رکھنے کا طریقہ ہے Python میں",
    "short urdu": "پاکستان میں چھوٹی ویب سائٹوں کے لیے سرور کی نگرانی",
    "tibetan": "བོད་སྐད་ཡིག་གི་སློབ་ཚན་གསར་པ།",
}
IN_RUNS = 300_000
"""The first run of a text and what follows in a run are not refused, whatever else was spent."""
FACES_OF_A_CARD, DRAWINGS_OF_A_CARD = 150, 1_500
"""Of fonts, most are 20 to 30 KB long; a text has at most some 500 graphemes, drawn a few times."""


def layout_of(**texts: str) -> Layout:
    fonts = Fonts()
    return lay_out(fonts, fonts.with_serif(), card_from({"theme": "dark"} | texts))


def work_of(layout: Layout) -> int:
    return sum(text.block.work for text in layout.texts)


class Counted:
    """Calls to Pillow."""

    def __init__(self) -> None:
        self.faces = self.drawings = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    calls = Counted()
    truetype, getmask2 = ImageFont.truetype, ImageFont.FreeTypeFont.getmask2

    def opened(*args: object, **options: object) -> ImageFont.FreeTypeFont:
        calls.faces += 1
        return truetype(*args, **options)

    def drawn(*args: object, **options: object) -> object:
        calls.drawings += 1
        return getmask2(*args, **options)

    monkeypatch.setattr(ImageFont, "truetype", opened)
    monkeypatch.setattr(ImageFont.FreeTypeFont, "getmask2", drawn)
    return calls


@pytest.fixture(scope="module", params=ENGINES)
def renderer(request: pytest.FixtureRequest) -> Renderer:
    return Renderer(Fonts(shaping=request.param))


def hostile() -> list[Fields]:
    chance = random.Random(11)
    return [make(chance) for _ in range(6) for make in (mixed_scripts, hostile_fields)]


@pytest.mark.parametrize("fields", hostile())
def test_a_hostile_card_opens_and_draws_a_bounded_number_of_times(
    renderer: Renderer, counted: Counted, fields: Fields
) -> None:
    renderer.render(card_from(fields))
    assert counted.faces <= FACES_OF_A_CARD
    assert counted.drawings <= DRAWINGS_OF_A_CARD


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("text", [MIXED, DIGITS, "क1" * 200, "ሀ🎉" * 200], ids=lambda text: ascii(text[:2]))
def test_the_texts_of_a_card_take_no_more_together_than_they_may(template: str, text: str) -> None:
    assert work_of(layout_of(**dict.fromkeys(TEXTS, text), template=template)) <= CARD_WORK + (len(TEXTS) + 1) * IN_RUNS


@pytest.mark.parametrize(
    "text", ["क1" * 200, "\u0967א1" * 140, "ሀa" * 200, "🎉a" * 200, MIXED], ids=lambda text: ascii(text[:2])
)
def test_a_text_takes_no_more_than_it_may(text: str) -> None:
    assert fit(Fonts(), text, STYLE, WIDTH_PX, max_work=TEXT_WORK).work <= TEXT_WORK + IN_RUNS


def test_a_script_that_alternates_with_another_is_shaped_a_bounded_number_of_times(counted: Counted) -> None:
    alternating = "".join(chr(0x905 + n % 50) + "abc"[n % 3] for n in range(200))
    fit(Fonts(), alternating, STYLE, WIDTH_PX, max_work=TEXT_WORK)
    assert counted.drawings < 150


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("field", ["title", "description"])
def test_a_real_text_is_drawn_whole_beside_other_real_ones(field: str, name: str) -> None:
    others = {"title": ORDINARY_TITLE, "author": "王小明", "tag": "工程", "domain": "blog.example.com"}
    for template in TEMPLATES:
        assert layout_of(**others | {field: REAL[name]}, template=template).missing_glyphs == 0


def test_a_card_with_a_title_of_different_han_and_prose_is_drawn_whole() -> None:
    texts = {"title": REAL["thousand characters"], "description": CHINESE, "author": "欧阳修", "tag": "千字文"}
    assert layout_of(**texts, domain="example.cn").missing_glyphs == 0


def test_beside_a_title_of_a_hundred_different_han_long_labels_in_chinese_are_drawn_whole() -> None:
    labels = {"author": "人民日报海外版编辑部", "tag": "人工智能与机器学习", "domain": "技术博客.example.com"}
    for template in TEMPLATES:
        layout = layout_of(title=REAL["thousand characters"][:100], description=CHINESE, template=template, **labels)
        assert layout.missing_glyphs == 0


def test_the_title_is_paid_for_before_the_description() -> None:
    layout = layout_of(title=REAL["thousand characters"], **dict.fromkeys(("description", "author", "tag"), MIXED))
    title = max((text.block for text in layout.texts), key=lambda block: block.size_px * len(block.lines))
    assert title.missing == 0
    assert layout.missing_glyphs > 0


def test_what_is_left_out_for_its_many_fonts_counts_as_missing_and_the_rest_is_drawn() -> None:
    few, many = (fit(Fonts(), MIXED[:80], STYLE, WIDTH_PX, max_work=most) for most in (400_000, 10_000_000))
    assert few.missing > many.missing
    assert few.lines


def test_what_a_text_lacks_does_not_depend_on_what_was_open_before() -> None:
    fonts = Fonts()
    first, again = (fit(fonts, MIXED, STYLE, WIDTH_PX, max_work=500_000) for _ in range(2))
    assert (first.missing, first.work, first.size_px) == (again.missing, again.work, again.size_px)


def test_a_full_title_of_different_han_is_not_cut_for_its_fonts() -> None:
    poem = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈"
    assert fit(Fonts(), poem, STYLE._replace(weight=700), WIDTH_PX).missing == 0


def test_a_text_in_one_script_is_drawn_however_long_its_font_is() -> None:
    assert fit(Fonts(), "བོད་སྐད", STYLE, WIDTH_PX, max_work=1).missing == 0


def test_letters_are_measured_without_opening_their_fonts(counted: Counted) -> None:
    fonts = Fonts()
    for text in ("Designing", "Ελληνικά", "हिन्दी", "日本語", "∀x∈ℝ"):
        for choice in fonts.choose(clusters(text), "ja"):
            for subset, piece in choice.pieces:
                fonts.faces.width_em(subset, 400, [piece], rtl=False)
    assert counted.faces == 0


def test_a_text_far_longer_than_its_box_is_not_measured_to_its_end() -> None:
    paragraph = Paragraph(Fonts(), "w" * 900, Style(400, 40, 40), 800)
    assert paragraph.truncated
    assert len(paragraph) < 60


def test_a_run_that_stands_in_several_lines_is_drawn_once(counted: Counted) -> None:
    paragraph = Paragraph(Fonts(), "abcא", STYLE, WIDTH_PX)
    assert paragraph.line(0, 4, 40) is paragraph.line(0, 4, 40)
    assert paragraph.line(0, 3, 40).text == "abc"
    assert counted.drawings == 2


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm stacks them")
def test_a_text_of_stacks_that_are_too_tall_is_drawn_a_bounded_number_of_times(counted: Counted) -> None:
    stacks = [chr(0xF40 + n % 8) + "".join(chr(0xF90 + (n * k) % 40) for k in (1, 3, 5, 7)) for n in range(80)]
    block = fit(Fonts(), "".join(stacks), BOLD, WIDTH_PX, 310)
    assert block.missing > 0
    assert counted.drawings <= 20


def test_a_text_that_is_wider_than_planned_is_drawn_in_few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: set[int] = set()
    line = Paragraph.line
    monkeypatch.setattr(Paragraph, "line", lambda *place: sizes.add(place[3]) or line(*place))
    alternating = "".join(chr(0x671 + n % 90) + "abc1($.["[n % 8] for n in range(66))
    block = fit(Fonts(), alternating, BOLD, WIDTH_PX, 330)
    assert not block.cut
    assert len(sizes) <= 3


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> dict[Paragraph, set[int]]:
    """In which lines of each paragraph are drawn."""
    drawn: dict[Paragraph, set[int]] = {}
    line = Paragraph.line

    def noted(paragraph: Paragraph, start: int, end: int, size: int, ellipsis: bool = False) -> TextLine:
        drawn.setdefault(paragraph, set()).add(size)
        return line(paragraph, start, end, size, ellipsis)

    monkeypatch.setattr(Paragraph, "line", noted)
    return drawn


@pytest.mark.parametrize("fields", [fields for fields in hostile() if fields.get("title")][:8])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_that_is_slow_to_draw_is_drawn_in_few_sizes(
    sizes: dict[Paragraph, set[int]], fields: Fields, template: str
) -> None:
    layout_of(title=fields["title"], description=CHINESE, template=template)
    assert all(len(tried) <= 3 for paragraph, tried in sizes.items() if paragraph.slow)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_title_whose_fonts_take_most_of_what_it_may_is_drawn_once_and_small(
    sizes: dict[Paragraph, set[int]], template: str
) -> None:
    """A larger size that turns out too large would be drawn in addition."""
    layout_of(title=HAN_AND_OTHERS, template=template)
    assert [tried for paragraph, tried in sizes.items() if paragraph.work > 0.9 * TEXT_WORK] == [{56}]


@pytest.mark.skipif(not features.check("raqm"), reason="only Raqm draws Nastaliq")
@pytest.mark.parametrize("name", ["urdu", "urdu with english words", "short urdu"])
def test_a_title_in_urdu_is_whole_and_drawn_few_times(counted: Counted, name: str) -> None:
    layout = layout_of(title=REAL[name], template="article")
    assert not any(text.block.cut for text in layout.texts)
    assert counted.drawings <= 30


def test_equal_letters_of_a_headline_are_drawn_once(counted: Counted) -> None:
    paragraph = Paragraph(Fonts(), "banana", BOLD._replace(tracking_em=-0.02), WIDTH_PX)
    paragraph.line(0, 6, 40)
    assert counted.drawings == 3


def test_a_paragraph_goes_at_once_with_all_it_holds() -> None:
    paragraph = Paragraph(Fonts(), "abc", STYLE, WIDTH_PX)
    paragraph.line(0, 3, 40)
    gc.disable()
    try:
        gone = weakref.ref(paragraph)
        del paragraph
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_is_kept_of_long_graphemes_is_small_however_many_come(kind: str) -> None:
    """Texts of one grapheme of 2,000 characters, and graphemes of 9: of these the fonts keep 4,000, plain and serif."""
    fonts, chance = Fonts(), random.Random(8)
    texts = [clusters(clean(endless(chance, kind, length))) for length in [2_000] * 10 + [9] * 150]
    both = fonts, fonts.with_serif()
    for one in both:
        one.choose(texts[0], "ja")
    tracemalloc.start()
    try:
        for graphemes in texts[1:]:
            for one in both:
                one.choose(graphemes, "ja")
        assert tracemalloc.get_traced_memory()[0] < 150 * 2 * 600  # bytes
    finally:
        tracemalloc.stop()
