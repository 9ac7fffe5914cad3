"""The server as a program calls it, for what a test needs beside the browser."""

import json
import urllib.request


class Api:
    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body=None, key: str | None = None) -> dict:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or b"{}")

    def checks_key(self) -> str:
        return self("POST", "register", {"email": "ops@example.com"})["key"]

    def check(self, key: str, name: str = "Nightly backup", **fields) -> dict:
        body = {"name": name, "period_seconds": 3600, "grace_seconds": 60, **fields}
        return self("POST", "checks", body, key)["check"]
