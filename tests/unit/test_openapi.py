import ast
import json
import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

import cardbeat
from cardbeat.cards.request import card_from
from cardbeat.characters import SEEN
from cardbeat.errors import Invalid
from cardbeat.heartbeat.check import validated
from cardbeat.openapi.errors import KINDS
from cardbeat.openapi.routes import document
from cardbeat.openapi.schemas import NAME_PATTERN, SCHEMAS

DOCUMENT = document("https://cards.example.com")
PACKAGE = Path(cardbeat.__file__).parent
METHODS = {"get", "post", "patch", "delete"}
DOCUMENTED = {(status, code) for status, kind in KINDS.items() for code in kind.codes}
RAISED = {"Refusal": None, "Invalid": 400, "Unavailable": 503, "_unauthorized": 401}
"""Who takes a code as its first constant string, and the status that goes with it; None for the one given."""


def operations():
    return [
        (f"{method.upper()} {path}", operation)
        for path, item in DOCUMENT["paths"].items()
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
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in RAISED:
                constants = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
                status = RAISED[node.func.id] or constants.pop(0)
                yield from ((status, code) for code in constants[:1] if re.fullmatch("[a-z_]+", code))


def takes(judge, *values):
    try:
        judge(*values)
    except Invalid:
        return False
    return True


def test_it_is_openapi_3_1():
    assert DOCUMENT["openapi"].startswith("3.1")
    validate(DOCUMENT)


def test_it_describes_the_routes_and_no_others(app):
    assert {name for name, _ in operations()} == {
        f"{route.method} {route.pattern}" for route in app.service.server.router.routes
    }


def test_it_is_served_with_the_public_address(app):
    answer = app("GET", "/openapi.json")
    served = json.loads(answer.body)
    assert answer.headers["Content-Type"] == "application/json"
    assert served["servers"] == [{"url": "https://cards.example"}]
    assert served["paths"] == json.loads(json.dumps(DOCUMENT["paths"]))


def test_examples_fit_their_schemas():
    pairs = list(with_examples(DOCUMENT))
    assert len(pairs) > 60
    for schema, value in pairs:
        Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def test_every_answer_and_body_in_json_has_an_example():
    for name, operation in operations():
        for part in (operation.get("requestBody", {}), *operation["responses"].values()):
            for media_type, content in part.get("content", {}).items():
                assert media_type != "application/json" or content["examples"], name


def test_a_body_is_too_large_where_one_is_read(app):
    assert {f"{route.method} {route.pattern}" for route in app.service.server.router.routes if route.ignores_body} == {
        name for name, operation in operations() if "413" not in operation["responses"]
    }


def test_all_errors_have_one_schema():
    schemas = [
        answer["content"]["application/json"]["schema"] for answer in DOCUMENT["components"]["responses"].values()
    ]
    assert schemas == [{"$ref": "#/components/schemas/Error"}] * len(KINDS)


def test_a_key_that_is_sent_in_the_query_is_a_parameter_too():
    """Client generators keep parameters; of schemes for security some know only the header."""
    for name, operation in operations():
        if {"cardsKey": []} in operation["security"]:
            assert "key" in {one["name"] for one in operation["parameters"] if one.get("required")}, name


def test_operations_have_ids_and_tags_of_their_own():
    ids = [operation["operationId"] for _, operation in operations()]
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert len(set(ids)) == len(ids)
    assert all(set(operation["tags"]) <= tags for _, operation in operations())


def test_every_refusal_in_the_code_is_described():
    found = set(refusals_in_source())
    assert len(found) > 30
    assert found <= DOCUMENTED


def test_every_refusal_described_is_in_the_code():
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py") if path.parent.name != "openapi")
    assert [code for _, code in DOCUMENTED if f'"{code}"' not in source] == []


def test_whose_work_makes_a_server_healthy_is_said_in_one_way_that_is_true_of_both_databases():
    said = "neither this process nor another one with the same database"
    readme = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")
    assert said in " ".join(readme.split())
    assert said in DOCUMENT["paths"]["/healthz"]["get"]["description"]


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
