"""The text format of Prometheus, version 0.0.4."""

import json
from typing import Final

from cardbeat.files import read_text
from cardbeat.web.message import Response

FAMILIES: Final = json.loads(read_text("operation/metrics.json"))
"""The kind and the meaning of each family of samples, by endpoint."""

# The format escapes backslash, quote and newline, and so does JSON. No label has other controls.
_quoted = json.JSONEncoder(ensure_ascii=False).encode


class Samples:
    """The samples of an endpoint, by family."""

    def __init__(self, endpoint: str) -> None:
        self._lines: dict[str, list[str]] = {}
        for name, (kind, meaning) in FAMILIES[endpoint].items():
            self._lines[name] = [f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"]

    def add(self, family: str, value: float, suffix: str = "", **labels: object) -> None:
        """`add("a_total", 3, route="/")` adds the line `a_total{route="/"} 3`."""
        pairs = ",".join([f"{name}={_quoted(str(text))}" for name, text in labels.items()])
        braces = f"{{{pairs}}}" if pairs else ""
        self._lines[family].append(f"{family}{suffix}{braces} {value}\n")

    def response(self) -> Response:
        text = "".join("".join(lines) for lines in self._lines.values())
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return Response(200, text.encode(), headers)
