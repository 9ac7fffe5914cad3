"""The one reader of queries."""

import time
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbeat.errors import Invalid
from cardbeat.web.message import first_value, known_among, only_value


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("a=1&x=2&x=3&A=4&amp;a=5&b=2", {"a": "1", "b": "2"}),
        ("a=&b&=c&&", {"a": "", "b": ""}),
        ("a=b=c;d?e", {"a": "b=c;d?e"}),
        ("%61=c%2Bd+%26", {"a": "c+d &"}),
        ("a=100%&b=%zz%4", {"a": "100%", "b": "%zz%4"}),
        ("a=50%+off&b=%25", {"a": "50% off", "b": "%"}),
        ("a=%FF\xff&b=caf\xc3\xa9", {"a": "\ufffd\ufffd", "b": "café"}),
    ],
)
def test_known_values_are_decoded(query, values):
    assert known_among(("a", "b"), query) == values


@pytest.mark.parametrize(
    "query", ["limit=1&limit=1", "limit&x=1&%6Cimit=2"]
)
def test_a_known_parameter_that_is_repeated_is_refused_by_its_name(query):
    with pytest.raises(
        Invalid, match="Give the parameter limit only once"
    ) as refused:
        known_among(("limit",), query)
    assert refused.value.field == "limit"
    assert only_value(query, "limit") == ""
    assert only_value("x=1&limit=zh%2DTW", "limit") == "zh-TW"


@given(st.text("key%6579bB&=+", max_size=40))
def test_the_first_value_is_the_one_that_urllib_finds(query):
    found = [
        value
        for name, value in parse_qsl(query, keep_blank_values=True)
        if name == "key"
    ]
    assert first_value(query, "key") == (found[0] if found else None)


@pytest.mark.parametrize(
    "piece", ["%", "&", "%41", "k", "%41=a&", "&titl", "&%74%69"]
)
def test_no_query_takes_long(piece):
    query = (piece * 8_100)[:8_100]
    started = time.process_time()
    for _ in range(10):
        known_among(("limit", "title"), f"title={query}")
    assert time.process_time() - started < 0.5
