"""The functions against the test files of Unicode. What differs is listed here, each with its reason."""

import re

import pytest

from cardbeat.typeset.unicode.breaks import Break, breaks, line_break
from cardbeat.typeset.unicode.clusters import clean, clusters
from tests.kit import unicode_files

pytestmark = pytest.mark.skipif(
    not unicode_files.FOLDER.exists(),
    reason="needs Debian's package unicode-data",
)

Cut = tuple[str, str]
"""What stands before and after a place where one parts the text and the other does not."""

NOT_CLEAN = re.compile("[\t-\r\x01\x85\u034f\u1160\u2028\u2029]|  |^ | $")
"""In texts that `clean` changes: controls, fillers, and spaces that are many or at an end."""

GRAPHEMES = {
    "the sign above a number of Arabic is drawn by its font, whatever grapheme it is in": lambda a, b: (
        a == "\u0600"
    ),
    "a skin tone is drawn by itself after what is no emoji": lambda a, b: (
        b == "\U0001f3ff"
    ),
    "old letters of Korean stand by themselves": lambda a, b: (
        is_korean(a) and is_korean(b)
    ),
    "no flag is joined to another": lambda a, b: (
        "\U0001f1e6" <= b <= "\U0001f1ff"
    ),
}
LINES = {
    "lines of Korean end only between words": lambda a, b: (
        is_korean(a) or is_korean(b)
    ),
    "a line ends after a sign only where it stands between letters": lambda a, b: (
        line_break(a) in ("BA", "HY", "B2", "SY") or (a, b) == ("-", "—")
    ),
    "a point or comma stays with the number after it": lambda a, b: (
        line_break(a) == "IS"
    ),
    "a sign of money or a percent sign stays with what is in brackets": lambda a, b: (
        line_break(a) in ("PR", "PO")
    ),
    "marks of units stay with emoji and half flags": lambda a, b: (
        line_break(a) == "ID" and line_break(b) == "PO"
    ),
    "brackets stay with a sign after them also where no number is in them": lambda a, b: (
        a in ")]}"
    ),
    "a percent sign stays with the number before its space": lambda a, b: (
        (a, b) == (" ", "%")
    ),
    "the sign for an object is like a letter": lambda a, b: (
        "\ufffc" in (a, b)
    ),
    "a skin tone stays with any emoji, a flag never with another": lambda a, b: (
        b >= "\U0001f1e6"
    ),
}


@pytest.mark.parametrize(
    "cases",
    [unicode_files.character_cases(61), unicode_files.class_cases(77)],
)
def test_text_is_ordered_as_the_bidirectional_algorithm_says(cases):
    assert [case for case in cases if not case.passes()] == []


def test_graphemes_are_those_of_unicode_but_for_what_is_listed():
    assert (
        unlisted(
            "GraphemeBreakTest.txt",
            GRAPHEMES,
            lambda text: ends(clusters(text)),
        )
        == []
    )


def test_lines_end_where_unicode_lets_them_but_for_what_is_listed():
    assert unlisted("LineBreakTest.txt", LINES, line_ends) == []


def unlisted(
    name,
    reasons,
    found,
):
    """The differences that no reason explains; fails if there is a reason that explains none."""
    cuts = [
        (base(text[:at]), text[at])
        for text, expected in unicode_files.boundary_cases(name)
        if not NOT_CLEAN.search(text)
        and text == clean(text) == "".join(clusters(text))
        for at in found(text) ^ set(expected)
    ]
    assert [
        reason
        for reason, explains in reasons.items()
        if not any(explains(*cut) for cut in cuts)
    ] == []
    return [
        cut
        for cut in cuts
        if not any(explains(*cut) for explains in reasons.values())
    ]


def ends(parts):
    return {len("".join(parts[: n + 1])) for n in range(len(parts))}


def line_ends(text):
    lines = []
    graphemes = clusters(text)
    for grapheme, good in zip(graphemes, breaks(graphemes), strict=True):
        if lines and good < Break.ALLOWED:
            lines[-1] += grapheme
        else:
            lines.append(grapheme)
    return ends(lines)


def base(text):
    """The letter or sign before a place, without its marks."""
    return re.sub("[\u0300-\u036f\u200d]+$", "", text)[-1:]


def is_korean(character):
    return (
        "\u1100" <= character <= "\u11ff"
        or "\uac00" <= character <= "\ud7a3"
    )
