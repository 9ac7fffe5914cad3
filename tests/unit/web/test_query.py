"""The one reader of queries."""

import time
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbeat.errors import Invalid
from cardbeat.web.query import first_value, known_among, only_value


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("a=1&b=2&c=3&c=4", {"a": "1", "b": "2"}),
        ("a=&b&=c&&", {"a": "", "b": ""}),
        ("a=b=c;d?e", {"a": "b=c;d?e"}),
        ("%61=c%2Bd+%26", {"a": "c+d &"}),
        ("a=100%&b=%zz%4", {"a": "100%", "b": "%zz%4"}),
        ("a=50%+off&b=%25", {"a": "50% off", "b": "%"}),
        ("a=%FF\xff&b=caf\xc3\xa9", {"a": "\ufffd\ufffd", "b": "café"}),
    ],
)
def test_values_are_decoded(query, values):
    assert known_among(("a", "b"), query) == values


def test_unknown_parameters_are_ignored_however_often_they_come():
    query = "after=&x=1&x=2&limit=5&Limit=6&amp;limit=7"
    assert known_among(("limit", "after"), query) == {"after": "", "limit": "5"}


@pytest.mark.parametrize("query", ["limit=1&limit=1", "limit&x=1&%6Cimit=2"])
def test_a_known_parameter_that_is_repeated_is_refused_by_its_name(query):
    with pytest.raises(Invalid, match="Give the parameter limit only once") as refused:
        known_among(("limit",), query)
    error = refused.value
    assert (error.status, error.code, error.field) == (400, "duplicate_parameter", "limit")


def test_the_only_value_is_none_where_it_is_repeated():
    assert only_value("x=1&lang=zh%2DTW", "lang") == "zh-TW"
    assert only_value("lang=ja&lang=ja", "lang") == ""
    assert only_value("x=1", "lang") == ""


@given(st.text("key%6579bB&=+", max_size=40))
def test_the_first_value_is_the_one_that_urllib_finds(query):
    pairs = parse_qsl(query, keep_blank_values=True)
    expected = [value for name, value in pairs if name == "key"]
    assert first_value(query, "key") == (expected[0] if expected else None)


@pytest.mark.parametrize(
    "piece", ["%", "&", "a&", "%41", "%&", "k", "%4", "%41=a&", "&titl", "&%74%69"]
)
def test_no_query_takes_long(piece):
    query = (piece * 8_100)[:8_100]
    started = time.process_time()
    for _ in range(10):
        first_value(query, "key")
        known_among(("limit", "title"), f"title={query}")
    assert time.process_time() - started < 0.5
