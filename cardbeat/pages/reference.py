"""The endpoints of an OpenAPI description as Markdown, each with a command that asks it."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

VARIABLES: Final = {"id": "$CHECK_ID", "key": "$CARDS_KEY"}
"""What stands for a parameter in a command; for the others it is their example."""
OF_CHECKS: Final = '-H "Authorization: Bearer $CHECKS_KEY"'


class Endpoint(NamedTuple):
    """An operation with its method and path. `body` is the schema of its body, or empty."""

    method: str
    path: str
    operation: Json
    parameters: list[Json]
    body: Json


def reference(document: Json) -> str:
    """One section for each tag that has endpoints, and then all errors."""
    endpoints = list(endpoints_of(document))
    base_url = document["servers"][0]["url"]
    lines: list[str] = []
    for tag in document["tags"]:
        found = [one for one in endpoints if tag["name"] in one.operation["tags"]]
        if found:
            lines += ["", f"## {tag['name']}", "", tag["description"]]
        for one in found:
            summary, about = one.operation["summary"], one.operation.get("description", "")
            lines += ["", f"### {one.method} {one.path}", "", f"{summary}. {about}", ""]
            lines += _inputs(one)
            lines += ["", "```sh", _command(one, base_url), "```", ""]
            lines += _answer(one.operation["responses"])
    return "\n".join([*lines, "", "## Errors by code", "", *_errors(document), ""])


def resolved(document: Json, node: Any) -> Any:
    """`node`, where beside each `$ref` stand the members of what it names."""
    if isinstance(node, list):
        return [resolved(document, item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        kind, name = node["$ref"].split("/")[-2:]
        node = {**document["components"][kind][name], **node}
    return {name: resolved(document, member) for name, member in node.items()}


def example_of(schema: Json) -> Any:
    """The example of a resolved schema: its own, or one made of the examples of its members."""
    if "examples" in schema:
        return schema["examples"][0]
    if "properties" in schema:
        return {name: example_of(member) for name, member in schema["properties"].items()}
    if "items" in schema:
        return [example_of(schema["items"])]
    return schema.get("const")


def endpoints_of(document: Json) -> Iterator[Endpoint]:
    for path, item in resolved(document, document["paths"]).items():
        shared = item.pop("parameters", [])
        for method, operation in item.items():
            parameters = shared + operation.get("parameters", [])
            body = json_schema_of(operation.get("requestBody", {}))
            yield Endpoint(method.upper(), path, operation, parameters, body)


def json_schema_of(message: Json) -> Json:
    """The schema of the JSON in a request or an answer; empty if it has no JSON."""
    content = message.get("content", {}).get("application/json", {})
    return content.get("schema", {})  # type: ignore[no-any-return]


def _inputs(endpoint: Endpoint) -> Iterator[str]:
    """A table of its parameters and headers, and of the members of its body."""
    rows = [one["schema"] | one for one in endpoint.parameters if one["in"] != "path"]
    required = endpoint.body.get("required", [])
    for name, member in endpoint.body.get("properties", {}).items():
        rows.append({**member, "name": name, "in": "body", "required": name in required})
    if rows:
        yield from ("| Name | Where | What it is |", "|---|---|---|")
    for row in rows:
        about = row.get("description", "")
        if row.get("required"):
            about = f"Required. {about}"
        if "enum" in row:
            about += f" One of `{'`, `'.join(row['enum'])}`."
        if "maximum" in row:
            about += f" {row['minimum']:,} to {row['maximum']:,}."
        yield f"| `{row['name']}` | {row['in']} | {about} |"


def _command(endpoint: Endpoint, base_url: str) -> str:
    """A command for curl, with variables for keys and the id of a check."""
    url, data = base_url + endpoint.path, []
    for one in endpoint.parameters:
        value = VARIABLES.get(one["name"]) or one.get("example", "")
        if one["in"] == "path":
            url = url.replace(f"{{{one['name']}}}", value)
        elif one.get("required"):
            data.append(f'--data-urlencode "{one["name"]}={value}"')
    words = ["curl -fsS"]
    if endpoint.method != "GET":
        words.append(f"-X {endpoint.method}")
    words.append(f'"{url}"')
    if {"bearer": []} in endpoint.operation.get("security", []):
        words.append(OF_CHECKS)
    if endpoint.body:
        example = json.dumps(example_of(endpoint.body), ensure_ascii=False)
        words.append(f"-H 'Content-Type: application/json' -d '{example}'")
    if data:
        words += ["-G", *data, "-o card.png"]
    return " ".join(words)


def _answer(answers: Json) -> Iterator[str]:
    """The first answer, with an example if it is JSON, and the statuses of the refusals."""
    status, answer = next(iter(answers.items()))
    yield f"Answer **{status}**: {answer['description']}"
    if schema := json_schema_of(answer):
        yield from ("", "```json", json.dumps(example_of(schema), indent=2), "```")
    refused = ", ".join(status for status in answers if "400" <= status < "600")
    if refused:
        yield from ("", f"[Refused](#errors-by-code) with {refused}.")


def _errors(document: Json) -> Iterator[str]:
    yield from ("| Status | Code | Sentence |", "|---|---|---|")
    for status, answer in document["components"]["responses"].items():
        if status.isdigit():
            for code, example in answer["content"]["application/json"]["examples"].items():
                yield f"| {status} | `{code}` | {example['value']['error']} |"
