"""The page "More than one machine": its commands on the built artifact, and its nginx before two."""

import concurrent.futures
import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from tests.artifact import clean_environment, starter
from tests.documentation import DOCS, blocks
from tests.pyz.proxies import nginx

HOOK = "https://hooks.example.com/"
PSYCOPG = "psycopg[binary]>=3.2.11"


def block(language, number=0):
    return blocks("nodes", language)[number]


def posted(url, body=None, key=""):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url, b"" if body is None else json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def fetched(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.headers["X-Cache"]


@pytest.fixture
def nodes(postgresql, pyz, tmp_path):
    """Two of them, started as it says after the commands before that line, the second in a folder of its own."""
    commands = block("shell").replace(
        "postgresql://cardbeat:PASSWORD@db1.example.com,db2.example.com/cardbeat", postgresql.new_schema()
    )
    *before, serve = commands.splitlines()
    assert before.pop(0) == f'python -m pip install "{PSYCOPG}"'
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    with starter(sys.executable, pyz, tmp_path) as start:
        server = start("--data", "file")
        key = posted(f"{server.url}/register")["key"]
        server.process.terminate()
        assert server.process.wait() == 0
    before.insert(0, "python cardbeat.pyz backup cardbeat-backup.db --data file")
    ran = subprocess.run(
        ["bash", "-c", "\n".join(before)],
        cwd=tmp_path,
        env={**clean_environment(), "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tmp_path / "database-url").stat().st_mode & 0o777 == 0o600
    # The tests' PostgreSQL runs so.
    assert "problem  database: fsync is off" in ran.stdout
    assert "keys 1, checks 0" in ran.stdout, ran.stdout + ran.stderr
    options = serve.replace("10.0.0.1", "127.0.0.1").replace("10.0.0.9", "127.0.0.1").split()[2:]
    with starter(sys.executable, pyz, tmp_path) as start:
        yield key, [start("--database", "database-url", "--data", f"node{n}", *options) for n in range(2)]


@pytest.fixture
def balancer(nodes, tmp_path):
    """The URL of nginx with the page's configuration."""
    addresses = {f"10.0.0.{number}:8080": f"127.0.0.1:{node.port}" for number, node in enumerate(nodes[1], 1)}
    with nginx(block("nginx"), tmp_path, addresses) as url:
        yield url


def test_two_nodes_behind_a_balancer_draw_each_card_once_and_outlive_one_of_them(nodes, balancer):
    key, (first, second) = nodes
    cards = [f"{balancer}/og?title={number}&key={key}" for number in range(8)]
    assert {fetched(url) for url in cards} == {(200, "MISS")}
    assert {fetched(url) for url in cards} == {(200, "HIT")}
    checks_key = posted(f"{balancer}/register", {"email": "you@example.com"})["key"]
    nightly = {"name": "Nightly backup", "period_seconds": 86400, "grace_seconds": 3600, "webhook_url": HOOK}
    check = posted(f"{balancer}/checks", nightly, checks_key)["check"]
    ping = f"/ping/{check['id']}"
    assert [fetched(node.url + ping)[0] for node in (first, second)] == [200, 200]
    first.process.kill()
    first.process.wait()
    assert [fetched(balancer + ping)[0] for _ in range(4)] == [200] * 4
    assert {fetched(url)[0] for url in cards} == {200}


def test_the_service_runs_by_the_python_that_got_psycopg_and_is_given_the_file():
    settings = re.findall(r"^(\w+)=(.+)$", block("ini"), re.MULTILINE)
    (start,) = [value for name, value in settings if name == "ExecStart"]
    (credential,) = [value for name, value in settings if name == "LoadCredential"]
    python, *rest = start.split()
    (name, file), folder = credential.split(":"), python.removesuffix("/bin/python")
    (unit_start,) = re.findall(r"^ExecStart=/usr/bin/python3 (.+)$", DOCS["running"], re.MULTILINE)
    assert rest == unit_start.split()
    commands = block("shell", 1)
    assert f"sudo python3 -m venv --system-site-packages {folder}\n" in commands
    assert f'sudo {folder}/bin/pip install "{PSYCOPG}"\n' in commands
    assert f"sudo install -D -m 600 database-url {file}\n" in commands
    assert f"sudo {python} {' '.join(rest)} doctor --data /var/lib/cardbeat --database {file}\n" in commands
    assert f"CARDBEAT_DATABASE=%d/{name} " in block("ini")


def test_the_image_is_told_the_same_psycopg():
    assert f"`'{PSYCOPG}'`" in DOCS["nodes"]


class _Node(http.server.BaseHTTPRequestHandler):
    """Notes in `server.seen` what it answers: 503 to the paths in which `server.refused` is found, else 200.

    To a path with "closed" in it, it answers nothing, as a server does that has no memory or connection for a client.
    """

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if "closed" in self.path:
            self.close_connection = True
            return
        status = 503 if re.search(self.server.refused, self.path) else 200
        self.server.seen.append((self.command, status))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def node(refused):
    """One that refuses the paths in which that pattern is found."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Node) as server:
        server.refused, server.seen = refused, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextlib.contextmanager
def vanished_machine():
    """The address of one that drops all packets: the queue of its socket is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield "{}:{}".format(*listener.getsockname())


def status(url, body=None):
    try:
        with urllib.request.urlopen(url, body, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def at(server):
    return f"127.0.0.1:{server.server_port}"


@pytest.fixture
def with_addresses(tmp_path):
    """The URL of nginx with the page's configuration, for nodes with these addresses."""
    with contextlib.ExitStack() as stack:

        def start(first, second):
            replaced = {"10.0.0.1:8080": first, "10.0.0.2:8080": second}
            return stack.enter_context(nginx(block("nginx"), tmp_path, replaced))

        yield start


def all_at_once(*requests):
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(status, *zip(*requests, strict=True)))


def test_a_machine_that_vanished_costs_a_request_two_seconds_and_none_is_lost(with_addresses):
    with node("nothing") as living, vanished_machine() as gone:
        url = with_addresses(at(living), gone)
        started = time.monotonic()
        pings = [(f"{url}/ping/1", body) for body in (None, b"log")] * 4
        cards = [(f"{url}/og?title={number}", None) for number in range(8)]
        assert set(all_at_once(*pings, *cards, *[(f"{url}/checks", b"{}")] * 4)) == {200}
        assert time.monotonic() - started < 6


def test_a_ping_at_a_node_that_hangs_is_answered_by_another_one_before_curl_gives_up(with_addresses):
    with node("nothing") as living, socket.create_server(("127.0.0.1", 0)) as hanging:
        url = with_addresses(at(living), "{}:{}".format(*hanging.getsockname()))
        assert all_at_once(*[(f"{url}/ping/1", None)] * 4) == [200] * 4


def test_a_node_that_stops_or_lacks_its_database_has_its_requests_answered_by_another_one(with_addresses):
    with node("/(ping|og|checks)") as refusing, node("nothing") as other:
        url = with_addresses(at(refusing), at(other))
        for path in ("ping/1", *(f"og?title={number}" for number in range(8))):
            assert [status(f"{url}/{path}") for _ in range(2)] == [200, 200]
        assert ("GET", 503) in refusing.seen
        # What may have been done is not sent again.
        before = len(refusing.seen + other.seen)
        assert {status(f"{url}/checks", b"{}") for _ in range(4)} == {200, 503}
        assert len(refusing.seen + other.seen) == before + 4


@pytest.mark.parametrize(("cause", "answer"), [("refused", 503), ("closed", 502)])
def test_a_client_that_no_node_answers_takes_none_of_them_from_others(with_addresses, cause, answer):
    with node("refused") as first, node("refused") as second:
        url = with_addresses(at(first), at(second))
        for number in range(8):
            for upstream in ("ping/{}", "og?title={}"):
                assert status(f"{url}/{upstream.format(cause)}") == answer
                assert status(f"{url}/{upstream.format(number)}") == 200
