"""The endpoints of an OpenAPI description as Markdown, each with a command that asks it."""

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

Json = dict[str, Any]

VARIABLES: Final = {"id": "$CHECK_ID"}
"""What stands for a part of the path in a command; for the others it is their example."""

OF_ANY_BODY: Final = frozenset({"413", "415"})
"""Statuses that are told once for all endpoints, in `docs/api.md`."""


def reference(document: Json) -> str:
    """One section for each tag, with its endpoints, and then all errors."""
    paths: dict[str, Json] = document["paths"]
    endpoints = [
        _Endpoint(document, method, path, item)
        for path, item in paths.items()
        for method in item
        if method != "parameters"
    ]
    everywhere = OF_ANY_BODY.union(set.intersection(*({*one.operation["responses"]} for one in endpoints)))
    shown: dict[str, str] = {}
    lines: list[str] = []
    for tag in document["tags"]:
        found = [one for one in endpoints if tag["name"] in one.operation["tags"]]
        lines += ["", f"## {tag['name']}", "", tag["description"]] if found else []
        for one in found:
            lines += ["", *one.lines(shown, everywhere)]
    return "\n".join([*lines, "", "## Errors by code", "", *_errors(document), ""])


class _Endpoint:
    def __init__(self, document: Json, method: str, path: str, item: Json) -> None:
        self.operation: Json = item[method]
        self._schemas: Json = document["components"]["schemas"]
        self._name = f"{method.upper()} {path}"
        self._method, self._url = method.upper(), f"{document['servers'][0]['url']}{path}"
        for one in item.get("parameters", []):
            self._url = self._url.replace(f"{{{one['name']}}}", VARIABLES.get(one["name"]) or one["example"])
        self._parameters: list[Json] = self.operation.get("parameters", [])
        self._body = _json_of(self.operation.get("requestBody", {}))
        self._status, self._success = next(
            (status, answer) for status, answer in self.operation["responses"].items() if status[0] == "2"
        )

    def lines(self, shown: dict[str, str], everywhere: Collection[str]) -> Iterator[str]:
        """The section. `shown` has, by its schema, the endpoint at which each answer is shown: later ones name it."""
        yield f"### {self._name}"
        yield ""
        yield f"{self.operation['summary']}. {self.operation.get('description', '')}".strip()
        for where, title in (("query", "Parameter"), ("header", "Header")):
            found = [one for one in self._parameters if one["in"] == where]
            needed = [one["name"] for one in found if one.get("required")]
            yield from _table(title, needed, {one["name"]: {**one["schema"], **one} for one in found})
        name = self._body.get("schema", {}).get("$ref", "").rpartition("/")[2]
        members = self._schemas.get(name, {})
        yield from _table("Member of the body", members.get("required", ()), members.get("properties", {}))
        yield from ("", "```sh", self._command(), "```", "")
        yield from self._answer(shown)
        own = [status for status in self.operation["responses"] if status >= "400" and status not in everywhere]
        if own:
            yield from ("", f"[Refused](#errors-by-code) with {', '.join(own)}.")

    def _command(self) -> str:
        """For curl, with variables for keys and the id of a check."""
        words = ["curl -fsS", f'"{self._url}"']
        if self._method not in ("GET", "POST") or (self._method == "POST" and not self._body):
            words.insert(1, f"-X {self._method}")
        if {"bearer": []} in self.operation.get("security", ()):
            words.append('-H "Authorization: Bearer $CHECKS_KEY"')
        if self._body:
            example = json.dumps(_first(self._body["examples"]), ensure_ascii=False)
            words.append(f"-H 'Content-Type: application/json' -d '{example}'")
        asked = {one["name"]: one["example"] for one in reversed(self._parameters) if one.get("required")}
        if asked:
            asked |= {"key": "$CARDS_KEY"}
            words += ["-G", *(f'--data-urlencode "{name}={value}"' for name, value in asked.items()), "-o card.png"]
        return " ".join(words)

    def _answer(self, shown: dict[str, str]) -> Iterator[str]:
        content = _json_of(self._success)
        schema = content.get("schema", {}).get("$ref", "")
        first = shown.setdefault(schema, self._name)
        same = f" Its members are those of `{first}`." if schema and first != self._name else ""
        yield f"Answer **{self._status}**: {self._success['description']}{same}"
        if content and not same:
            example = content["examples"].get(next(iter(self._body.get("examples", {})), ""))
            text = json.dumps(example["value"] if example else _first(content["examples"]), indent=2)
            yield from ("", "```json", text, "```")


def _json_of(message: Json) -> Json:
    """What is said of the JSON in a request or an answer: nothing, if there is none."""
    return message.get("content", {}).get("application/json", {})  # type: ignore[no-any-return]


def _table(title: str, required: Collection[str], members: dict[str, Json]) -> Iterator[str]:
    if members:
        yield from ("", f"| {title} | What it is |", "|---|---|")
    for name, schema in members.items():
        about = ("Required." if name in required else "", schema.get("description", ""), _bounds(schema))
        yield f"| `{name}` | {' '.join(filter(None, about))} |"


def _bounds(schema: Json) -> str:
    """What a value must be, as far as a schema says so in numbers or words."""
    if "enum" in schema:
        return "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + "."
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']:,} to {schema['maximum']:,}."
    return ""


def _errors(document: Json) -> Iterator[str]:
    yield from ("| Status | Code | Sentence |", "|---|---|---|")
    for status, answer in document["components"]["responses"].items():
        for code, example in answer["content"]["application/json"]["examples"].items():
            yield f"| {status} | `{code}` | {example['value']['error']} |"


def _first(examples: dict[str, Json]) -> Any:
    return next(iter(examples.values()))["value"]
