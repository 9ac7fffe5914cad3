"""One webhook against real receivers, the bad ones most of all."""

import errno
import http.client
import ipaddress
import os
import socket
import ssl
import threading
import time
from unittest.mock import Mock

import pytest

from cardbeat.bounded_socket import (
    CERTIFICATE,
    CERTIFICATES,
    HANDSHAKE,
    LEAST_BYTES,
    TLS_BYTES,
    BoundedSocket,
    BoundedTlsSocket,
)
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.outbox.alert import Outcome
from cardbeat.heartbeat.webhooks import post as webhooks_post
from cardbeat.heartbeat.webhooks.permit import Postponed
from cardbeat.heartbeat.webhooks.post import ADDRESSES, ANSWER_BYTES, Sender
from cardbeat.heartbeat.webhooks.resolver import Resolver
from tests.receiver import NO_CONTENT, PEM, Receiver, Unlimited, answer, hang, over_tls, repeat, reset, say

HEADERS = {"Content-Type": "application/json", "webhook-id": "msg_1"}
TOO_LATE = "There was no complete answer within 10 seconds."
SHORT_SECONDS = 0.4


def post(url, seconds=10, **options):
    return Sender(allow_private=True, **options).post(url, HEADERS, b'{"a": 1}', Unlimited(seconds))


def resolver(*addresses):
    return Resolver(lambda _host: [ipaddress.ip_address(address) for address in addresses])


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_delivered(status):
    with Receiver(answer(status)) as receiver:
        assert post(receiver.url) == Outcome(status)
    (received,) = receiver.received
    assert received.head == "POST /hook HTTP/1.1"
    assert received.body == b'{"a": 1}'
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["webhook-id"] == "msg_1"
    assert "authorization" not in received.headers


@pytest.mark.parametrize("status", [300, 304, 400, 404, 410, 429, 500, 503])
def test_any_other_status_is_not(status):
    with Receiver(answer(status, "Retry-After: 17\r\n")) as receiver:
        outcome = post(receiver.url)
    assert outcome.status == status
    assert str(status) in outcome.error
    assert outcome.retry_after == "17"


def test_how_long_to_wait_is_heard_though_the_answer_does_not_end():
    with Receiver(repeat(b"a", first=b"HTTP/1.1 429 x\r\nRetry-After: 17\r\nContent-Length: 1000\r\n\r\n")) as receiver:
        assert post(receiver.url, seconds=SHORT_SECONDS) == Outcome(429, TOO_LATE, "17")


@pytest.mark.parametrize("chunk", [b"-5\r\n", b"x\r\n", b"5\r\nabc"])
def test_what_is_wrong_with_the_body_takes_nothing_from_the_status(chunk):
    with Receiver(say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)) as receiver:
        assert post(receiver.url) == Outcome(200)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status):
    with Receiver() as inner, Receiver(answer(status, f"Location: {inner.url}\r\n")) as receiver:
        outcome = post(receiver.url)
    assert outcome == Outcome(status, f"The receiver answered {status}; redirects are not followed.")
    assert inner.connections == 0


@pytest.mark.parametrize(
    "behaviour",
    [
        hang,
        repeat(b"X"),
        repeat(b"a", first=b"HTTP/1.1 200 OK\r\nX: "),
        repeat(b"X: y\r\n", first=b"HTTP/1.1 200 OK\r\n"),
        repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
        repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        repeat(b"a", first=b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        repeat(b"1\r\na\r\n", first=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        repeat(b"a", first=b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
    ids=["hang", "status", "header", "headers", "continue", "hints", "body", "chunks", "endless"],
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["http", "https"])
def test_no_trickle_outlasts_the_deadline(behaviour, wrapped):
    with Receiver(over_tls(behaviour) if wrapped else behaviour) as receiver:
        url = receiver.url.replace("http:", "https:") if wrapped else receiver.url
        outcome = post(url, seconds=0.2, trust=trust)
        assert not receiver.released.is_set()
    assert outcome.error == TOO_LATE


def test_a_trickled_handshake_does_not_either():
    # The beginning of a TLS record, whose rest never comes in full.
    with Receiver(repeat(b"\x00", first=b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", read=False)) as receiver:
        outcome = post(receiver.url.replace("http:", "https:"), seconds=SHORT_SECONDS)
    assert outcome.error == TOO_LATE


def test_a_connection_for_which_no_time_is_left_to_secure_it_is_closed(monkeypatch):
    opened, connect = [], socket.socket.connect

    def late(connection, address):
        connect(connection, address)
        opened.append(connection)
        threading.Event().wait(SHORT_SECONDS)

    monkeypatch.setattr(socket.socket, "connect", late)
    with Receiver() as receiver:
        outcome = post(receiver.url.replace("http:", "https:"), seconds=SHORT_SECONDS / 2)
        left_open = [connection.fileno() for connection in opened]
        # Else the receiver would wait for it.
        opened[0].close()
    assert (outcome.error, left_open) == (TOO_LATE, [-1])


def test_nor_does_a_silent_name_server():
    silent = threading.Event()
    asked = []

    def lookup(host):
        asked.append(host)
        silent.wait(60)
        return [ipaddress.ip_address("127.0.0.1")]

    shared = Resolver(lookup)
    try:
        for _ in range(3):
            assert post("http://silent.example/", seconds=SHORT_SECONDS, resolver=shared).error == TOO_LATE
        assert asked == ["silent.example"]
    finally:
        silent.set()


def test_a_silent_address_leaves_time_for_the_next(monkeypatch):
    connect = socket.socket.connect

    def reach(connection, address):
        if address[0] == "127.0.0.99":
            threading.Event().wait(connection.gettimeout())
            raise TimeoutError
        connect(connection, address)

    monkeypatch.setattr(socket.socket, "connect", reach)
    with Receiver() as receiver:
        url = f"http://two.example:{receiver.port}/"
        outcome = post(url, seconds=2, resolver=resolver("127.0.0.99", "127.0.0.1"))
    assert outcome == Outcome(204)


@pytest.fixture
def eight():
    """A name's addresses, of which each but the last is given only a part of the time for connecting."""
    return resolver(*["127.0.0.1"] * 8)


def test_once_connected_all_the_time_left_is_for_sending(eight):
    with Receiver() as receiver:
        sender = Sender(allow_private=True, resolver=eight)
        with sender.connect("many.example", receiver.port, Unlimited(80)) as connection:
            assert connection.gettimeout() <= 10
            connection.sendall(b"x")
            assert connection.gettimeout() > 40


def test_once_connected_all_the_time_left_is_for_the_handshake(eight, monkeypatch):
    given, receive = [], BoundedSocket.recv_into
    monkeypatch.setattr(
        BoundedSocket, "recv_into", lambda plain, *rest: [receive(plain, *rest), given.append(plain.gettimeout())][0]
    )
    with Receiver(over_tls(answer())) as receiver:
        assert post(f"https://receiver.test:{receiver.port}/", resolver=eight, trust=trust, seconds=80) == Outcome(204)
    assert given[0] > 40


def test_only_so_many_addresses_of_a_name_are_tried(monkeypatch):
    tried = []

    def refuse(_connection, address):
        tried.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", refuse)
    names = [f"127.0.0.{number}" for number in range(1, 21)]
    assert post("http://many.example/", resolver=resolver(*names)).error == "The connection was refused."
    assert tried == names[:ADDRESSES]


def test_the_name_is_looked_up_once_and_its_vetted_address_used():
    answers = [[ipaddress.ip_address("127.0.0.1")], [ipaddress.ip_address("169.254.169.254")]]
    with Receiver() as receiver:
        outcome = post(f"http://rebinding.example:{receiver.port}/", resolver=Resolver(lambda _host: answers.pop(0)))
    assert outcome == Outcome(204)
    assert len(answers) == 1
    assert receiver.received[0].headers["host"] == f"rebinding.example:{receiver.port}"


def test_what_tls_adds_is_bounded_too():
    """Of session tickets a server may send as many as it likes: OpenSSL reads them before it returns anything."""
    with Receiver(over_tls(hang, tickets=5000)) as receiver:
        plain = BoundedSocket.over(socket.create_connection(("127.0.0.1", receiver.port)), time.monotonic() + 30, 999)
        with BoundedTlsSocket.secured(plain, trust(), "receiver.test") as secured:
            secured.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(http.client.HTTPException):
                secured.recv_into(bytearray(10))


def record(content, kind=HANDSHAKE):
    return bytes([kind, 3, 3]) + len(content).to_bytes(2, "big") + content


# prime-field (RFC 3279, 2.3.5), as it is in a key with a curve of its own.
PRIME_FIELD = bytes.fromhex("06072a8648ce3d0101")


def sized(content):
    return len(content).to_bytes(3, "big") + content


def chain(*certificates):
    """A Certificate message (RFC 5246, 7.4.2)."""
    return bytes([CERTIFICATE]) + sized(sized(b"".join(map(sized, certificates))))


OWN_CURVES = chain(b"first", b"second" + PRIME_FIELD)


@pytest.mark.parametrize(
    ("pieces", "refused"),
    [
        ([record(OWN_CURVES)], "curve"),
        ([record(b"\2\0\0\0" + OWN_CURVES)], "curve"),
        ([record(OWN_CURVES[:-4]) + record(OWN_CURVES[-4:])], "curve"),
        ([bytes([one]) for one in record(OWN_CURVES)], "curve"),
        ([record(chain(*[b"one"] * (CERTIFICATES + 1)))], "many"),
        ([record(OWN_CURVES, kind=23)], None),
        ([record(b"\2\0\0\0" + chain(*[b"one"] * CERTIFICATES))], None),
    ],
    ids=["whole", "behind another message", "in two records", "byte by byte", "too many", "data", "as many as may be"],
)
def test_certificates_are_refused_before_they_are_decoded_if_that_is_dear(pieces, refused):
    """One of 413 bytes with a curve of its own takes 0.25 s, a chain of 180 with compressed points 0.16 s: others'
    alerts came 40 s late."""
    heard = b""

    class Incoming:
        def write(self, data):
            nonlocal heard
            heard += data

    ours, theirs = socket.socketpair()
    with theirs, BoundedTlsSocket.over(ours, time.monotonic() + 30, TLS_BYTES) as secured:
        secured._incoming, secured._outgoing = Incoming(), ssl.MemoryBIO()
        secured._records, secured._said = bytearray(), bytearray()

        def shake_hands():
            if len(heard) == sum(map(len, pieces)):
                return "shaken"
            theirs.send(sent.pop(0))
            raise ssl.SSLWantReadError

        sent = pieces[:]
        if refused:
            with pytest.raises(ssl.SSLError, match=refused):
                secured._run(shake_hands, examine=secured._require_decodable)
            assert len(heard) < sum(map(len, pieces))
        else:
            assert secured._run(shake_hands, examine=secured._require_decodable) == "shaken"


def test_receivers_speak_tls_1_2_which_shows_their_certificates():
    tls = Sender().tls(False)
    assert tls.maximum_version == ssl.TLSVersion.TLSv1_2
    # Nor are there others later, which it would hide.
    assert ssl.OP_NO_RENEGOTIATION in tls.options


@pytest.mark.parametrize(
    ("granted", "outcome"),
    [
        (False, Outcome(error="The receiver wants TLS 1.3, which is only for keys in another tier than `free`.")),
        (True, Outcome(204)),
    ],
)
def test_a_receiver_of_a_key_whose_tier_the_operator_chose_may_want_tls_1_3(granted, outcome):
    """It may know no other, as in Mozilla's modern configuration."""
    permit = Unlimited(10)
    permit.is_granted = granted
    sender = Sender(allow_private=True, resolver=resolver("127.0.0.1"), trust=trust)
    with Receiver(over_tls(answer(), least=ssl.TLSVersion.TLSv1_3)) as receiver:
        url = f"https://receiver.test:{receiver.port}/"
        assert sender.post(url, HEADERS, b"{}", permit) == outcome


@pytest.mark.parametrize(("copies", "status"), [(9, 204), (10, None), (90, None)])
def test_a_chain_may_have_10_certificates(copies, status, tmp_path):
    """Hundreds of them took 40 ms of CPU for each post."""
    pem, text = tmp_path / "chain.pem", PEM.read_text()
    pem.write_text(text + text[text.index("-----BEGIN CERT") :] * copies)
    with Receiver(over_tls(answer(), pem=pem)) as receiver:
        url = f"https://receiver.test:{receiver.port}/"
        assert post(url, resolver=resolver("127.0.0.1"), trust=trust).status == status


def test_only_one_of_all_receivers_makes_this_host_compute_at_a_time_and_none_while_it_is_waited_for(monkeypatch):
    """A chain of certificates takes some ms. Of hundreds at once pings came 0.9 s late, and now 30 ms."""
    computing, waiting = [], []
    sender = Sender(allow_private=True, resolver=resolver("127.0.0.1"), trust=trust)

    def noted(real, seen):
        return lambda *of: seen.append(sender.computing._taken_at is not None) or real(*of)

    monkeypatch.setattr(ssl.SSLObject, "do_handshake", noted(ssl.SSLObject.do_handshake, computing))
    monkeypatch.setattr(BoundedSocket, "recv_into", noted(BoundedSocket.recv_into, waiting))
    with Receiver(over_tls(answer())) as receiver:
        url = f"https://receiver.test:{receiver.port}/"
        assert sender.post(url, HEADERS, b"{}", Unlimited(10)) == Outcome(204)
    assert computing
    assert all(computing)
    assert waiting
    assert not any(waiting)


def test_tls_goes_to_the_vetted_address_under_the_name():
    with Receiver(over_tls(answer())) as receiver:
        url = f"https://receiver.test:{receiver.port}/"
        assert post(url, resolver=resolver("127.0.0.1"), trust=trust) == Outcome(204)
    assert receiver.received[0].headers["sni"] == "receiver.test"
    assert receiver.received[0].headers["host"] == f"receiver.test:{receiver.port}"


@pytest.mark.parametrize(("name", "trusted"), [("receiver.test", False), ("other.test", True)])
def test_a_certificate_that_is_not_trusted_or_for_another_name_gets_nothing(name, trusted):
    with Receiver(over_tls(answer())) as receiver:
        url = f"https://{name}:{receiver.port}/"
        outcome = post(url, resolver=resolver("127.0.0.1"), **({"trust": trust} if trusted else {}))
    assert outcome.error == "The receiver's certificate is not valid or not trusted."
    assert receiver.received == []


def test_proxies_of_the_environment_are_not_asked(monkeypatch):
    with Receiver() as proxy, Receiver() as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        assert post(receiver.url) == Outcome(204)
    assert proxy.connections == 0


def test_credentials_of_netrc_are_not_sent(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with Receiver() as receiver:
        post(receiver.url)
    assert "authorization" not in receiver.received[0].headers


def test_a_huge_answer_is_read_to_64_kib_and_no_further():
    sent = []

    def pour(receiver, connection):
        receiver.read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while not receiver.released.is_set():
                sent.append(connection.send(b"x" * 65536))
        except OSError:
            sent.append(-1)

    with Receiver(pour) as receiver:
        assert post(receiver.url) == Outcome(200)
        # The sender has hung up, so the pouring ends by itself.
        while not sent or sent[-1] != -1:
            threading.Event().wait(0.01)
    assert sum(sent) < 32 * 1024 * 1024


def test_no_room_is_made_for_the_answer_that_is_announced():
    with Receiver(say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\nshort")) as receiver:
        assert post(receiver.url) == Outcome(200)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The connection was closed without an answer."),
        (b"not http\r\n\r\n", "The answer was not valid HTTP."),
        (b"HTTP/1.1 abc OK\r\n\r\n", "The answer was not valid HTTP."),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", "The answer was not valid HTTP."),
        (b"HTTP/1.1 200 " + b"x" * 70_000, "The answer was not valid HTTP."),
        # Each CR ends a header for Python's parser: they took 25 ms of CPU, and memory for as long as the body.
        (b"HTTP/1.1 200 OK\r\n" + b"a:\r" * 20_000 + b"\r\n\r\n", "The answer was not valid HTTP."),
        (b"HTTP/1.1 200 OK\r\na: b\rRetry-After: 5\r\n\r\n", "The answer was not valid HTTP."),
    ],
    ids=["nothing", "text", "status", "headers", "line", "CRs", "CR"],
)
def test_what_is_no_answer_is_not_delivered(data, sentence):
    with Receiver(say(data)) as receiver:
        assert post(receiver.url) == Outcome(error=sentence)


def test_of_the_headers_only_those_that_are_used_are_parsed(monkeypatch):
    """Python parses this one for 2 s, in which no ping was answered."""
    seen = []
    judge = webhooks_post._outcome
    monkeypatch.setattr(webhooks_post, "_outcome", lambda response: seen.append(response.headers) or judge(response))
    slow = b'Content-Type: multipart/mixed; x="' + b";" * 60_000 + b"\r\n ;;\r\nX: y\r\n"
    head = b"HTTP/1.1 503 a:b\r\n" + slow + b"retry-after: 17\r\ncontent-length: 0\r\n\r\n"
    with Receiver(say(head)) as receiver:
        assert post(receiver.url) == Outcome(503, "The receiver answered 503.", "17")
    assert [set(headers) for headers in seen] == [{"retry-after", "content-length"}]


@pytest.mark.parametrize("body", [b"Content-Length: 100\r\n\r\nshort", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"])
def test_a_2xx_with_a_broken_body_is_delivered(body):
    with Receiver(say(b"HTTP/1.1 200 OK\r\n" + body)) as receiver:
        assert post(receiver.url) == Outcome(200)


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_what_comes_before_the_final_answer_is_passed_over(status):
    early = f"HTTP/1.1 {status} x\r\nLink: </style.css>\r\n\r\n".encode()
    with Receiver(say(early * 3 + NO_CONTENT)) as receiver:
        assert post(receiver.url) == Outcome(204)
    with Receiver(say(early + b"HTTP/1.1 503 x\r\nRetry-After: 17\r\n\r\n")) as receiver:
        assert post(receiver.url) == Outcome(503, "The receiver answered 503.", "17")
    with Receiver(say(early)) as receiver:
        assert post(receiver.url) == Outcome(error="The connection was closed without an answer.")
    with Receiver(say(early * 5000)) as receiver:
        assert post(receiver.url) == Outcome(error="The answer was not valid HTTP.")


def test_more_than_a_head_of_informational_answers_are_no_answer():
    with Receiver(say(b"HTTP/1.1 103 x\r\nLink: </a>\r\n\r\n" * 100 + NO_CONTENT)) as receiver:
        assert post(receiver.url) == Outcome(error="The answer was not valid HTTP.")


def pour(first, piece, times):
    """Say something small so many times, and then nothing more."""

    def behave(receiver, connection):
        receiver.read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + first)
        for _ in range(times):
            connection.sendall(piece)
        receiver.released.wait(60)

    return behave


@pytest.mark.parametrize(
    ("behaviour", "wrapped"),
    [
        (pour(b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 200, 1), False),
        (pour(b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * 200, 1), False),
        (pour(b"\r\n", b"a", ANSWER_BYTES // LEAST_BYTES), True),
    ],
    ids=["chunks", "trailer", "records"],
)
def test_a_body_in_many_small_pieces_is_not_read_to_its_end(behaviour, wrapped):
    """Hundreds of couriers read at once: 3,000 such answers took all CPU for minutes, and pings came 1 s late."""
    with Receiver(over_tls(behaviour) if wrapped else behaviour) as receiver:
        url = f"http{'s' * wrapped}://receiver.test:{receiver.port}/"
        assert post(url, resolver=resolver("127.0.0.1"), trust=trust) == Outcome(200)


def test_single_bytes_take_as_much_room_as_some():
    ours, theirs = socket.socketpair()
    with BoundedSocket.over(ours, time.monotonic() + 10, 3 * LEAST_BYTES) as bounded, theirs:
        for _ in range(3):
            theirs.send(b"x")
            assert bounded.recv_into(bytearray(10)) == 1
        theirs.send(b"x")
        with pytest.raises(http.client.HTTPException):
            bounded.recv_into(bytearray(10))


@pytest.mark.parametrize("granted", [False, True])
def test_a_receiver_chooses_no_large_numbers_for_the_handshake(granted):
    """One of TLS 1.2 with 10,000 bits took 0.9 s of CPU, one of TLS 1.3 with 8,192 bits 0.15 s."""
    tls, hello = Sender().tls(granted), ssl.MemoryBIO()
    assert {cipher["kea"] for cipher in tls.get_ciphers()} == {"kx-any", "kx-ecdhe"}
    with pytest.raises(ssl.SSLWantReadError):
        tls.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="receiver.test").do_handshake()
    # The extension `supported_groups` (10) has 4 bytes: a list of 2, with secp256r1 (RFC 8446, 4.2.7).
    assert bytes.fromhex("000a 0004 0002 0017") in hello.read()


def test_another_protocol_is_not_delivered():
    with Receiver(say(b"HTTP/1.1 101 x\r\nUpgrade: what\r\n\r\n")) as receiver:
        assert post(receiver.url) == Outcome(101, "The receiver answered 101.")


def test_a_reset_is_not_delivered():
    with Receiver(reset) as receiver:
        assert post(receiver.url) == Outcome(error="The connection was reset.")


def test_a_refused_connection_is_not_delivered():
    with Receiver() as receiver:
        url = receiver.url
    assert post(url) == Outcome(error="The connection was refused.")


def test_a_name_without_address_is_not_delivered():
    def lookup(host):
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is not known")

    nameless = Outcome(error="The host's name has no address.")
    assert post("http://unknown.example/", resolver=Resolver(lookup)) == nameless
    assert post("http://unknown.example/", resolver=resolver()) == nameless


def test_plain_http_behind_https_is_not_delivered():
    with Receiver(say(NO_CONTENT)) as receiver:
        receiver.behaviours = [repeat(NO_CONTENT, read=False)]
        outcome = post(receiver.url.replace("http:", "https:"))
    assert outcome.error == "The receiver does not speak TLS as expected."


def test_no_route_is_not_delivered(monkeypatch):
    def unreachable(_connection, _address):
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", unreachable)
    assert post("http://10.0.0.1/") == Outcome(error="The connection failed.")


LACKS = [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM]


@pytest.mark.parametrize("number", LACKS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connection_for_which_this_host_lacks_something_is_no_attempt(monkeypatch, number, scheme):
    """It was retried after minutes, and counted, though the receiver had no part in it."""
    monkeypatch.setattr(socket.socket, "connect", Mock(side_effect=OSError(number, os.strerror(number))))
    with pytest.raises(Unavailable):
        post(f"{scheme}://two.example/", resolver=resolver("127.0.0.1", "127.0.0.2"))


def test_a_lookup_for_which_this_host_lacks_descriptors_is_no_attempt(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=socket.gaierror(socket.EAI_AGAIN, "no answer")))
    monkeypatch.setattr(socket, "socket", Mock(side_effect=OSError(errno.EMFILE, "Too many open files")))
    with pytest.raises(Unavailable):
        post("http://a.example/")


def test_without_a_descriptor_no_address_passes_as_another_hosts(monkeypatch):
    monkeypatch.setattr(socket, "socket", Mock(side_effect=OSError(errno.EMFILE, "Too many open files")))
    with pytest.raises(Unavailable):
        Sender(resolver=resolver("8.8.8.8")).post("http://a.example/", HEADERS, b"{}", Unlimited())


def trust():
    return ssl.create_default_context(cafile=PEM)


class Crowded(Unlimited):
    """A permit to enter all addresses but some."""

    def __init__(self, *crowded, address=None, seconds=10):
        super().__init__(seconds)
        self.crowded = crowded
        self.address = address
        self.entered = []

    def enter(self, address):
        self.entered.append(address)
        return address not in self.crowded


def post_under(permit, url, *addresses):
    return Sender(allow_private=True, resolver=resolver(*addresses)).post(url, HEADERS, b"{}", permit)


def test_a_crowded_address_gets_nothing_and_the_attempt_is_postponed():
    with Receiver() as receiver, pytest.raises(Postponed):
        post_under(Crowded("127.0.0.1"), f"http://one.example:{receiver.port}/", "127.0.0.1")
    assert receiver.connections == 0


def test_where_one_address_is_crowded_another_is_taken():
    permit = Crowded("127.0.0.1")
    with Receiver(host="127.0.0.2") as receiver:
        outcome = post_under(permit, f"http://two.example:{receiver.port}/", "127.0.0.1", "127.0.0.2")
    assert outcome == Outcome(204)
    assert permit.entered == ["127.0.0.1", "127.0.0.2"]


def test_where_the_others_refuse_the_attempt_waits_for_the_one_that_is_crowded():
    with Receiver() as receiver, pytest.raises(Postponed):
        post_under(Crowded("127.0.0.1"), f"http://two.example:{receiver.port}/", "127.0.0.1", "127.0.0.2")


def test_the_address_that_was_waited_for_comes_first():
    permit = Crowded(address="127.0.0.2")
    with Receiver(host="127.0.0.2") as receiver:
        url = f"http://three.example:{receiver.port}/"
        assert post_under(permit, url, "127.0.0.1", "127.0.0.2", "127.0.0.3") == Outcome(204)
    assert permit.entered == ["127.0.0.2"]


def test_addresses_of_one_ipv6_network_count_as_one(monkeypatch):
    def refuse(_connection, _address):
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", refuse)
    permit = Crowded()
    post_under(permit, "http://many.example/", "2606:4700::1", "2606:4700::2")
    assert set(permit.entered) == {"2606:4700::/64"}


@pytest.mark.parametrize(
    "behaviour",
    [hang, repeat(b"a", first=b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")],
    ids=["no answer", "no end"],
)
def test_a_brief_attempt_that_takes_too_long_is_postponed(behaviour):
    permit = Unlimited(SHORT_SECONDS)
    permit.is_brief = True
    with Receiver(behaviour) as receiver, pytest.raises(Postponed):
        post_under(permit, receiver.url)


def test_an_attempt_that_is_made_brief_at_its_address_ends_by_that():
    class Shortened(Unlimited):
        is_brief = True

        def enter(self, address):
            self.seconds = SHORT_SECONDS
            return True

    with Receiver(hang) as receiver, pytest.raises(Postponed):
        post_under(Shortened(60), receiver.url)


def test_a_brief_attempt_that_fails_in_time_is_an_attempt():
    permit = Unlimited(SHORT_SECONDS)
    permit.is_brief = True
    with Receiver(reset) as receiver:
        assert post_under(permit, receiver.url).error is not None
        assert post_under(permit, "http://127.0.0.1:1/").error == "The connection was refused."


def test_a_name_is_looked_up_in_the_turn_of_its_key():
    class Asked(Resolver):
        def addresses(self, host, seconds, key=""):
            asked.append((host, key))
            return [ipaddress.ip_address("127.0.0.1")]

    asked = []
    with Receiver() as receiver:
        post(f"http://a.example:{receiver.port}/", resolver=Asked())
    assert asked == [("a.example", "key")]
