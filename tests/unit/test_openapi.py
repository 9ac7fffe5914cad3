import ast
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import cardbeat
from cardbeat.cards.request import card_from
from cardbeat.characters import SEEN
from cardbeat.errors import REASONS, Invalid
from cardbeat.heartbeat.check import validated
from cardbeat.openapi.parts import STATUSES
from cardbeat.openapi.schemas import NAME_PATTERN, SCHEMAS
from tests.documentation import DOCS

PACKAGE = Path(cardbeat.__file__).parent
METHODS = {"get", "post", "put", "patch", "delete"}
REFUSALS = {"Refusal", "Invalid", "Unavailable", "_unauthorized"}
"""What takes a code as its first argument."""


@pytest.fixture
def document(app):
    """What is served."""
    return app.json("GET", "/openapi.json")


def operations(document):
    return [
        (f"{method.upper()} {path}", operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]


def with_examples(node):
    """Every schema beside examples, with each of them."""
    if isinstance(node, dict):
        if "schema" in node and "example" in node:
            yield node["schema"], node["example"]
        if "schema" in node and "examples" in node:
            yield from ((node["schema"], example["value"]) for example in node["examples"].values())
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from with_examples(item)


def refusals_in_source():
    """The code of each refusal, and the call that makes it."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_refusal = isinstance(node, ast.Call) and getattr(node.func, "id", None) in REFUSALS
            if is_refusal and node.args and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, node


def takes(judge, *values):
    try:
        judge(*values)
    except Invalid:
        return False
    return True


def test_it_is_openapi_3_1(document):
    assert document["openapi"].startswith("3.1")
    validate(document)


def test_it_describes_the_routes_and_no_others(app, document):
    assert {name for name, _ in operations(document)} == {
        f"{route.method} {route.pattern}" for route in app.service.router.routes
    }


def test_it_is_served_with_the_public_address(app):
    answer = app("GET", "/openapi.json")
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body)["servers"] == [{"url": "https://cards.example"}]


def test_examples_fit_their_schemas(document):
    pairs = list(with_examples(document))
    assert len(pairs) > 60
    for schema, value in pairs:
        Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def test_every_answer_and_body_in_json_has_an_example(document):
    for name, operation in operations(document):
        for part in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media_type, content in part.get("content", {}).items():
                assert media_type != "application/json" or content["examples"], name


def test_a_body_is_too_large_where_one_is_read(document):
    assert {name for name, operation in operations(document) if "413" not in operation["responses"]} == {
        "GET /ping/{id}",
        "POST /ping/{id}",
        "GET /ping/{id}/{signal}",
        "POST /ping/{id}/{signal}",
    }


def test_operations_say_which_key_they_take_and_how_they_refuse_another(document):
    said = {
        name: (operation["security"], [status for status in ("401", "403") if status in operation["responses"]])
        for name, operation in operations(document)
        if operation["security"]
    }
    bearer, card = [{"bearer": []}], [{"cardsKey": []}]
    assert said.pop("GET /og") == (card, ["401", "403"])
    assert said.pop("GET /key") == (bearer, ["401"])
    assert set(said) == {name for name, _ in operations(document) if " /checks" in name or " /key" in name} - {
        "GET /key"
    }
    assert all(one == (bearer, ["401", "403"]) for one in said.values())


def test_without_a_key_an_operation_that_takes_one_is_refused_with_401_and_no_other(app, document):
    for name, operation in operations(document):
        method, path = name.split()
        asked = app(method, re.sub(r"\{\w+\}", "x", path), key="sk_unknown" + "a" * 30)
        takes_bearer = operation["security"] == [{"bearer": []}]
        assert (asked.status == 401) == (takes_bearer or name == "GET /og"), name


def test_all_errors_have_one_schema(document):
    schemas = [
        answer["content"]["application/json"]["schema"] for answer in document["components"]["responses"].values()
    ]
    assert schemas == [{"$ref": "#/components/schemas/Error"}] * len(STATUSES)


def test_a_key_that_is_sent_in_the_query_is_a_parameter_too(document):
    """Client generators keep parameters; of schemes for security some know only the header."""
    for name, operation in operations(document):
        if {"cardsKey": []} in operation["security"]:
            assert "key" in {one["name"] for one in operation["parameters"] if one.get("required")}, name


def test_operations_have_ids_and_tags_of_their_own(document):
    ids = [operation["operationId"] for _, operation in operations(document)]
    tags = {tag["name"] for tag in document["tags"]}
    assert len(set(ids)) == len(ids)
    assert all(set(operation["tags"]) <= tags for _, operation in operations(document))


def test_every_refusal_is_described_with_its_status_and_no_other(document):
    assert {code: reason.status for code, reason in REASONS.items()} == {
        code: int(status)
        for status, answer in document["components"]["responses"].items()
        for code in answer["content"]["application/json"]["examples"]
    }
    found = {code for code, _ in refusals_in_source()}
    assert len(found) > 30
    assert found <= set(REASONS)


def test_every_refusal_described_is_in_the_code():
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert [code for code in REASONS if source.count(f'"{code}"') < 2] == []


def test_a_refusal_without_a_sentence_of_its_own_has_what_stands_in_the_usual_one():
    for code, call in refusals_in_source():
        wanted = {name for _, name, _, _ in string.Formatter().parse(REASONS[code].sentence) if name}
        if len(call.args) == 1 and wanted:
            assert wanted <= {keyword.arg for keyword in call.keywords}, code


def test_whose_sweep_makes_a_server_healthy_is_said_in_one_way_that_is_true_of_both_databases(document):
    said = (
        "no sweep has finished for three intervals, neither in this process nor in another one with the same database"
    )
    assert said in " ".join(DOCS["watching"].split())
    assert said in document["paths"]["/healthz"]["get"]["description"]


def test_answers_have_the_members_described(app):
    key = app.checks_key()
    check = app.json("POST", "/checks", {"name": "a", "period_seconds": 60, "grace_seconds": 0}, key=key)["check"]
    assert list(check) == list(SCHEMAS["Check"]["properties"])
    assert set(app.json("GET", "/key", key=key)) == set(SCHEMAS["Key"]["properties"])
    assert set(app.json("POST", "/register", {"email": "a@b"})) == set(SCHEMAS["IssuedKey"]["properties"])
    assert set(app.json("GET", f"/ping/{check['id']}")) == set(SCHEMAS["Beat"]["properties"])


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=110) | st.text("a \t\u00a0\u2028\x1f\x85", max_size=110)
)
@example("a" * 100)
@example("a" * 101)
@example(" " * 200 + "a" * 100 + "\n")
@example("a\nb")
@example("\u3164\u200b")
@example("\U000e0041")
def test_the_pattern_of_names_takes_what_a_check_takes(name):
    values = {"name": name, "period_seconds": 60, "grace_seconds": 0}
    fits = re.fullmatch(NAME_PATTERN.strip("^$"), name) and re.search(SEEN, name)
    assert bool(fits) == takes(validated, values, 1, lambda url: None)


def test_the_pattern_of_titles_takes_what_a_card_takes():
    for character in map(chr, {*range(0x10000)} - {*range(0xD800, 0xE000)}):
        assert bool(re.search(SEEN, character)) == takes(card_from, {"title": character}), ascii(character)
