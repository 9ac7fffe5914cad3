"""The command `checks` beside a server or a proxy that means harm: one clear line, status 2, and nothing is told."""

import gzip
import itertools
import json
import socket
import threading

import pytest

from cardbeat.client import api, transport

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e"
CHECK = {
    "id": "chk_1",
    "name": "a",
    "status": "on_time",
    "deadline_at": "2026-01-01 00:00:00",
    "ping_url": "http://127.0.0.1/ping/chk_1",
    "period_seconds": 60,
    "grace_seconds": 0,
    "version": 1,
    "webhook_url": None,
}
PING = {"status": "on_time", "recovered": False, "deadline_at": "2026-01-01 00:00:00"}


class Hostile:
    """Gives each connection to `answer(client, number, asked)`, until the test ends; keeps what was asked."""

    def __init__(self, answer):
        self.asked = []
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        # Wakes the thread out of `accept`.
        self._answer = None
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()

    def _serve(self):
        for number in itertools.count():
            client, _ = self._listener.accept()
            with client:
                if self._answer is None:
                    return
                asked = client.recv(65536)
                self.asked.append(asked)
                try:
                    self._answer(client, number, asked)
                except OSError:
                    continue


@pytest.fixture
def hostile(monkeypatch):
    """Makes the server that `CARDBEAT_URL` names."""
    made = []

    def make(answer):
        made.append(Hostile(answer))
        monkeypatch.setenv("CARDBEAT_URL", made[-1].url)
        monkeypatch.setenv("CARDBEAT_KEY", "sk_secret")
        return made[-1]

    yield make
    for server in made:
        server.close()


def answer(value, status="200 OK", headers=""):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def always(response):
    return lambda client, _number, _asked: client.sendall(response)


def scripted(*responses):
    """These answers in order; the last one again and again."""
    return lambda client, number, _asked: client.sendall(responses[min(number, len(responses) - 1)])


def page(*checks, following=None):
    return answer({"checks": list(checks), "next": following})


HEAD = b"HTTP/1.1 200 OK\r\n"
LISTS = {
    "escapes in the status line": f"HTTP/1.1 400 {ESCAPES}\r\n\r\n".encode(),
    "escapes in place of HTTP": f"{ESCAPES}\r\n\r\n".encode(),
    "escapes in the version": f"HTTP/{ESCAPES} 200 OK\r\n\r\n".encode(),
    "escapes in the error sentence": answer({"error": ESCAPES}, "400 x"),
    "escapes in a header": answer(b"", "301 x", f"Location: http://a/{ESCAPES}\r\n"),
    "a long status line": b"x" * 60_000 + b"\r\n\r\n",
    "a long error sentence": answer({"error": "x" * 100_000}, "400 x"),
    "an error that is no sentence": answer({"error": {"a": ["x"]}}, "400 x"),
    "a huge length": HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "a length above memory": HEAD + b"Content-Length: 4611686018427387904\r\n\r\n{}",
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n{}",
    "a length of no number": HEAD + b"Content-Length: x\r\n\r\n{}",
    "a length of many digits": HEAD + b"Content-Length: " + b"9" * 60_000 + b"\r\n\r\n{}",
    "chunks of no number": HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n",
    "chunks of a negative size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n",
    "chunks of a size far below": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-ffff\r\n{}\r\n",
    "chunks of a huge size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n",
    "gzip that nobody asked for": answer(gzip.compress(b"{}"), headers="Content-Encoding: gzip\r\n"),
    "invalid UTF-8": answer(b'{"checks": "\xff"}'),
    "ten million digits": answer(b'{"checks": ' + b"9" * 10**7 + b"}"),
    "deep nesting": answer(b'{"checks": ' + b'[{"a":' * 10**6),
    "deep nesting in an error": answer(b"[" * 10**6, "400 x"),
    "a list in place of the answer": answer([]),
    "a list in place of a check": page([]),
    "a list in place of a name": page(CHECK | {"name": ["a"]}),
    "a list in place of a time": page(CHECK | {"last_ping_at": ["a"]}),
    "an object in place of a URL": page(CHECK | {"webhook_url": {}}),
    "a number that is true": page(CHECK | {"version": True}),
    "a long name": page(CHECK | {"name": "x" * 10**6}),
    "a number that is not finite": answer(b'{"checks": [], "next": null, "more": NaN}'),
    "a number that is too large": answer(b'{"checks": [], "next": null, "more": 1e999}'),
    "a list as the next page": answer({"checks": [], "next": ["a"]}),
    "half a character as the next page": answer({"checks": [], "next": "\ud800"}),
    "an id that is a path": page(CHECK | {"id": "../../evil"}),
    "an id that is a query": page(CHECK | {"id": "a?b#c"}),
    "an id with a line's end": page(CHECK | {"id": "a\r\nX: y"}),
    "a body longer than any page": HEAD + b"\r\n" + b" " * 17 * 2**20,
    "headers without end": HEAD + b"X: y\r\n" * 200,
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("argv", [("list",), ("list", "--json"), ("ping", "a")])
def test_what_is_wrong_with_an_answer_is_one_short_line_without_control_characters(checks, hostile, name, argv):
    hostile(always(LISTS[name]))
    status, out, err = checks(*argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("cardbeat: ")
    assert err.rstrip("\n").isprintable()
    assert len(err) < 4000


@pytest.mark.parametrize(
    "pinged",
    [
        PING | {"deadline_at": ESCAPES},
        PING | {"deadline_at": ["a"]},
        PING | {"recovered": 1},
        {},
        [],
        "x",
    ],
)
@pytest.mark.parametrize("argv", [("ping", "a"), ("ping", "a", "--json")])
def test_so_it_is_with_the_answer_to_a_ping(checks, hostile, pinged, argv):
    hostile(scripted(page(CHECK), answer(pinged)))
    status, out, err = checks(*argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "its answer is not that of a cardbeat server" in err
    assert err.rstrip("\n").isprintable()


ALERT = {
    "id": "msg_1",
    "type": "check.test",
    "state": "pending",
    "attempts": 1,
    "last_status": 404,
    "last_error": "The receiver answered 404.",
    "next_attempt_at": None,
}


def alerts(*listed):
    return answer({"alerts": list(listed)})


@pytest.mark.parametrize("argv", [("test", "a"), ("test", "a", "--json")])
@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ALERT | {"id": ["a"]},
        ALERT | {"attempts": "1"},
        ALERT | {"last_status": ESCAPES},
        ALERT | {"last_status": True},
        ALERT | {"last_error": "x" * 10**6},
        ALERT | {"next_attempt_at": ESCAPES},
        ALERT | {"state": ESCAPES},
    ],
)
def test_so_it_is_with_a_list_of_alerts(checks, hostile, argv, wrong):
    hostile(scripted(page(CHECK), alerts(), answer({"check": CHECK}, "202 x"), alerts(wrong)))
    status, out, err = checks(*argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "its answer is not that of a cardbeat server" in err
    assert err.rstrip("\n").isprintable()


@pytest.mark.parametrize("state", ["delivered", "pending", "failed"])
def test_what_an_answer_leaves_out_is_none(checks, hostile, tmp_path, state):
    lists, added, alert = answer({"checks": [CHECK]}), answer({"check": CHECK}), {"id": "m", "type": "check.test"}
    hostile(scripted(lists, alerts(), added, alerts(alert | {"state": state, "attempts": 1})))
    status, out, err = checks("test", "a")
    assert (status, out.count("\n"), err) == (0 if state == "delivered" else 1, 1, "")
    (tmp_path / "checks.toml").write_text("[[check]]\nname = 'b'\nperiod_seconds = 60\ngrace_seconds = 0\n")
    hostile(scripted(lists, answer({"check": {name: it for name, it in CHECK.items() if name != "ping_url"}})))
    assert checks("apply", str(tmp_path / "checks.toml"))[::2] == (0, "")


def test_what_an_alert_says_is_shown_escaped(checks, hostile):
    listed = alerts(ALERT | {"last_error": ESCAPES})
    hostile(scripted(page(CHECK), alerts(), answer({"check": CHECK}, "202 x"), listed))
    status, out, err = checks("test", "a")
    assert (status, err) == (1, "")
    assert out.rstrip("\n").isprintable()


def test_a_test_alert_that_is_never_listed_is_waited_for_no_longer_than_asked(hostile):
    server, moments = hostile(always(alerts(ALERT))), itertools.count()
    client = api.Api(server.url, "sk_a", sleep=lambda _: None, clock=lambda: next(moments))
    with pytest.raises(api.StartupError, match="lacks the test alert"):
        client.test("chk_1", 30)


def test_what_a_check_says_is_shown_escaped(checks, hostile):
    server = hostile(always(page(CHECK | {"name": f"a{ESCAPES}\n\ud800", "more": [ESCAPES], "webhook_url": "\x1b"})))
    status, out, err = checks("list")
    assert (status, err) == (0, "")
    assert out.replace("\n", "").isprintable()
    assert "a\\x1b]0;owned\\x07" in out
    assert checks("list", "--json")[1].rstrip("\n").isprintable()
    assert len(server.asked) == 2


def test_an_apply_shows_it_escaped_too(checks, hostile, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[[check]]\nname = "a"\nperiod_seconds = 60\ngrace_seconds = 0\n')
    listed = page(CHECK | {"webhook_url": ESCAPES}, CHECK | {"name": ESCAPES})
    hostile(scripted(listed, listed, answer({"error": ESCAPES}, "400 x")))
    for argv in (("apply", file, "--prune", "--dry-run"), ("apply", file, "--prune")):
        _, out, err = checks(*argv)
        assert out
        assert (out + err).replace("\n", "").isprintable()


def test_a_check_without_the_members_that_may_be_missing_is_compared(checks, hostile, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        '[[check]]\nname = "a"\nperiod_seconds = 60\ngrace_seconds = 0\nwebhook_url = "https://a.example"\n'
    )
    hostile(always(page({name: value for name, value in CHECK.items() if name != "webhook_url"})))
    status, out, _ = checks("apply", file, "--dry-run")
    assert (status, out.splitlines()[0]) == (0, "would change a: webhook_url None -> https://a.example/...")


def test_a_list_without_end_ends(checks, hostile, monkeypatch):
    monkeypatch.setattr(api, "PAGES", 5)
    server = hostile(always(page(CHECK, following="chk_1")))
    status, out, err = checks("list")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "its list of checks does not end" in err
    assert len(server.asked) == 5


def test_a_list_of_too_many_bytes_ends(checks, hostile, monkeypatch):
    monkeypatch.setattr(api, "LIST_BYTES", 5000)
    server = hostile(always(page(CHECK, following="chk_1")))
    status, out, err = checks("list")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "its list of checks does not end" in err
    assert len(server.asked) < 30


def test_of_a_check_no_member_is_kept_that_is_not_a_check_s(checks, hostile):
    """Of the checks on all pages, members of the server's own took 924 MB."""
    hostile(always(page({**CHECK, **{f"more {number}": number for number in range(90)}})))
    assert json.loads(checks("list", "--json")[1]) == [CHECK]


def test_a_page_of_more_checks_than_asked_for_is_refused(checks, hostile):
    hostile(always(page(*[CHECK] * 1001)))
    status, out, err = checks("list")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "its page has more than 1000 checks" in err


DRIPS = {
    "status line": b"",
    "headers": HEAD,
    "body": HEAD + b"Content-Length: 1000000\r\n\r\n",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
    "further heads": b"HTTP/1.1 100 Continue\r\n",
}


@pytest.mark.parametrize("name", DRIPS)
def test_an_answer_that_drips_is_given_up(checks, hostile, monkeypatch, name):
    monkeypatch.setattr(transport, "TIMEOUT_SECONDS", 0.3)
    gone = threading.Event()

    def drip(client, _number, _asked):
        client.sendall(DRIPS[name])
        try:
            # Without a limit this would go on for hours.
            while not gone.wait(0.02):
                client.sendall(b"1")
        except OSError:
            gone.set()

    hostile(drip)
    ran = []
    thread = threading.Thread(target=lambda: ran.append(checks("list")), daemon=True)
    thread.start()
    thread.join(20)
    gone.set()
    assert ran, "the command still waits"
    status, out, err = ran[0]
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "timed out" in err


def test_no_request_begins_when_the_time_of_the_command_is_over(hostile):
    server = hostile(always(answer({"error": "Busy."}, "503 x")))
    moments = iter([0, 1, 2, api.COMMAND_SECONDS + 1])
    client = api.Api(server.url, "sk_a", sleep=lambda _: None, clock=lambda: next(moments))
    with pytest.raises(api.StartupError, match="it took longer than 30 minutes"):
        client.checks()
    assert len(server.asked) == 2


def test_many_changes_over_a_slow_link_have_more_time(hostile):
    server = hostile(always(answer({"check": CHECK})))
    moments = itertools.count(api.COMMAND_SECONDS - 5, 0.9)
    client = api.Api(server.url, "sk_a", clock=lambda: 0 if not server.asked else next(moments))
    for _ in range(100):
        client.create({})
    assert next(moments) > api.COMMAND_SECONDS + 80


@pytest.mark.parametrize("host", ["127.0.0.1", "server.example"])
def test_no_proxy_of_the_environment_sees_a_key_in_clear(checks, hostile, monkeypatch, host):
    server = hostile(always(page()))
    proxy = hostile(always(page()))
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, proxy.url)
    monkeypatch.setenv("CARDBEAT_URL", server.url if host == "127.0.0.1" else f"http://{host}:1")
    monkeypatch.setattr("socket.getaddrinfo", _no_names)
    checks("list")
    assert (len(server.asked), proxy.asked) == (int(host == "127.0.0.1"), [])


def _no_names(host, port, *_arguments, **_named):
    if host != "127.0.0.1":
        raise socket.gaierror(-2, "Name or service not known")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]


def test_a_proxy_for_https_is_asked_for_a_tunnel_and_sees_no_key(checks, hostile, monkeypatch):
    proxy = hostile(always(f"HTTP/1.1 407 {ESCAPES}\r\n\r\n".encode()))
    monkeypatch.setenv("https_proxy", proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("CARDBEAT_URL", "https://server.example")
    status, _, err = checks("list")
    assert (status, err.count("\n")) == (2, 1)
    assert err.rstrip("\n").isprintable()
    (asked,) = proxy.asked
    assert asked.startswith(b"CONNECT server.example:443 ")
    assert b"sk_secret" not in asked


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "https://localhost:1", "https://[::1]:1"])
def test_this_host_is_reached_without_a_proxy(checks, hostile, monkeypatch, url):
    proxy = hostile(always(page()))
    monkeypatch.setenv("https_proxy", proxy.url)
    monkeypatch.setenv("CARDBEAT_URL", url)
    assert checks("list")[0] == 2
    assert proxy.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_does_not_follow_a_redirect_to_another_host(checks, hostile, monkeypatch, status):
    other = hostile(always(page()))
    server = hostile(always(answer(b"", f"{status} x", f"Location: {other.url}/\r\n")))
    assert checks("list") == (2, "", f"cardbeat: the server answered {status}, see {other.url}/\n")
    assert (len(server.asked), other.asked) == (1, [])
