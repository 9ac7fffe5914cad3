"""From a query as sent to the card it asks for."""

import pytest

from cardbeat.cards.request import PARAMETERS, Card, card_from
from cardbeat.errors import Invalid
from cardbeat.web.query import known_among


def card_of(query: str) -> Card:
    return card_from(known_among(PARAMETERS, query))


def title_of(encoded: str) -> str:
    return card_of(f"title={encoded}").title


@pytest.mark.parametrize(
    ("encoded", "title"),
    [
        ("Hello+world", "Hello world"),
        ("Hello%20world", "Hello world"),
        ("a%2Bb%26c%3Dd", "a+b&c=d"),
        ("a=b=c", "a=b=c"),
        ("caf%C3%A9", "café"),
        ("caf\u00c3\u00a9", "café"),  # raw UTF-8 bytes, as the server hands them over
        ("100%", "100\ufffd"),
        ("%zz", "\ufffdzz"),
        ("%e", "\ufffde"),
        ("%FF%FE", "\ufffd\ufffd"),
        ("%ED%A0%80", "\ufffd\ufffd\ufffd"),
        ("a%00b%07c%1B%7Fd%C2%9Fe%1Ff", "abcdef"),
        ("one%0Atwo%0D%0Athree%0Dfour", "one two three four"),
        ("one%09two%0Bthree%0Cfour%C2%85five", "one two three four five"),
        ("%20%20padded%0A", "padded"),
        ("%EF%BF%BE", "\ufffe"),
    ],
)
def test_a_title_is_decoded(encoded: str, title: str) -> None:
    assert title_of(encoded) == title


@pytest.mark.parametrize(
    "query",
    [
        *("", "title", "title=", "title=+%20", "title=%00%09", "title=%0D%0A%C2%85", "title=%E2%80%8B", "Title=x"),
        *("title=%E2%A0%80", "title=%E3%85%A4+%EF%BE%A0", "title=%E1%85%9F", "title=%EF%B8%8F", "title=%CD%8F"),
    ],
)
def test_a_missing_or_blank_title_is_refused(query: str) -> None:
    with pytest.raises(Invalid) as refused:
        card_of(query)
    assert (refused.value.status, refused.value.field) == (400, "title")


@pytest.mark.parametrize("marks", ["%CC%81", "%E0%A4%BF", "%D9%8E", "%E0%B8%B3", "%E2%80%8B%CC%81+%CC%82"])
def test_marks_alone_stand_on_a_dotted_circle(marks: str) -> None:
    assert title_of(marks) == "\u25cc" + title_of("x" + marks)[1:]


@pytest.mark.parametrize("text", ["\u0301a", "a\u0301", "\u0301\u3002"])
def test_marks_beside_other_characters_need_no_circle(text: str) -> None:
    assert card_from({"title": text}).title == text


def test_what_is_left_out_has_its_default() -> None:
    assert card_of("title=x") == Card("x", "", "", "", "", "default", "dark")


def test_every_parameter_is_read() -> None:
    query = "title=t&description=d&author=a&tag=g&domain=o&template=blog&theme=light&key=sk_1"
    assert card_of(query) == Card("t", "d", "a", "g", "o", "blog", "light")


@pytest.mark.parametrize("value", ["fancy", "", "Blog", "blog%20"])
def test_another_template_is_refused_with_those_there_are(value: str) -> None:
    with pytest.raises(Invalid, match="default, blog, article") as refused:
        card_of(f"title=x&template={value}")
    assert refused.value.field == "template"


def test_another_theme_is_refused_with_those_there_are() -> None:
    with pytest.raises(Invalid, match="dark, light"):
        card_of("title=x&theme=blue")


@pytest.mark.parametrize("second", ["title=y", "%74itle=y", "title", "tag=a&tag=a", "theme=dark&theme=dark"])
def test_a_repeated_known_parameter_is_refused(second: str) -> None:
    with pytest.raises(Invalid, match="only once"):
        card_of(f"title=x&{second}")


def test_unknown_parameters_are_allowed_and_may_repeat() -> None:
    assert card_of("v=1&title=x&v=2&&utm_source=y&amp;theme=light").theme == "dark"


def test_a_very_long_text_is_cut_before_it_costs_anything() -> None:
    assert len(card_from({"title": "word " * 20_000}).title) <= 4_000


def test_an_invisible_text_counts_as_absent() -> None:
    assert card_from({"title": "x", "author": " \u200b\u2060 "}).author == ""
