"""The server as a program calls it, for what a test needs beside the browser."""

import json
from typing import Any

from tests.client import Listening, ask, checks_key


class Api:
    def __init__(self, server: Listening) -> None:
        self.server = server

    def __call__(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        answer = ask(self.server, method, f"/{path}", body, key)
        assert answer.status < 400, answer.body
        return json.loads(answer.body or b"{}")

    def checks_key(self) -> str:
        return checks_key(self.server)

    def check(self, key: str, name: str = "Nightly backup", **fields: Any) -> Any:
        body = {"name": name, "period_seconds": 3600, "grace_seconds": 60, **fields}
        return self("POST", "checks", body, key)["check"]
