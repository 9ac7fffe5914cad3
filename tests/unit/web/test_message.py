"""JSON as it is written and read, and headers that are lists."""

import json
import re
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from cardbeat.errors import Invalid
from cardbeat.web import message
from cardbeat.web.message import Request, json_bytes, json_page


@pytest.mark.parametrize("items", [[], [{"a": 1}], [{"name": 'ä "quoted" \U0001f600'}, {"b": None, "c": [True, 0.5]}]])
def test_a_page_is_written_as_the_same_in_one_piece(items: list[dict[str, object]]) -> None:
    assert json_page("checks", iter(items), {"next": "a"}) == json_bytes({"checks": items, "next": "a"})
    assert json.loads(json_page("checks", items, {"next": None})) == {"checks": items, "next": None}


def test_a_body_is_read_only_as_far_as_it_is_nested_too_deeply(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    found = message._NESTING.finditer

    def noted(text: str) -> Iterator[re.Match[str]]:
        for match in found(text):
            read.append(match)
            yield match

    monkeypatch.setattr(message, "_NESTING", SimpleNamespace(finditer=noted))
    request = Request(
        "POST", "/", "/", "", {"content-type": "application/json"}, b"[" * 60_000, "192.0.2.1", "192.0.2.1", "x"
    )
    with pytest.raises(Invalid, match="nested too deeply"):
        request.json_object(())
    assert len(read) == 17


def test_of_a_list_of_thousands_of_tags_the_first_are_read() -> None:
    tags = [f'"{number}"' for number in range(9_000)]
    request = Request("GET", "/", "/", "", {"if-none-match": ", ".join(tags)}, b"", "192.0.2.1", "192.0.2.1", "x")
    assert [request.names_tag("if-none-match", tag) for tag in (tags[0], tags[31], tags[40])] == [True, True, False]
