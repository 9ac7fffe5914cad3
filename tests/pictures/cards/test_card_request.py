"""From a query as sent to the card it asks for."""

import pytest

from cardbeat.cards.request import PARAMETERS, Card, card_from
from cardbeat.errors import Invalid
from cardbeat.web.message import known_among
from tests.kit.lists import each


def card_of(query):
    return card_from(known_among(PARAMETERS, query))


def title_of(encoded):
    return card_of(f"title={encoded}").title


@pytest.mark.parametrize(
    ("encoded", "title"),
    [
        ("100%+%zz", "100% %zz"),
        ("%FF%ED%A0%80", "\ufffd" * 4),
        ("a%00b%07c%1B%7Fd%C2%9Fe%1Ff", "abcdef"),
        ("one%0Atwo%0D%0Athree%0Dfour", "one two three four"),
        ("one%09two%0Bthree%0Cfour%C2%85five", "one two three four five"),
        ("%20%20padded%0A", "padded"),
        ("%EF%BF%BE", "\ufffe"),
        ("%CC%81a", "\u0301a"),
        ("%CC%81%E3%80%82", "\u0301\u3002"),
    ],
)
def test_a_title_is_decoded(encoded, title):
    assert title_of(encoded) == title


BLANK = (
    "",
    "title",
    "title=+%20%00%09%0D%0A%C2%85",
    "title=%E2%80%8B%EF%B8%8F%CD%8F",
    "Title=x",
)
FILLERS = "title=%E2%A0%80", "title=%E3%85%A4+%EF%BE%A0%E1%85%9F"


@pytest.mark.parametrize("query", BLANK + FILLERS)
def test_a_missing_or_blank_title_is_refused(query):
    with pytest.raises(Invalid) as refused:
        card_of(query)
    assert refused.value.status == 400
    assert refused.value.field == "title"


@pytest.mark.parametrize(
    "marks",
    [
        "%CC%81",
        "%E0%A4%BF",
        "%D9%8E",
        "%E0%B8%B3",
        "%E2%80%8B%CC%81+%CC%82",
    ],
)
def test_marks_alone_stand_on_a_dotted_circle(marks):
    assert title_of(marks) == "\u25cc" + title_of("x" + marks)[1:]


def test_every_parameter_is_read_and_has_a_default():
    query = "title=t&description=d&author=a&tag=g&domain=o&template=blog&theme=light&key=sk_1"
    assert card_of(query) == Card(
        "t", "d", "a", "g", "o", "blog", "light"
    )
    assert card_of("title=x") == Card(
        "x", "", "", "", "", "default", "dark"
    )


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("title=x&template=Blog", "default, blog, article"),
        ("title=x&template=", "default, blog, article"),
        ("title=x&theme=blue", "dark, light"),
        ("title=x&%74itle=y", "title only once"),
        ("title=x&theme=dark&theme=dark", "theme only once"),
    ],
)
def test_other_values_and_repeated_ones_are_refused_with_those_there_are(
    query, told
):
    with pytest.raises(Invalid, match=told):
        card_of(query)


def test_all_wrong_parameters_are_named():
    with pytest.raises(Invalid) as refused:
        card_of("template=Blog&theme=blue")
    fields = each(refused.value.body()["fields"], "field")
    assert fields == ["title", "template", "theme"]
    assert refused.value.code == "invalid_parameter"


def test_unknown_parameters_are_allowed_and_may_repeat():
    assert (
        card_of("v=1&title=x&v=2&&utm_source=y&amp;theme=light").theme
        == "dark"
    )


def test_a_very_long_text_is_cut_and_an_invisible_one_is_absent():
    card = card_from(
        {"title": "word " * 20_000, "author": " \u200b\u2060 "}
    )
    assert len(card.title) <= 4_000
    assert card.author == ""


def test_a_language_tag_is_read_and_anything_else_is_none():
    tags = {
        "ja": "ja",
        "zh-Hant-TW": "zh-Hant-TW",
        "": "",
        "-": "",
        "../..": "",
        "x" * 60: "",
    }
    assert {
        tag: card_from({"title": "x", "lang": tag}).lang for tag in tags
    } == tags
