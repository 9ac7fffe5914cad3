"""JSON as it is written."""

import json

import pytest

from cardbeat.web.message import json_bytes, json_page


@pytest.mark.parametrize("items", [[], [{"a": 1}], [{"name": 'ä "quoted" \U0001f600'}, {"b": None, "c": [True, 0.5]}]])
def test_a_page_is_written_as_the_same_in_one_piece(items: list[dict[str, object]]) -> None:
    assert json_page("checks", iter(items), {"next": "a"}) == json_bytes({"checks": items, "next": "a"})
    assert json.loads(json_page("checks", items, {"next": None})) == {"checks": items, "next": None}
