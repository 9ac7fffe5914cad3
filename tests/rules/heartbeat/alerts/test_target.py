"""Where no webhook may go, judged twice: when a check is saved, and when an alert is sent."""

import encodings.idna
import ipaddress
import socket

import pytest

from cardbeat.heartbeat.alerts import target as targets
from cardbeat.heartbeat.alerts.post import Sender
from cardbeat.heartbeat.alerts.target import (
    PRIVATE,
    address_name,
    host_of,
    is_own,
    parse,
    refused_url,
    shown_of,
)
from tests.kit.receiver import Receiver, Unlimited

PRIVATE_HOSTS = """
127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. 0X7F.0.0.01 １２７.０.０.１ 127。0。0。1 ①②⑦.⓪.⓪.①
127.0.0.1:8080 a:b@10.0.0.1 192.168.257 0 4294967295 localhost LOCALHOST localhost. a.b.LocalHost. ｌｏｃａｌｈｏｓｔ
metadata.google.internal [::] [0000::0001]:80 [::127.0.0.1] [::ffff:7f00:1] [64:ff9b::127.0.0.1] [2002:7f00:1::]
""".split()
BAD_HOSTS = """
hooks.example:0 hooks.example:65536 hooks.example:-1 hooks.example:80:80 a:８０
[::1 ::1 [::1]x [fe80::1%25eth0] [fe80::1%eth0] [v1.a] [] [127.0.0.1] [hooks.example]
256.256.256.256 1.2.3.4.5 127.0.0.08 4294967296 1..2
%31%32%37.0.0.1 a..example .example ho<oks.example hooks.example;x a℀.example
hooks.example\\@127.0.0.1 local\u00adhost local\u200bhost
""".split()
BAD_URLS = """
hooks.example/x //hooks.example/x http: http:///x http:/hooks.example/x http:hooks.example
ftp://hooks.example/ file:///etc/passwd javascript:alert(1) httpx://hooks.example/
""".split()
BAD_URLS += [
    "",
    " http://a.example/",
    *(
        f"http://a.example{bad}/"
        for bad in (" ", "/a b", "\t", "\r\nX: y", "\n")
    ),
]
BAD_URLS += [
    f"http://a.example/{bad}"
    for bad in ("\x00", "\x7f", "\u2028", "a" * 2000)
]
BAD_URLS += [f"http://{host}/" for host in BAD_HOSTS]
PRIVATE_URLS = [f"http://{host}/" for host in PRIVATE_HOSTS]

GOOD_URLS = {
    "http://hooks.example": "http://hooks.example/",
    "HTTPS://Hooks.Example:443/A?b=c#d": "https://hooks.example/A?b=c",
    "http://hooks.example.:80/": "http://hooks.example/",
    "http://bücher.example/ü?q=é": "http://xn--bcher-kva.example/%C3%BC?q=%C3%A9",
    "http://hooks.example/<\"'>ß": "http://hooks.example/%3C%22'%3E%C3%9F",
    "http://0x08080808/": "http://8.8.8.8/",
    "http://[::ffff:8.8.8.8]/": "http://8.8.8.8/",
    "http://[64:ff9b::8.8.8.8]/": "http://[64:ff9b::808:808]/",
}
SAME = """
http://hooks.example:8080/x?y=%20&z=a+b;@:/? http://hooks_1.example/ http://172.32.0.1/ http://[2001:200::1]/
http://[2606:4700:4700::1111]:8443/x http://[2002:808:808::1]/
""".split()
GOOD_URLS |= {url: url for url in SAME}

# Reached through a name, or with the flag for the operator's own network.
NEVER = """
100.100.100.200 fd00:ec2::254 fd00:42::42 fd00:100::100:200 fd00:a9fe:a9fe::1 fd00:c1::a9fe:a9fe fd20:ce::254
169.254.42.42 0.0.0.0 feb0::1 168.63.129.16 192.0.0.192 224.0.0.1 255.255.255.255 :: ff02::1
64:ff9b::a9fe:a9fe ::ffff:169.254.169.254 2002:a9fe:a9fe::1 64:ff9b:1::a9fe:a9fe
""".split()
LAN = """
127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 198.18.0.1
192.0.0.9 192.0.2.1 192.88.99.1 240.0.0.1 ::1 fd00::1 ::ffff:127.0.0.1 64:ff9b::10.0.0.1
64:ff9b:1::a00:1 2002:c0a8:101::1 2001:1ff::1 2001:db8::1 3fff::1 4000::1
""".split()

NOT_PUBLIC = "The host's name leads to no public address."


def no_network(*_args):
    raise AssertionError("nothing may be looked up or connected to")


def resolver(*addresses):
    return lambda _host: [*map(ipaddress.ip_address, addresses)]


def error_of(url, *, lookup=no_network, **options):
    outcome = Sender(lookup=lookup, **options).post(
        url, {}, b"", Unlimited()
    )
    assert outcome.status is None or outcome.error is None
    return outcome.error


@pytest.fixture
def no_connection(monkeypatch):
    monkeypatch.setattr(socket, "create_connection", no_network)


@pytest.mark.parametrize("url", PRIVATE_URLS + BAD_URLS, ids=ascii)
def test_a_hostile_url_is_refused_when_saved_and_when_sent(
    url, no_connection
):
    sentence = refused_url(url, allow_private=False)
    assert sentence is not None
    assert sentence.endswith(".")
    assert error_of(url) == sentence


@pytest.mark.parametrize("letter", "ßẞς\u200c\u200d", ids=ascii)
def test_a_host_that_browsers_read_differently_must_be_written_in_ascii(
    letter, no_connection
):
    url = f"https://a.stra{letter}e.example:8443/x"
    assert "xn--" in refused_url(url, allow_private=True)
    assert "xn--" in error_of(url)
    assert (
        refused_url("https://xn--strae-oqa.example/", allow_private=False)
        is None
    )


def test_user_information_is_no_part_of_what_is_requested_or_shown():
    url = "https://me%40x:s%3Ae@Hooks.Example/a"
    assert refused_url(url, allow_private=False) is None
    target = parse(url)
    assert target.url == "https://hooks.example/a"
    assert target.credentials == "me@x:s:e"
    assert host_of(url) == "hooks.example"
    assert shown_of(url) == "https://hooks.example"


@pytest.mark.parametrize(("url", "requested"), GOOD_URLS.items())
def test_a_good_url_is_requested_in_its_one_spelling(url, requested):
    assert refused_url(url, allow_private=False) is None
    assert parse(url).url == requested
    assert parse(requested) == parse(url)


@pytest.mark.parametrize("url", BAD_URLS, ids=ascii)
def test_a_bad_url_is_refused_in_a_private_network_too(url):
    assert refused_url(url, allow_private=True) is not None


@pytest.mark.parametrize("address", LAN + NEVER)
def test_a_name_that_leads_inside_is_refused_when_sending(
    address, no_connection
):
    url = "http://rebound.example/"
    assert refused_url(url, allow_private=False) is None
    assert error_of(url, lookup=resolver(address)) == NOT_PUBLIC


@pytest.mark.parametrize("address", NEVER)
def test_no_flag_opens_metadata_multicast_or_reserved_addresses(
    address, no_connection
):
    assert "never" in error_of(
        "http://a.example/", allow_private=True, lookup=resolver(address)
    )


@pytest.mark.parametrize("address", LAN)
def test_the_flag_opens_the_operators_own_network(address):
    host = f"[{address}]" if ":" in address else address
    for name in (host, "localhost"):
        assert refused_url(f"http://{name}/", allow_private=True) is None


@pytest.mark.parametrize(
    "answer",
    [
        ("8.8.8.8", "127.0.0.1"),
        ("::1", "2606:4700::1"),
        ("8.8.8.8",) * 9 + ("10.0.0.1",),
    ],
)
def test_one_bad_address_among_good_ones_refuses_all(
    answer, no_connection
):
    assert (
        error_of("http://mixed.example/", lookup=resolver(*answer))
        == NOT_PUBLIC
    )


def test_a_name_that_does_not_exist_gets_the_same_sentence_as_one_that_leads_inside():
    def lookup(_host):
        raise socket.gaierror(socket.EAI_NONAME, "the system's own words")

    assert error_of("http://a.example/", lookup=lookup) == NOT_PUBLIC


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1", "http://own.example"]
)
def test_this_hosts_own_addresses_are_refused_like_private_ones_whatever_listens_there(
    url, monkeypatch
):
    monkeypatch.setattr(
        targets, "allowed", lambda _address, _allow_private: True
    )
    with Receiver() as receiver:
        own = resolver("8.8.8.8", "127.0.0.1")
        error = error_of(f"{url}:{receiver.port}/", lookup=own)
    assert error == (NOT_PUBLIC if "own" in url else PRIVATE)
    assert receiver.connections == 0


def test_this_hosts_own_public_address_is_refused_when_saved_too(
    monkeypatch,
):
    monkeypatch.setattr(
        targets, "is_own", lambda address: str(address) == "8.8.8.8"
    )
    for url in ("http://0x08080808:8080/x", "http://[::ffff:8.8.8.8]/"):
        assert refused_url(url, allow_private=False) == PRIVATE
        assert refused_url(url, allow_private=True) is None
    assert refused_url("http://8.8.4.4/", allow_private=False) is None


def test_an_address_is_own_where_the_system_would_speak_from_it():
    assert is_own(ipaddress.ip_address("127.0.0.1"))
    assert not is_own(ipaddress.ip_address("8.8.8.8"))
    assert not is_own(ipaddress.ip_address("2001:db8::1"))


def test_all_addresses_of_one_owner_count_as_one():
    names = {
        "8.8.8.8": "8.8.8.8 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808:7::1",
        "2606:4700:0:1::/64": "2606:4700:0:1:2::3 2606:4700:0:1:ffff::",
    }
    for name, addresses in names.items():
        assert {
            address_name(ipaddress.ip_address(one))
            for one in addresses.split()
        } == {name}


def test_a_url_has_at_most_2000_bytes():
    url = "https://hooks.example/"
    for letter in "a\u00e9\U0001f600":
        count, rest = divmod(2000 - len(url), len(letter.encode()))
        longest = url + rest * "a" + count * letter
        assert refused_url(longest, allow_private=False) is None
        assert "2,000 bytes" in refused_url(
            longest + "a", allow_private=False
        )


TOO_LONG = "The URL's host is too long: a name has at most 253 characters, and 63 between its dots."
LONG_HOSTS = [
    "\u3002".join(["\u4e2d" * 60] * 9),
    "\uff61".join(["\u4e2d"] * 200),
    # NFKC makes eighteen characters of each.
    ".".join(["\ufdfa" * 63] * 3),
    "a" * 64 + ".example",
    ".".join(["a" * 49] * 5) + ".abcd",
]


@pytest.mark.parametrize("host", LONG_HOSTS, ids=range(len(LONG_HOSTS)))
def test_a_host_that_is_too_long_never_comes_to_the_codec_whose_time_grows_with_the_square(
    host, monkeypatch
):
    parse.cache_clear()
    given, to_ascii = [], encodings.idna.ToASCII
    monkeypatch.setattr(
        encodings.idna,
        "ToASCII",
        lambda label: given.append(label) or to_ascii(label),
    )
    assert (
        refused_url(f"https://{host}/", allow_private=False) == TOO_LONG
    )
    assert given == []


def test_a_host_that_the_codec_makes_too_long_is_refused_too_and_the_longest_may_end_in_a_dot():
    host = ".".join(["".join(map(chr, range(0x4E00, 0x9000, 1100)))] * 6)
    assert (
        refused_url(f"https://{host}/", allow_private=False) == TOO_LONG
    )
    longest = ".".join(["a" * 49] * 5) + ".abc"
    assert parse(f"http://{longest}./").host == longest
