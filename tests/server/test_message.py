"""JSON as it is written and read, heads of answers, and headers that are lists."""

import pytest

from cardbeat.web.message import Request, Response, header_lines
from tests.kit.lists import numbered


def request(body=b"", **headers):
    headers = {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return Request("POST", "/", "/", "", headers, body)


def test_of_a_list_of_thousands_of_tags_the_first_are_read():
    tags = numbered('"{}"', 9_000)
    asked = request(if_none_match=", ".join(tags))
    found = [
        asked.names_tag("if-none-match", tag)
        for tag in (tags[0], tags[31], tags[40])
    ]
    assert found == [True, True, False]


def test_a_response_has_its_length_and_one_empty_line():
    assert header_lines(Response(200, b"body", {"ETag": '"1"'})) == (
        b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        b'ETag: "1"\r\nContent-Length: 4\r\n\r\n'
    )
    kept = header_lines(Response(204, b"", {"Cache-Control": "public"}))
    assert (
        kept
        == b"Cache-Control: public\r\nX-Content-Type-Options: nosniff\r\n\r\n"
    )
    assert b"Content-Length" not in header_lines(Response(304))


@pytest.mark.parametrize(
    "value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "\r\n\r\n"]
)
def test_a_header_can_not_break_out_of_its_line(value):
    for headers in ({"Location": value}, {value: "a"}):
        with pytest.raises(ValueError, match="line end"):
            header_lines(Response(200, b"", headers))
