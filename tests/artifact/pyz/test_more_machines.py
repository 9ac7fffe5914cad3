"""The page "More than one machine": its commands on the artifact, and its nginx before two."""

import contextlib
import http.server
import os
import re
import shutil
import socket
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.artifact.pyz.proxies import running
from tests.kit.artifact import shell, starter
from tests.kit.client import ask, cards_key, checks_key, new_check
from tests.kit.documentation import DOCS, blocks, example
from tests.kit.lists import numbered, times

PSYCOPG = "psycopg[binary]>=3.2.11"
DATABASE = "postgresql://cardbeat:PASSWORD@db1.example.com,db2.example.com/cardbeat"
BACKUP = "python cardbeat.pyz backup cardbeat-backup.db --data file"
HANG_SECONDS = 20
"""A client's patience. nginx's own is a minute."""
FIRST, SERVICE = blocks("nodes", "shell")


@pytest.fixture
def file_key(pyz, tmp_path):
    """A cards key on a server over a file, which has ended."""
    with starter(sys.executable, pyz, tmp_path) as start:
        server = start("--data", "file")
        key = cards_key(server)
        assert server.stop() == 0
    return key


@pytest.fixture
def nodes(file_key, postgresql, pyz, tmp_path):
    """Two of them, started as it says after the commands before that line."""
    url = postgresql.new_schema()
    install, *before, serve = FIRST.replace(DATABASE, url).splitlines()
    assert install == f'python -m pip install "{PSYCOPG}"'
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    # The tests' PostgreSQL runs without fsync, which doctor finds a problem.
    commands = "\n".join((BACKUP, *before)).replace(
        "doctor", "doctor || true"
    )
    printed = shell(commands, tmp_path, PATH=path)
    assert (tmp_path / "database.env").stat().st_mode & 0o777 == 0o600
    assert re.search("problem +database +fsync is off", printed)
    assert "keys: 1\nchecks: 0\n" in printed
    options = re.sub(r"10\.0\.0\.[19]", "127.0.0.1", serve).split()[2:]
    with starter(
        sys.executable, pyz, tmp_path, CARDBEAT_DATABASE=url
    ) as start:
        yield [
            start("--data", f"node{number}", *options)
            for number in range(2)
        ]


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.headers["X-Cache"]


def test_two_nodes_draw_each_card_once_and_outlive_one_of_them(
    file_key, nodes, balanced
):
    first, second = nodes
    url = balanced(at(first.port), at(second.port))
    cards = [
        f"{url}/og?title={number}&key={file_key}" for number in range(8)
    ]
    for cache in ("MISS", "HIT"):
        assert {*map(get, cards)} == {(200, cache)}
    ping = f"/ping/{new_check(first, checks_key(second))['id']}"
    assert [ask(node, "GET", ping).status for node in nodes] == [200, 200]
    first.process.kill()
    first.process.wait()
    assert {get(it)[0] for it in [url + ping] * 4 + cards} == {200}


def test_the_service_runs_by_the_python_that_got_psycopg_and_is_given_the_file():
    settings = dict(
        re.findall(
            r"^(\w+)=(.+)$", blocks("nodes", "ini")[0], re.MULTILINE
        )
    )
    python, *rest = settings["ExecStart"].split()
    file = settings["EnvironmentFile"]
    folder = python.removesuffix("/bin/python")
    assert f"\nExecStart=/usr/bin/python3 {' '.join(rest)}\n" in example(
        "cardbeat.service"
    )
    doctor = f"{python} {' '.join(rest)} doctor --data /var/lib/cardbeat"
    for command in (
        f"python3 -m venv --system-site-packages {folder}\n",
        f'{folder}/bin/pip install "{PSYCOPG}"\n',
        f"install -D -m 600 database.env {file}\n",
        f"sh -c 'set -a; . {file}; {doctor}'\n",
    ):
        assert f"sudo {command}" in SERVICE
    # What the image is told.
    assert f"`'{PSYCOPG}'`" in DOCS["nodes"]


class FakeNode(http.server.BaseHTTPRequestHandler):
    """Answers 503 to paths in which `server.refused` is found, else 200, and notes the status.

    A path with "closed" in it gets no answer, as from a server without a connection for a client.
    """

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "closed" in self.path:
            self.close_connection = True
            return
        status = 503 if re.search(self.server.refused, self.path) else 200
        self.server.seen.append(status)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_):
        pass


def at(port):
    return f"127.0.0.1:{port}"


@contextlib.contextmanager
def node(refused="nothing"):
    """One that refuses the paths in which that pattern is found."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), FakeNode
    ) as server:
        server.refused = refused
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextlib.contextmanager
def silent(*, drops_packets):
    """The address of a node that hangs; or of a machine that vanished: its socket's queue is full."""
    with contextlib.ExitStack() as stack:
        backlog = 0 if drops_packets else 16
        listener = stack.enter_context(
            socket.create_server(("127.0.0.1", 0), backlog=backlog)
        )
        for _ in range(4 * drops_packets):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield at(listener.getsockname()[1])


@pytest.fixture
def balanced(tmp_path):
    """The URL of nginx with the page's configuration, for nodes with these addresses."""
    with contextlib.ExitStack() as stack:

        def start(first, second):
            replaced = {"10.0.0.1:8080": first, "10.0.0.2:8080": second}
            (configuration,) = blocks("nodes", "nginx")
            return stack.enter_context(
                running("nginx", tmp_path, replaced, configuration)
            )[0]

        yield start


def status(url, body=None):
    try:
        with urllib.request.urlopen(
            url, body, timeout=HANG_SECONDS
        ) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def statuses(url, *requests):
    """Those of requests that are sent at the same time, each a path and a body, four times."""
    urls = [f"{url}/{path}" for path, _ in requests] * 4
    with ThreadPoolExecutor(len(urls)) as pool:
        return set(
            pool.map(status, urls, [body for _, body in requests] * 4)
        )


GETS = [("ping/1", None), ("og?title=1", None), ("og?title=2", None)]


def test_a_machine_that_vanished_loses_no_request_and_costs_each_a_moment(
    balanced,
):
    with node() as living, silent(drops_packets=True) as gone:
        url = balanced(at(living.server_port), gone)
        assert statuses(
            url, *GETS, ("ping/1", b"log"), ("checks", b"{}")
        ) == {200}


def test_a_ping_at_a_node_that_hangs_is_answered_by_another_one_before_curl_gives_up(
    balanced,
):
    with node() as living, silent(drops_packets=False) as hanging:
        assert statuses(
            balanced(at(living.server_port), hanging), GETS[0]
        ) == {200}


def test_a_node_that_lacks_its_database_has_its_requests_answered_by_another_one(
    balanced,
):
    with node("/(ping|og|checks)") as refusing, node() as other:
        url = balanced(at(refusing.server_port), at(other.server_port))
        for path in ("ping/1", *numbered("og?title={}", 8)):
            assert times(2, status, f"{url}/{path}") == [200, 200]
        assert 503 in refusing.seen
        # What may have been done is not sent again.
        before = len(refusing.seen + other.seen)
        assert set(times(4, status, f"{url}/checks", b"{}")) == {200, 503}
        assert len(refusing.seen + other.seen) == before + 4


@pytest.mark.parametrize(
    ("cause", "answer"), [("refused", 503), ("closed", 502)]
)
def test_a_client_that_no_node_answers_takes_none_of_them_from_others(
    balanced, cause, answer
):
    with node("refused") as first, node("refused") as second:
        url = balanced(at(first.server_port), at(second.server_port))
        for number in range(8):
            for path in ("ping/", "og?title="):
                assert status(f"{url}/{path}{cause}") == answer
                assert status(f"{url}/{path}{number}") == 200
