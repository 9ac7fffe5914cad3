"""curl, alone and behind the documentation's proxies: its address, bodies with no length."""

import json
import re
from contextlib import ExitStack

import pytest

from tests.artifact.pyz.proxies import KINDS, running
from tests.kit.artifact import ran, starter
from tests.kit.client import ask, checks_key, new_check
from tests.kit.support import wait_until

CHUNKED = ("-H", "Transfer-Encoding: chunked", "-d", "@-")
OF_KNOWN_LENGTH = ("--data-binary", "@-")
WITHOUT_LENGTH = ("-X", "POST", "-T", "-")
"""By HTTP/1.1 this is chunked too; by HTTP/2 no header tells of a body."""
BODIES = {
    "--http1.1": (OF_KNOWN_LENGTH, CHUNKED, WITHOUT_LENGTH),
    "--http2-prior-knowledge": (OF_KNOWN_LENGTH, WITHOUT_LENGTH),
}
LONG_LOG = "backed up\n" * 300_000
LOGS = ("", "backed up 3 files\n", LONG_LOG)
FORGED = ("--interface", "127.0.0.9", "-H", "X-Forwarded-For: 9.9.9.9")
OPTIONS = (
    "--trusted-proxy",
    "127.0.0.1",
    "--base-url",
    "https://cards.example.com",
)
WAYS = [
    ("directly", "--http1.1"),
    *((name, version) for name in KINDS for version in BODIES),
]


@pytest.fixture(scope="module")
def server(python, pyz, tmp_path_factory):
    with starter(python, pyz, tmp_path_factory.mktemp("behind")) as start:
        yield start(*OPTIONS)


@pytest.fixture(scope="module", params=WAYS, ids=" ".join)
def curl(request, server, tmp_path_factory):
    """Asks in one way, with options and a body for stdin; gives the status."""
    name, version = request.param
    url = server.url
    with ExitStack() as stack:
        if name in KINDS:
            replaced = {"127.0.0.1:8080": f"127.0.0.1:{server.port}"}
            proxy = running(name, tmp_path_factory.mktemp(name), replaced)
            url = stack.enter_context(proxy)[version != "--http1.1"]

        def curl(path, *options, body=""):
            command = (
                "curl",
                "-sS",
                version,
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
            )
            done = ran(*command, url + path, *options, input=body)
            assert done.returncode == 0, done.stderr
            return int(done.stdout)

        curl.name = name
        curl.bodies = BODIES[version]
        yield curl


def test_the_server_knows_the_client_and_keeps_its_numbers_from_the_public(
    curl, server
):
    def clients():
        return re.findall(
            r"GET /robots.txt 200 \S+ \S+ (\S+)", server.log.read_text()
        )

    before = len(clients())
    assert curl("/robots.txt", *FORGED) == 200
    wait_until(lambda: len(clients()) > before)
    assert clients()[-1] == "127.0.0.9"
    assert curl("/metrics") == (200 if curl.name == "directly" else 403)


def test_bodies_arrive_with_a_length_and_without(curl, server):
    key = checks_key(server)
    check_id = new_check(server, key)["id"]
    for log in LOGS:
        for options in curl.bodies:
            assert curl(f"/ping/{check_id}", *options, body=log) == 200, (
                options,
                len(log),
            )
    check = ask(server, "GET", f"/checks/{check_id}", key=key).json[
        "check"
    ]
    assert check["ping_count"] == len(LOGS) * len(curl.bodies)
    headers = (
        "-H",
        "Content-Type: application/json",
        "-H",
        f"Authorization: Bearer {key}",
    )
    body = json.dumps(
        {"name": "job", "period_seconds": 86400, "grace_seconds": 3600}
    )
    assert curl("/checks", *headers, *WITHOUT_LENGTH, body=body) == 201
    # A log is no reason to hide that a check does not exist.
    assert (
        curl(f"/ping/{'0' * 32}/fail", *OF_KNOWN_LENGTH, body=LONG_LOG)
        == 404
    )
