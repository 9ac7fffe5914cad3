"""The page "More than one machine": its commands on the built artifact, and its nginx before two."""

import json
import os
import re
import shutil
import subprocess
import sys
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
