"""The command `checks` beside a server or a proxy that fails or means harm: one clear line, and no key is told."""

import contextlib
import gzip
import json

import pytest

from cardbeat.client.api import Api
from cardbeat.errors import StartupError
from tests.kit.lists import each
from tests.kit.receiver import Receiver, repeat, say

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e"
CHECK = {
    "id": "chk_1",
    "name": "a",
    "status": "on_time",
    "deadline_at": "2026-01-01 00:00:00",
    "ping_url": "http://127.0.0.1/ping/chk_1",
    "period_seconds": 60,
    "grace_seconds": 0,
}
FILE = "[[check]]\nname='{}'\nperiod_seconds=60\ngrace_seconds=0\n"


@pytest.fixture
def serve(monkeypatch):
    """Makes the server that `CARDBEAT_URL` names: these answers in order, the last one again and again."""
    with contextlib.ExitStack() as stack:

        def make(*answers):
            server = Receiver(
                *(one if callable(one) else say(one) for one in answers)
            )
            monkeypatch.setenv("CARDBEAT_URL", url_of(server))
            monkeypatch.setenv("CARDBEAT_KEY", "sk_secret")
            return stack.enter_context(server)

        yield make


def url_of(server):
    return f"http://127.0.0.1:{server.port}"


def answer(value, status="200 OK", headers=""):
    body = (
        value if isinstance(value, bytes) else json.dumps(value).encode()
    )
    return (
        f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
        + body
    )


def page(*checks, following=None):
    return answer({"checks": list(checks), "next": following})


HEAD = b"HTTP/1.1 200 OK\r\n"
WRONG = {
    "nothing": b"",
    "another protocol": b"SSH-2.0-x\r\n",
    "escapes in the status line": f"HTTP/1.1 400 {ESCAPES}\r\n\r\n".encode(),
    "escapes in the error sentence": answer({"error": ESCAPES}, "400 x"),
    "a length above memory": HEAD
    + b"Content-Length: 4611686018427387904\r\n\r\n{}",
    "gzip that was not asked for": answer(
        gzip.compress(b"{}"), headers="Content-Encoding: gzip\r\n"
    ),
    "ten million digits": answer(
        b'{"checks": ' + b"9" * 10_000_000 + b"}"
    ),
    "deep nesting": answer(b'{"checks": ' + b'[{"a":' * 1_000_000),
    "a list in place of a check": page([]),
    "a check without a deadline": page(
        {"id": "x", "name": "a", "status": "on_time"}
    ),
    "pages without end": page(following="chk_1"),
    "a body longer than any page": HEAD + b"\r\n" + b" " * 17_000_000,
    "headers without end": HEAD + b"X: y\r\n" * 200,
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_an_answer_is_one_short_line_without_control_characters(
    checks, serve, name
):
    serve(WRONG[name])
    status, out, err = checks("list")
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("cardbeat: ")
    assert err.rstrip("\n").isprintable()
    assert len(err) < 4000


@pytest.mark.parametrize(
    "wrong",
    [[], {"deadline_at": ["a"]}, {"alerts": [[]]}, {"alerts": []}],
)
@pytest.mark.parametrize("action", ["ping", "test"])
def test_so_it_is_with_the_answers_to_a_ping_and_a_test(
    checks, serve, action, wrong
):
    serve(page(CHECK), answer(wrong))
    status, out, err = checks(action, "a")
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "not that of a cardbeat server" in err


def test_what_a_server_says_is_shown_escaped(checks, serve, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(FILE.format("a") + 'webhook_url = "http://b"\n')
    evil = CHECK | {
        "name": f"a{ESCAPES}\n\ud800",
        "last_ping_at": ESCAPES,
        "ping_url": [ESCAPES],
    }
    alert = {
        "type": "check.test",
        "state": ESCAPES,
        "attempts": 1,
        "last_error": ESCAPES,
    }
    listed = page(CHECK | {"webhook_url": ESCAPES}, evil)
    for argv, *answers in (
        (("list",), listed),
        (("list", "--json"), listed),
        (
            ("apply", file, "--prune"),
            listed,
            answer({"error": ESCAPES}, "400 x"),
        ),
        (("ping", "a"), listed, answer({"deadline_at": ESCAPES})),
        (("test", "a"), listed, answer({}), answer({"alerts": [alert]})),
    ):
        serve(*answers)
        _, out, err = checks(*argv)
        assert "owned" in out + err
        assert (out + err).replace("\n", "").isprintable()


def test_all_pages_are_listed(checks, serve):
    server = serve(
        page(CHECK, following="chk_1&"), page(CHECK | {"name": "b"})
    )
    assert each(json.loads(checks("list", "--json")[1]), "name") == [
        "a",
        "b",
    ]
    assert server.received[1].head.startswith(
        "GET /checks?limit=1000&after=chk_1%26 "
    )


@pytest.mark.parametrize(
    "last",
    [
        b"",
        answer({}, "502 x"),
        answer({"error": "Somebody else changed it."}, "412 x"),
    ],
)
def test_what_was_done_is_told_though_the_rest_fails(
    checks, serve, tmp_path, last
):
    file = tmp_path / "c.toml"
    file.write_text("".join(map(FILE.format, "abc")))
    server = serve(page(), answer({"check": CHECK}), last)
    status, out, err = checks("apply", file)
    assert status == 2
    assert out.split()[3:] == ["created", "a", CHECK["ping_url"]]
    assert err.startswith("cardbeat: b: ")
    assert err.endswith(
        "; what is printed was done; run apply again for the rest\n"
    )
    assert len(server.received) == 3


def test_an_answer_that_drips_is_given_up(serve):
    server = serve(
        repeat(
            b"1",
            first=HEAD + b"Content-Length: 1000000\r\n\r\n",
            pause_seconds=0.02,
        )
    )
    with pytest.raises(
        StartupError, match=r"no whole answer came within 0\.3 s"
    ):
        Api(url_of(server), "sk_a", answer_seconds=0.3).checks()


@pytest.mark.parametrize(
    ("pauses", "answers", "asked"),
    [
        (
            (0, 0, 0),
            [answer({}, "502 x"), answer({}, "503 x"), page()],
            3,
        ),
        ((0, 0, 0), [answer({}, "504 x")], 4),
        ((0, 0, 0), [answer({}, "404 x")], 1),
        ((), [answer({}, "503 x")], 1),
    ],
)
def test_an_error_that_may_pass_is_waited_for(
    serve, monkeypatch, pauses, answers, asked
):
    read = []
    monkeypatch.setattr("ssl.SSLContext.load_default_certs", read.append)
    server = serve(*answers)
    with contextlib.suppress(StartupError):
        assert Api(url_of(server), "sk_a", pauses).checks() == []
    assert len(server.received) == asked
    # Each time costs 40 ms.
    assert len(read) <= 1


def test_no_server_is_one_line_at_once_for_all_but_a_ping(
    checks, monkeypatch
):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setenv("CARDBEAT_KEY", "sk_a")
    for action, count in ((["list"], 0), (["ping", "a"], 5)):
        status, _, err = checks(*action, "--url", "http://127.0.0.1:1")
        assert status == 2
        assert err.count("\n") == 1
        assert len(pauses) == count
        assert err.startswith(
            "cardbeat: can't use the server at http://127.0.0.1:1: "
        )


def test_the_key_does_not_follow_a_redirect(serve):
    server = serve(
        answer({}, "301 x", "Location: http://127.0.0.1:1/\r\n")
    )
    with pytest.raises(
        StartupError, match=r"answered 301 http://127\.0\.0\.1:1/"
    ):
        Api(url_of(server), "sk_a").checks()
    assert len(server.received) == 1


def test_no_proxy_of_the_environment_sees_a_key_in_clear(
    checks, serve, monkeypatch
):
    proxy = serve(page())
    server = serve(page())
    for variable in (
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.setenv(variable, url_of(proxy))
    checks("list")
    assert len(server.received) == 1
    assert proxy.received == []


def test_a_proxy_for_https_is_asked_for_a_tunnel_and_sees_no_key(
    checks, serve, monkeypatch
):
    proxy = serve(f"HTTP/1.1 407 {ESCAPES}\r\n\r\n".encode())
    monkeypatch.setenv("https_proxy", url_of(proxy))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("CARDBEAT_URL", "https://server.example")
    status, _, err = checks("list")
    assert status == 2
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()
    assert proxy.received[0].head.startswith(
        "CONNECT server.example:443 "
    )
    assert "sk_secret" not in str(proxy.received)
