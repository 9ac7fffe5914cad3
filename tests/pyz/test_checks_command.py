"""`checks apply` of the artifact against a server of the artifact."""

import json
import socket
import subprocess
import urllib.request

import pytest

from tests.artifact import clean_environment

FIFTY = "[defaults]\nperiod_seconds = 3600\ngrace_seconds = 60\n" + "".join(
    f'[[check]]\nname = "job {number}"\n' for number in range(50)
)


@pytest.fixture
def key(server):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}/register", b'{"email": "you@example.com"}', headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["key"]


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def begin(python, pyz, key, tmp_path):
    """Begins the command in the folder of the file with the fifty checks."""
    (tmp_path / "checks.toml").write_text(FIFTY)

    def begin(url, *argv):
        environment = {**clean_environment(), "CARDBEAT_URL": url, "CARDBEAT_KEY": key}
        return subprocess.Popen(
            [python, pyz, "checks", *argv], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        )

    return begin


def test_fifty_checks_are_created_once_and_then_nothing_changes(server, begin):
    first, _ = begin(server.url, "apply", "checks.toml").communicate()
    assert first.endswith("\n50 created, 0 changed, 0 deleted, 0 unchanged\n")
    before, _ = begin(server.url, "list", "--json").communicate()
    again = begin(server.url, "apply", "checks.toml")
    assert again.communicate()[0] == "0 created, 0 changed, 0 deleted, 50 unchanged\n"
    assert again.returncode == 0
    assert begin(server.url, "list", "--json").communicate()[0] == before


def test_a_proxy_of_the_environment_sees_nothing_of_a_server_without_https(python, pyz, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        environment = {
            **{name: value for name, value in clean_environment().items() if name.lower() != "no_proxy"},
            **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), address),
            "CARDBEAT_URL": "http://server.invalid:8080",
            "CARDBEAT_KEY": "sk_a",
        }
        ran = subprocess.run(
            [python, pyz, "checks", "list"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()
