"""The one reader of queries."""

import re
import time
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbeat.errors import Invalid
from cardbeat.web.query import first_value, known_among


def values_of(query):
    """All parameters, read slowly, each with the first of its values."""
    parts = [part.partition("=") for part in query.split("&") if part]
    decoded = [(known_among("a", f"a={name}")["a"], value) for name, _, value in parts]
    return {name: known_among("a", f"a={value}")["a"] for name, value in reversed(decoded)}


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("a=1&b=2&c=3&c=4", {"a": "1", "b": "2"}),
        ("a=&b&=c&&", {"a": "", "b": ""}),
        ("a=b=c;d?e", {"a": "b=c;d?e"}),
        ("%61=c%2Bd+%26", {"a": "c+d &"}),
        ("a=100%&b=%zz%4", {"a": "100\ufffd", "b": "\ufffdzz\ufffd4"}),
        ("a=%FF\xff&b=caf\xc3\xa9", {"a": "\ufffd\ufffd", "b": "café"}),
    ],
)
def test_values_are_decoded(query, values):
    assert known_among("ab", query) == values


def test_a_value_that_is_longer_than_any_key_is_not_decoded_to_its_end():
    assert first_value("key=" + "%41" * 35, "key") == "A" * 35
    assert len(first_value("key=" + "%" * 8_000, "key")) < 1_000
    assert len(first_value("key=" + "%41" * 2_000, "key")) > 100


def test_known_parameters_are_found_and_unknown_ones_ignored_however_often_they_come():
    assert known_among(("limit", "after"), "after=&x=1&x=2&limit=5&Limit=6") == {"after": "", "limit": "5"}


@pytest.mark.parametrize("query", ["limit=1&limit=1", "limit&x=1&%6Cimit=2"])
def test_a_known_parameter_that_is_repeated_is_refused_by_its_name(query):
    with pytest.raises(Invalid, match="Give the parameter limit only once") as refused:
        known_among(("limit",), query)
    assert (refused.value.status, refused.value.code, refused.value.field) == (400, "duplicate_parameter", "limit")


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("key=sk_1", "sk_1"),
        ("title=x&key=sk_1&v=2", "sk_1"),
        ("%6bey=a+b%20c", "a b c"),
        ("k%65%79=&key=2", ""),
        ("x&%6B%65%79&y", ""),
        ("key=1&key=2", "1"),
        ("xkey=1&keyx=2&amp;key=3&Key=4&%256bey=5&x=key&ke%=6", None),
        ("", None),
    ],
)
def test_the_first_value_of_a_name_is_found_however_the_name_is_spelled(query, value):
    assert first_value(query, "key") == value


@given(st.text("key%6579bB&=+;", max_size=40))
def test_the_first_value_is_what_a_reader_of_the_whole_query_finds(query):
    assert first_value(query, "key") == values_of(query).get("key")


@given(st.text("key%6579bB&=+;", max_size=40))
def test_the_known_parameters_are_those_that_a_reader_of_the_whole_query_finds(query):
    try:
        known = known_among(("key", "b", "y"), query)
    except Invalid:
        return
    assert known == {name: value for name, value in values_of(query).items() if name in ("key", "b", "y")}


@given(st.text(st.characters(max_codepoint=255), max_size=40) | st.text("%0aEFbBf+x\xc3\xa9", max_size=40))
def test_texts_are_decoded_as_urllib_does_but_for_broken_escapes(text):
    text = text.replace("&", "")
    marked = re.sub(rb"%(?![0-9A-Fa-f]{2})", b"%EF%BF%BD", text.encode("latin-1"))
    assert known_among("a", f"a={text}")["a"] == unquote_to_bytes(marked.replace(b"+", b" ")).decode("utf-8", "replace")


@pytest.mark.parametrize("piece", ["%", "&", "a&", "%41", "%&", "k", "%4", "%41=a&", "&titl", "&%74%69"])
def test_no_query_takes_long(piece):
    query = (piece * 8_100)[:8_100]
    started = time.process_time()
    for _ in range(10):
        first_value(query, "key")
        known_among(("limit", "title"), f"title={query}")
    assert time.process_time() - started < 0.5
