"""The description of the API agrees with the routes, the limits and the refusals of the code."""

import json
import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import cardbeat
from cardbeat.cards.request import MAX_CHARACTERS, TEMPLATES, THEMES
from cardbeat.config import TESTS_AN_HOUR, Config, HttpLimits
from cardbeat.errors import REASONS, Invalid
from cardbeat.heartbeat import check as checks
from cardbeat.heartbeat.alerts.message import RECEIVERS
from cardbeat.heartbeat.alerts.target import URL_BYTES
from cardbeat.heartbeat.checks import WAITING_TESTS
from cardbeat.heartbeat.routes import (
    DAYS,
    LARGEST_PAGE,
    MOST_DAYS,
    PAGE_CHECKS,
)
from cardbeat.keys.routes import MAX_EMAIL_LENGTH
from cardbeat.text import first_seen
from tests.kit.documentation import DOCS
from tests.kit.lists import each
from tests.rules.test_text import ALL

PACKAGE = Path(cardbeat.__file__).parent
TEXT = (PACKAGE / "openapi.json").read_text(encoding="utf-8")
FILE = json.loads(TEXT)
SCHEMAS = FILE["components"]["schemas"]
ENDPOINTS = {
    f"{method.upper()} {path}": operation
    for path, item in FILE["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
}


def validator(schema):
    return Draft202012Validator(
        {**schema, "components": FILE["components"]}
    )


def fits(value, schema):
    return validator(schema).is_valid(value)


def nodes(value):
    """A value of JSON, and all values in it."""
    yield value
    for one in (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else ()
    ):
        yield from nodes(one)


def among(schema):
    return range(schema["minimum"], schema["maximum"] + 1)


def schema_of(endpoint, parameter):
    (found,) = (
        one
        for one in ENDPOINTS[endpoint]["parameters"]
        if one.get("name") == parameter
    )
    return found["schema"]


def is_taken(**fields):
    check = {"name": "a", "period_seconds": 60, "grace_seconds": 0}
    try:
        checks.validated(check | fields, 1, lambda url: None)
    except Invalid:
        return False
    return True


def test_it_is_openapi_3_1_of_this_version():
    validate(FILE)
    assert FILE["openapi"][:3] == "3.1"
    assert FILE["info"]["version"] == cardbeat.__version__


def test_it_is_served_as_it_stands_but_for_the_servers_own_address(app):
    served = app("GET", "/openapi.json")
    assert served.headers["Content-Type"] == "application/json"
    assert served.body.decode() == TEXT.replace(
        "http://127.0.0.1:8080", "https://cards.example", 1
    )


def test_it_describes_the_routes_and_no_others_and_which_of_them_need_a_key(
    app,
):
    assert set(ENDPOINTS) == {
        f"{route.method} {route.pattern}"
        for route in app.service.router.routes
    }
    for name, operation in ENDPOINTS.items():
        answer = app(
            *re.sub(r"\{\w+\}", "x", name).split(), key="sk_unknown"
        )
        told = ("security" in operation, "401" in operation["responses"])
        assert told == (answer.status == 401,) * 2, name


def test_the_page_of_the_api_has_a_command_for_each_call_and_each_code():
    for operation in ENDPOINTS.values():
        assert (
            "Pages" in operation["tags"]
            or f"# {operation['summary']}\n" in DOCS["api"]
        )
    assert [
        code for code in REASONS if f"`{code}`" not in DOCS["api"]
    ] == []


def test_it_lists_each_refusal_with_its_status_and_sentence():
    listed = {
        code: (int(status), refusal["value"])
        for status, answer in FILE["components"]["responses"].items()
        if status.isdigit()
        for code, refusal in answer["content"]["application/json"][
            "examples"
        ].items()
    }
    assert set(listed) == set(REASONS)
    for code, (status, sentence) in REASONS.items():
        told, body = listed[code]
        assert told == status
        assert body["code"] == code
        assert re.fullmatch(
            re.sub(r"\\{\w+\\}", ".+", re.escape(sentence)), body["error"]
        )
        assert fits(body, SCHEMAS["Error"])


def test_examples_fit_their_schemas():
    for node in nodes(FILE):
        if isinstance(node, dict):
            assert "example" not in node or fits(
                node["example"], node["schema"]
            ), node
            if isinstance(node.get("examples"), list):
                assert all(fits(one, node) for one in node["examples"]), (
                    node
                )


def test_fields_have_the_bounds_of_the_code():
    new = SCHEMAS["NewCheck"]
    assert tuple(new["properties"]) == checks.CHANGEABLE
    assert tuple(new["required"]) == checks.REQUIRED
    assert SCHEMAS["CheckChanges"]["properties"] == new["properties"]
    for field, named in new["properties"].items():
        schema = SCHEMAS[named["$ref"].rpartition("/")[2]]
        values = [None, True, "", 1.5]
        for bound in ("minimum", "maximum"):
            if bound in schema:
                values += range(schema[bound] - 1, schema[bound] + 2)
        if field != "webhook_url":
            values += ["x" * size for size in range(300)]
        for value in values:
            assert fits(value, schema) == is_taken(**{field: value}), (
                value
            )
    assert (
        among(SCHEMAS["Snooze"]["properties"]["seconds"])
        == checks.SNOOZE_SECONDS
    )
    assert SCHEMAS["WebhookUrl"]["maxLength"] == URL_BYTES


def test_parameters_and_texts_have_the_bounds_of_the_code():
    assert (
        SCHEMAS["Registration"]["properties"]["email"]["maxLength"]
        == MAX_EMAIL_LENGTH
    )
    assert schema_of("GET /og", "template")["enum"] == [*TEMPLATES]
    assert schema_of("GET /og", "theme")["enum"] == [*THEMES]
    limit = FILE["components"]["parameters"]["Limit"]["schema"]
    assert limit["default"] == PAGE_CHECKS
    assert among(limit) == range(1, LARGEST_PAGE + 1)
    days = schema_of("GET /checks/outages", "days")
    assert days["default"] == DAYS
    assert among(days) == range(1, MOST_DAYS + 1)


def test_sentences_have_the_numbers_and_names_of_the_code():
    http = HttpLimits()
    for said in (
        f"of at most {http.body_bytes // 1024} KiB",
        f"{http.request_line_bytes // 1024} KiB, all headers {http.header_bytes // 1024} KiB",
        f"{http.header_count}. The head must come within {http.header_seconds} seconds",
        f"body within {http.body_seconds} more",
        f"cut after {MAX_CHARACTERS:,} characters",
        f"allows {Config().register_per_minute} a minute",
        f"the first {checks.SHORT_ID_CHARACTERS} characters",
        f"At most {WAITING_TESTS} test alerts of a check may wait",
        f"a key may send {TESTS_AN_HOUR} in an hour",
        ", ".join(each(RECEIVERS, "name")),
    ):
        assert said in TEXT


def test_answers_have_the_members_described(app):
    key = app.checks_key()
    body = {"name": "a", "period_seconds": 60, "grace_seconds": 0}
    check = app.json("POST", "/checks", body, key=key)["check"]
    assert list(check) == list(SCHEMAS["Check"]["properties"])
    assert set(app.json("GET", "/key", key=key)) == set(
        SCHEMAS["Key"]["properties"]
    )


@given(
    st.text(max_size=110)
    | st.text("a \t\u00a0\u2028\x1f\u3164\U000e0041", max_size=110)
)
@example(" " * 200 + "a" * 100 + "\n")
def test_the_pattern_of_names_takes_what_a_check_takes(name):
    assert fits(name, SCHEMAS["Name"]) == is_taken(name=name)


def test_the_pattern_of_titles_is_that_of_a_visible_character():
    characters = "".join(ALL)
    found = re.findall(SCHEMAS["Visible"]["pattern"], characters)
    assert found == [one for one in characters if first_seen(one)]
