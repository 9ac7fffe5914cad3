"""A client of a server, which is anything with a `port` and perhaps a `host`."""

import contextlib
import http.client
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def connect(server):
    host = getattr(server, "host", "127.0.0.1")
    return http.client.HTTPConnection(host, server.port, timeout=60)


def exchange(connection, method, path, body=None, key=None, **headers):
    """Ask over a connection, with a body as JSON. `If_Match` is the header `If-Match`."""
    sent = {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    content = None
    if body is not None:
        sent["Content-Type"] = "application/json"
        content = json.dumps(body)
    if key is not None:
        sent["Authorization"] = f"Bearer {key}"
    connection.request(method, path, content, sent)
    answer = connection.getresponse()
    return Answer(answer.status, answer.headers, answer.read())


def ask(server, method, path, *args, **options):
    """Ask over a connection of its own: `ask(server, "PATCH", "/checks/1", {"name": "b"}, key)`."""
    with contextlib.closing(connect(server)) as connection:
        return exchange(connection, method, path, *args, **options)


def cards_key(server):
    return ask(server, "POST", "/register").json["key"]


def checks_key(server):
    body = {"email": "ops@example.com"}
    return ask(server, "POST", "/register", body).json["key"]


def new_check(server, key, **fields):
    body = {
        "name": "job",
        "period_seconds": 3600,
        "grace_seconds": 0,
    } | fields
    return ask(server, "POST", "/checks", body, key).json["check"]


def metric(server, name):
    lines = ask(server, "GET", "/metrics").body.decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.partition(" ")[2])
