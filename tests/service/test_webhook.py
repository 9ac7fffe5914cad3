"""One webhook against real receivers, the bad ones most of all."""

import base64
import contextlib
import ipaddress
import socket
import ssl
import threading
import time

import pytest

from cardbeat.heartbeat.alerts.limits import Postponed
from cardbeat.heartbeat.alerts.message import Outcome
from cardbeat.heartbeat.alerts.post import ADDRESSES_TRIED, Sender
from tests.kit.receiver import (
    NO_CONTENT,
    PEM,
    Receiver,
    Unlimited,
    answer,
    hang,
    over_tls,
    repeat,
    reset,
    say,
)
from tests.kit.support import wait_until

HEADERS = {"Content-Type": "application/json", "webhook-id": "msg_1"}
TOO_LATE = Outcome(
    error="There was no complete answer within 10 seconds."
)
NOT_HTTP = Outcome(error="The answer was not valid HTTP.")
CLOSED = Outcome(error="The connection was closed without an answer.")
BUSY = Outcome(503, "The receiver answered 503.", "17")
OK = b"HTTP/1.1 200 OK\r\n"


def post(url, attempt=None, **options):
    options.setdefault("allow_private", True)
    return Sender(**options).post(
        url, HEADERS, b'{"a": 1}', attempt or Unlimited()
    )


def leads_to(*addresses):
    return lambda _host: [*map(ipaddress.ip_address, addresses)]


def trust():
    return ssl.create_default_context(cafile=PEM)


def secured(receiver):
    return f"https://receiver.test:{receiver.port}/"


HERE = {"lookup": leads_to("127.0.0.1"), "trust": trust}


def test_a_post_has_its_url_headers_and_body_and_2xx_is_delivered():
    with Receiver(answer(299)) as receiver:
        assert post(receiver.url) == Outcome(299)
        url = receiver.url.replace("http://", "http://ops%40a:p%3Aw@")
        assert post(url) == Outcome(299)
    plain, named = receiver.received
    assert plain.head == "POST /hook HTTP/1.1"
    assert plain.body == b'{"a": 1}'
    assert (
        plain.headers["host"]
        == named.headers["host"]
        == f"127.0.0.1:{receiver.port}"
    )
    assert plain.headers["content-type"] == "application/json"
    assert plain.headers["webhook-id"] == "msg_1"
    assert "authorization" not in plain.headers
    assert named.headers["authorization"] == basic(b"ops@a:p:w")


def basic(words):
    return f"Basic {base64.b64encode(words).decode()}"


@pytest.mark.parametrize("status", [101, 304, 307, 410])
def test_any_other_status_is_not_and_no_redirect_is_followed(status):
    with Receiver() as inner:
        location = f"Location: {inner.url}\r\nRetry-After: 17\r\n"
        with Receiver(answer(status, location)) as receiver:
            outcome = post(receiver.url)
    assert outcome.status == status
    assert outcome.retry_after == "17"
    assert inner.connections == 0
    assert outcome.error.startswith(f"The receiver answered {status}")


EARLY = b"HTTP/1.1 103 x\r\nLink: </style.css>\r\n\r\n"
HALF_A_RECORD = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"
TRICKLE = repeat(b"a", first=OK + b"X: ")
NEVER_ENDS = {
    "hang": ("http", hang),
    "header": ("http", TRICKLE),
    "informational": ("http", repeat(EARLY, pause_seconds=0.2)),
    "header over TLS": ("https", over_tls(TRICKLE)),
    "handshake": (
        "https",
        repeat(b"\x00", first=HALF_A_RECORD, read=False),
    ),
}


@pytest.mark.parametrize(
    ("scheme", "behaviour"), NEVER_ENDS.values(), ids=NEVER_ENDS
)
def test_to_shut_the_connection_down_ends_a_post_whose_answer_does_not(
    scheme, behaviour
):
    with Receiver(behaviour) as receiver:
        url = f"{scheme}://receiver.test:{receiver.port}/"
        assert post(url, Unlimited(0.15), **HERE) == TOO_LATE
        assert not receiver.released.is_set()


def test_the_head_of_an_answer_counts_however_its_body_goes_on():
    ends = []

    def pour(receiver, connection):
        receiver.read(connection)
        connection.sendall(
            OK + b"Content-Length: 1000000000000000\r\n\r\n"
        )
        with contextlib.suppress(OSError):
            while not receiver.released.is_set():
                connection.send(b"x" * 65536)
        ends.append(receiver.released.is_set())

    with Receiver(over_tls(pour)) as receiver:
        assert post(secured(receiver), **HERE) == Outcome(200)
        # The sender has hung up, so the pouring ends by itself.
        wait_until(lambda: len(ends) > 0)
    assert ends == [False]


OTHERS = {
    "nothing": (say(b""), CLOSED),
    "text": (say(b"not http\r\n\r\n"), NOT_HTTP),
    "cut off": (say(OK + b"Content-Length: 0\r\n"), NOT_HTTP),
    "more than 64 KiB": (
        say(OK + (b"X: " + b"y" * 1000 + b"\r\n") * 70 + b"\r\n"),
        NOT_HTTP,
    ),
    "CR": (say(OK + b"a: b\rRetry-After: 5\r\n\r\n"), NOT_HTTP),
    "much informational": (say(EARLY * 100 + NO_CONTENT), NOT_HTTP),
    "some before the answer": (
        say(EARLY * 3 + b"HTTP/1.1 503 x\r\nRetry-After: 17\r\n\r\n"),
        BUSY,
    ),
    "reset": (reset, Outcome(error="The connection was reset.")),
}


@pytest.mark.parametrize(
    ("behaviour", "outcome"), OTHERS.values(), ids=OTHERS
)
def test_what_is_no_answer_is_not_delivered(behaviour, outcome):
    with Receiver(behaviour) as receiver:
        assert post(receiver.url) == outcome


def fails(*_):
    raise socket.gaierror(socket.EAI_NONAME, "not known")


def test_what_can_not_be_reached_is_not_delivered():
    with Receiver() as gone:
        pass
    assert post(gone.url) == Outcome(error="The connection was refused.")
    for lookup in (fails, leads_to()):
        nameless = Outcome(error="The host's name has no address.")
        assert post("http://unknown.example/", lookup=lookup) == nameless


def test_a_header_that_is_not_heard_costs_nothing():
    """Python parses this one for 2 s, in which no ping was answered."""
    slow = (
        b'Content-Type: multipart/mixed; x="'
        + b";" * 60_000
        + b"\r\n ;;\r\nX: y\r\n"
    )
    head = (
        b"HTTP/1.1 503 a:b\r\n"
        + slow
        + b"retry-after: 17\r\ncontent-length: 0\r\n\r\n"
    )
    with Receiver(say(head)) as receiver:
        began = time.process_time()
        assert post(receiver.url) == BUSY
        assert time.process_time() - began < 1


# TLS.


@pytest.mark.parametrize(
    "least", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
)
def test_tls_goes_to_the_vetted_address_under_the_name(least):
    with Receiver(over_tls(answer(), least=least)) as receiver:
        assert post(secured(receiver), **HERE) == Outcome(204)
    assert receiver.received[0].headers["sni"] == "receiver.test"
    assert (
        receiver.received[0].headers["host"]
        == f"receiver.test:{receiver.port}"
    )


DISTRUSTED = "The receiver's certificate is not valid or not trusted."


def test_without_a_certificate_of_that_name_nothing_is_sent():
    unknown = {"lookup": HERE["lookup"]}
    with (
        Receiver(over_tls(answer())) as receiver,
        Receiver(repeat(NO_CONTENT, read=False)) as plain,
    ):
        other = f"https://other.test:{receiver.port}/"
        assert post(other, **HERE).error == DISTRUSTED
        assert post(secured(receiver), **unknown).error == DISTRUSTED
        unlike = "The receiver does not speak TLS as expected."
        assert post(secured(plain), **HERE).error == unlike
    assert receiver.received == []


# Addresses.


def test_the_name_is_looked_up_once_and_its_vetted_address_used():
    asked = []

    def rebinds(host):
        asked.append(host)
        return leads_to(
            "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        )(host)

    with Receiver() as receiver:
        url = f"http://rebinding.example:{receiver.port}/"
        assert post(url, lookup=rebinds) == Outcome(204)
    assert asked == ["rebinding.example"]
    assert (
        receiver.received[0].headers["host"]
        == f"rebinding.example:{receiver.port}"
    )


def test_of_a_names_addresses_some_are_tried_each_for_a_part_of_the_time(
    monkeypatch,
):
    tried = []

    def connect(connection, address):
        tried.append(address[0])
        assert connection.gettimeout() <= (
            5 if len(tried) < ADDRESSES_TRIED else 10
        )
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    names = [f"127.0.0.{number}" for number in range(1, 21)]
    outcome = post("http://many.example/", lookup=leads_to(*names))
    assert outcome.error == "The connection was refused."
    assert tried == names[:ADDRESSES_TRIED]


def test_a_crowded_address_gets_nothing_and_the_attempt_is_postponed():
    attempt = Unlimited(None, "127.0.0.1")
    with Receiver() as receiver, Receiver(host="127.0.0.2") as other:
        url = f"http://two.example:{receiver.port}/"
        # Where the other address refuses, it waits for the crowded one.
        for addresses in (["127.0.0.1"], ["127.0.0.1", "127.0.0.3"]):
            with pytest.raises(Postponed):
                post(url, attempt, lookup=leads_to(*addresses))
        url = f"http://two.example:{other.port}/"
        assert post(
            url, attempt, lookup=leads_to("127.0.0.1", "127.0.0.2")
        ) == Outcome(204)
    assert receiver.connections == 0


# Proxies.


def test_the_environment_names_no_proxy(monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    with Receiver() as proxy, Receiver() as receiver:
        for name in (
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "ALL_PROXY",
        ):
            monkeypatch.setenv(name, proxy.url)
        assert post(receiver.url) == Outcome(204)
    assert proxy.connections == 0
    assert receiver.connections == 1


def tunnel(port):
    """A proxy that answers CONNECT and then connects to a port of this host, whatever it was asked for."""

    def behave(receiver, connection):
        receiver.read(connection)
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port)) as onward:
            back = threading.Thread(
                target=pump, args=(onward, connection)
            )
            back.start()
            pump(connection, onward)
            back.join()

    return behave


def pump(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def never(_host):
    raise AssertionError("no name of a receiver may be looked up here")


def via(proxy, user=""):
    names = {"proxy.test": "127.0.0.1"}

    def lookup(host):
        return [ipaddress.ip_address(names.get(host) or never(host))]

    return {
        "proxy": f"http://{user}proxy.test:{proxy.port}",
        "lookup": lookup,
        "trust": trust,
    }


def test_a_proxy_gets_plain_http_in_absolute_form(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with Receiver() as proxy:
        url = "http://user:word@hooks.example:81/x"
        assert post(
            url, allow_private=False, **via(proxy, "me:s%40fe@")
        ) == Outcome(204)
    (received,) = proxy.received
    assert received.head == "POST http://hooks.example:81/x HTTP/1.1"
    assert received.headers["host"] == "hooks.example:81"
    assert received.headers["proxy-authorization"] == basic(b"me:s@fe")
    assert received.headers["authorization"] == basic(b"user:word")


def test_a_proxy_connects_for_https_and_sees_nothing_of_it():
    with (
        Receiver(over_tls(answer())) as receiver,
        Receiver(tunnel(receiver.port)) as proxy,
    ):
        assert post(
            "https://receiver.test/x",
            allow_private=False,
            **via(proxy, "me:safe@"),
        ) == Outcome(204)
    assert proxy.received[0].head.startswith(
        "CONNECT receiver.test:443 HTTP/1."
    )
    assert proxy.received[0].headers["proxy-authorization"] == basic(
        b"me:safe"
    )
    assert receiver.received[0].headers["sni"] == "receiver.test"
    assert receiver.received[0].headers["host"] == "receiver.test"
    assert "proxy-authorization" not in receiver.received[0].headers


PROXY_TROUBLE = (
    ("https", b"HTTP/1.1 403 no\r\n\r\n", "answered 403"),
    (
        "http",
        b"HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\n",
        "answered 407",
    ),
    ("https", b"what?\r\n", "gave no valid answer"),
)


@pytest.mark.parametrize(("scheme", "data", "failure"), PROXY_TROUBLE)
def test_a_failure_of_the_proxy_is_not_taken_for_the_receivers(
    scheme, data, failure
):
    url = f"{scheme}://hooks.example/"
    with Receiver(say(data)) as proxy:
        assert (
            post(url, **via(proxy)).error
            == f"The proxy of this server {failure}."
        )
    assert (
        post(url, **via(proxy)).error
        == "The proxy of this server could not be reached."
    )


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::ffff:10.0.0.1]",
        "localhost",
        "metadata.google.internal",
    ],
)
def test_a_proxy_gets_no_alert_for_private_addresses_and_metadata(host):
    with Receiver() as proxy:
        outcome = post(
            f"http://{host}/", allow_private=False, **via(proxy)
        )
        assert "private or reserved" in outcome.error
    assert proxy.connections == 0
