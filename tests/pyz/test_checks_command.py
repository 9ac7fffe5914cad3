"""`checks apply` of the artifact against a server of the artifact."""

import http.client
import http.server
import json
import subprocess
import threading
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


@pytest.fixture
def listed_together(server):
    """The URL of a proxy that gives the first two lists of checks out at the same moment: both see none."""
    both_asked = threading.Barrier(2, timeout=30)
    lists = iter(range(2))

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            if self.command == "GET" and next(lists, None) is not None:
                both_asked.wait()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_port}"
        proxy.shutdown()
        thread.join()


def names(listed):
    return sorted(check["name"] for check in listed)


def test_fifty_checks_are_created_once_and_then_nothing_changes(server, begin):
    first, _ = begin(server.url, "apply", "checks.toml").communicate()
    assert first.endswith("\n50 created, 0 changed, 0 deleted, 0 unchanged\n")
    before, _ = begin(server.url, "list", "--json").communicate()
    again = begin(server.url, "apply", "checks.toml")
    assert again.communicate()[0] == "0 created, 0 changed, 0 deleted, 50 unchanged\n"
    assert again.returncode == 0
    assert begin(server.url, "list", "--json").communicate()[0] == before


def test_two_that_apply_a_file_at_once_leave_every_check_once_and_have_no_conflict(server, begin, listed_together):
    both = [begin(listed_together, "apply", "checks.toml", "--json") for _ in range(2)]
    outcomes = [json.loads(one.communicate()[0]) for one in both]
    listed = json.loads(begin(server.url, "list", "--json").communicate()[0])
    assert names(listed) == sorted(f"job {number}" for number in range(50))
    assert names(outcomes[0]["created"] + outcomes[1]["created"]) == names(listed)
    assert [len(outcome["created"]) + len(outcome["unchanged"]) for outcome in outcomes] == [50, 50]
    assert [outcome["conflicts"] for outcome in outcomes] == [[], []]
    assert [one.returncode for one in both] == [0, 0]
