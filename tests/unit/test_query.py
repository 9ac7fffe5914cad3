"""The one reader of queries."""

import pytest

from cardbeat.errors import Invalid
from cardbeat.web.query import known_among, pairs_of


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        ("", []),
        ("a=1&b=2&a=3", [("a", "1"), ("b", "2"), ("a", "3")]),
        ("a=&b&=c&&", [("a", ""), ("b", ""), ("", "c")]),
        ("a=b=c;d?e", [("a", "b=c;d?e")]),
        ("%61+b=c%2Bd+%26", [("a b", "c+d &")]),
        ("100%=%zz%4", [("100\ufffd", "\ufffdzz\ufffd4")]),
        ("a=%FF\xff&b=caf\xc3\xa9", [("a", "\ufffd\ufffd"), ("b", "café")]),
    ],
)
def test_names_and_values_are_decoded(query, pairs):
    assert pairs_of(query) == pairs


def test_known_parameters_are_found_and_unknown_ones_ignored_however_often_they_come():
    pairs = pairs_of("after=&x=1&x=2&limit=5&Limit=6")
    assert known_among(pairs, ("limit", "after")) == {"after": "", "limit": "5"}


@pytest.mark.parametrize("query", ["limit=1&limit=1", "limit&x=1&%6Cimit=2"])
def test_a_known_parameter_that_is_repeated_is_refused_by_its_name(query):
    with pytest.raises(Invalid, match="Give the parameter limit only once") as refused:
        known_among(pairs_of(query), ("limit",))
    assert (refused.value.status, refused.value.code, refused.value.field) == (400, "duplicate_parameter", "limit")
