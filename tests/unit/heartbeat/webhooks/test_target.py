"""Where no webhook may go, judged twice: when a check is saved, and when an alert is sent."""

import encodings.idna
import ipaddress
import socket

import pytest

from cardbeat.heartbeat.webhooks import post as webhook
from cardbeat.heartbeat.webhooks.post import Sender
from cardbeat.heartbeat.webhooks.resolver import Resolver, is_own
from cardbeat.heartbeat.webhooks.target import PRIVATE, address_name, parse, refused_url
from tests.receiver import Receiver, Unlimited

PRIVATE_URLS = """
http://127.0.0.1/  http://127.1/  http://127.0.1/  http://127.255.255.254/  http://2130706433/  http://0x7f000001/
http://0x7f.1/  http://0x7f.0x0.0x0.0x1/  http://0177.0.0.1/  http://0177.1/  http://017700000001/
http://00000177.0.0.1/  http://127.0.0.1./  http://0X7F000001/  http://127.000.000.001/  http://0x7F.0.0.01/
http://１２７.０.０.１/  http://127。0。0。1/  http://①②⑦.⓪.⓪.①/  http://127.0.0.1:8080/hook
http://localhost/  http://LOCALHOST/  http://localhost./  http://a.localhost/  http://a.b.LocalHost./
http://ｌｏｃａｌｈｏｓｔ/  https://localhost:443/
http://0/  http://0.0.0.0/  http://0x0/  http://00/  http://0.1.2.3/
http://10.0.0.1/  http://10.255.255.255/  http://012.0.0.1/  http://167772161/  http://172.16.0.1/
http://172.31.255.255/  http://192.168.1.1/  http://3232235777/  http://0xc0a80101/  http://192.168.257/
http://100.64.0.1/  http://100.127.255.255/  http://100.100.100.200/  http://169.254.169.254/
http://2852039166/  http://0xa9fea9fe/  http://0251.0376.0251.0376/  http://169.254.43518/  http://168.63.129.16/
http://192.0.0.192/  http://192.0.2.1/  http://198.18.0.1/  http://198.19.255.255/  http://198.51.100.1/
http://203.0.113.1/  http://192.88.99.1/  http://224.0.0.1/  http://239.255.255.250/  http://240.0.0.1/
http://255.255.255.255/  http://4294967295/
http://[::]/  http://[::1]/  http://[0:0:0:0:0:0:0:1]/  http://[0000::0001]:80/  http://[::127.0.0.1]/
http://[::ffff:127.0.0.1]/  http://[::ffff:7f00:1]/  http://[::FFFF:10.0.0.1]/  http://[0:0:0:0:0:ffff:a9fe:a9fe]/
http://[::ffff:0:127.0.0.1]/  http://[64:ff9b::127.0.0.1]/  http://[64:ff9b::a00:1]/  http://[64:ff9b:1::a00:1]/
http://[2002:7f00:1::]/  http://[2002:a00:1::1]/  http://[2002:c0a8:101::1]/  http://[2001::1]/
http://[2001:db8::1]/  http://[3fff::1]/  http://[fc00::1]/  http://[fd00:ec2::254]/  http://[fe80::1]/
http://[feb0::1]/  http://[fec0::1]/  http://[ff02::1]/  http://[ff0e::1]/  http://[100::1]/  http://[5f00::1]/
http://[4000::1]/  http://[2001:1ff::1]/
""".split()  # noqa: SIM905 - a hundred in rows

BAD_URLS = [
    *("", "hooks.example/x", "//hooks.example/x", "/x", "http:", "http://", "http:///x", "http:/hooks.example/x"),
    *("ftp://hooks.example/", "file:///etc/passwd", "gopher://hooks.example/", "javascript:alert(1)", "data:,x"),
    *("unix:///run/x.sock", "httpx://hooks.example/", "http:hooks.example", "mailto:ops@example.com"),
    *("http://user@hooks.example/", "http://user:word@hooks.example/", "http://@hooks.example/"),
    *("http://hooks.example@127.0.0.1/", "http://hooks.example\\@127.0.0.1/", "http://127.0.0.1\\.hooks.example/"),
    *("http://hooks.example /", "http://hooks.example/a b", " http://hooks.example/", "http://hooks.example/\t"),
    *("http://hooks.example/\r\nX: y", "http://hooks.example\n/", "http://hooks.example/\x00", "\x01http://a.example/"),
    *("http://hooks.example/\x7f", "http://hooks.example/\u2028", "http://local\u00adhost/", "http://local\u200bhost/"),
    *("http://hooks.example:0/", "http://hooks.example:65536/", "http://hooks.example:-1/", "http://a.example:8 0/"),
    *("http://hooks.example:+80/", "http://hooks.example:0x50/", "http://hooks.example:80:80/", "http://a:８０/"),
    *("http://[::1", "http://::1/", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/"),
    *("http://[2606:4700::1%25lo]/", "http://[v1.a]/", "http://[]/", "http://[127.0.0.1]/", "http://[hooks.example]/"),
    *("http://256.256.256.256/", "http://1.2.3.4.5/", "http://127.0.0.08/", "http://0x7g.1/1/", "http://8.8.8.0xzz.1/"),
    *("http://127.0.0.1.0x/", "http://4294967296/", "http://99999999999999999999/", "http://1.2.3.256/"),
    *(
        "http://1..2/",
        "http://%31%32%37.0.0.1/",
        "http://hooks%2eexample/",
        "http://a..example/",
        "http://.example/",
        "http://./",
    ),
    *("http://" + "a" * 64 + ".example/", "http://" + "a." * 127 + "example/", "http://a.example/" + "a" * 2000),
    *(
        "http://" + "\u2488" * 63 + "/",
        "http://ho<oks.example/",
        "http://hooks.example;x/",
        "http://hooks,example/",
        "http://a℀.example/",
    ),
]

GOOD_URLS = {
    "http://hooks.example": "http://hooks.example/",
    "HTTPS://Hooks.Example:443/A?b=c#d": "https://hooks.example/A?b=c",
    "http://hooks.example.:80/": "http://hooks.example/",
    "http://hooks.example:8080/x?y=%20&z=a+b;@:/?": "http://hooks.example:8080/x?y=%20&z=a+b;@:/?",
    "http://hooks_1.example/": "http://hooks_1.example/",
    "http://bücher.example/ü?q=é": "http://xn--bcher-kva.example/%C3%BC?q=%C3%A9",
    "http://hooks.example/<\"'>": "http://hooks.example/%3C%22'%3E",
    "http://8.8.8.8/": "http://8.8.8.8/",
    "http://0x08080808/": "http://8.8.8.8/",
    "http://172.32.0.1/": "http://172.32.0.1/",
    "http://[2606:4700:4700::1111]:8443/x": "http://[2606:4700:4700::1111]:8443/x",
    "http://[2001:200::1]/": "http://[2001:200::1]/",
    "http://[::ffff:8.8.8.8]/": "http://8.8.8.8/",
    "http://[64:ff9b::8.8.8.8]/": "http://[64:ff9b::808:808]/",
    "http://[2002:808:808::1]/": "http://[2002:808:808::1]/",
    "http://hooks.example/" + "a" * 1979: "http://hooks.example/" + "a" * 1979,
}

# Reached through a name, or with the flag for the operator's own network.
NEVER = """
100.100.100.200 fd00:ec2::23 fd00:ec2::254 fd00:42::42 fd00:100::100:200 fd00:a9fe:a9fe::1 fd00:c1::a9fe:a9fe
fd20:ce::254 fe80::a9fe:a9fe 169.254.42.42 169.254.170.2 169.254.0.23
0.0.0.0 169.254.169.254 168.63.129.16 192.0.0.192 192.0.2.1 198.18.0.1 224.0.0.1 255.255.255.255 :: fe80::1 ff02::1
64:ff9b::a9fe:a9fe ::ffff:169.254.169.254 2002:a9fe:a9fe::1 2001::1 2001:1ff::1 fec0::1 ::127.0.0.1 64:ff9b:1::1
""".split()  # noqa: SIM905
LAN = "127.0.0.1 10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 ::1 fd00::1 ::ffff:127.0.0.1 64:ff9b::10.0.0.1".split()  # noqa: SIM905

NOT_PUBLIC = "The host's name leads to no public address."


def no_network(*_args):
    raise AssertionError("nothing may be looked up or connected to")


def resolver(*addresses):
    return Resolver(lambda _host: [ipaddress.ip_address(address) for address in addresses])


@pytest.fixture
def no_connection(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", no_network)


@pytest.mark.parametrize("url", PRIVATE_URLS + BAD_URLS, ids=ascii)
def test_a_hostile_url_is_refused_when_saved_and_when_sent(url, no_connection):
    sentence = refused_url(url, allow_private=False)
    assert sentence is not None
    assert sentence.endswith(".")
    outcome = Sender(resolver=Resolver(no_network)).post(url, {}, b"", Unlimited())
    assert (outcome.status, outcome.error) == (None, sentence)


@pytest.mark.parametrize("letter", "ßẞς\u200c\u200d", ids=ascii)
def test_a_host_that_browsers_read_differently_must_be_written_in_ascii(letter, no_connection):
    for url in (f"https://stra{letter}e.example/", f"https://a.stra{letter}e.example:8443/x"):
        assert "xn--" in refused_url(url, allow_private=True)
        assert "xn--" in Sender(resolver=Resolver(no_network)).post(url, {}, b"", Unlimited()).error
    assert refused_url("https://xn--strae-oqa.example/", allow_private=False) is None


def test_such_letters_may_stand_behind_the_host():
    assert parse("https://hooks.example/ßς").url == "https://hooks.example/%C3%9F%CF%82"


@pytest.mark.parametrize(("url", "requested"), GOOD_URLS.items())
def test_a_good_url_is_requested_in_its_one_spelling(url, requested):
    assert refused_url(url, allow_private=False) is None
    assert parse(url).url == requested
    assert parse(requested) == parse(url)


@pytest.mark.parametrize("url", BAD_URLS, ids=ascii)
def test_a_bad_url_is_refused_in_a_private_network_too(url):
    assert refused_url(url, allow_private=True) is not None


@pytest.mark.parametrize("address", LAN + NEVER)
def test_a_name_that_leads_inside_is_refused_when_sending(address, no_connection):
    url = "http://rebound.example/"
    assert refused_url(url, allow_private=False) is None
    outcome = Sender(resolver=resolver(address)).post(url, {}, b"", Unlimited())
    assert outcome.error == NOT_PUBLIC


@pytest.mark.parametrize("address", NEVER)
def test_no_flag_opens_metadata_multicast_or_reserved_addresses(address, no_connection):
    assert (
        "reserved"
        in Sender(allow_private=True, resolver=resolver(address)).post("http://a.example/", {}, b"", Unlimited()).error
    )


@pytest.mark.parametrize("address", LAN)
def test_the_flag_opens_the_operators_own_network(address):
    host = f"[{address}]" if ":" in address else address
    assert refused_url(f"http://{host}/", allow_private=True) is None
    assert refused_url("http://localhost/", allow_private=True) is None


@pytest.mark.parametrize(
    "answer", [("8.8.8.8", "127.0.0.1"), ("::1", "2606:4700::1"), ("8.8.8.8",) * 9 + ("10.0.0.1",)]
)
def test_one_bad_address_among_good_ones_refuses_all(answer, no_connection):
    outcome = Sender(resolver=resolver(*answer)).post("http://mixed.example/", {}, b"", Unlimited())
    assert outcome.error == NOT_PUBLIC


@pytest.mark.parametrize("code", [socket.EAI_NONAME, socket.EAI_AGAIN])
def test_a_name_that_does_not_exist_gets_the_same_sentence_as_one_that_leads_inside(code):
    def lookup(_host):
        raise socket.gaierror(code, "the system's own words")

    assert Sender(resolver=Resolver(lookup)).post("http://a.example/", {}, b"", Unlimited()).error == NOT_PUBLIC


@pytest.mark.parametrize("url", ["http://127.0.0.1", "http://own.example"])
def test_this_hosts_own_addresses_are_refused_like_private_ones_whatever_listens_there(url, monkeypatch):
    monkeypatch.setattr(webhook, "allowed", lambda _address, _allow_private: True)
    monkeypatch.setattr(webhook, "refusal_of", lambda _target, _allow_private: None)
    with Receiver() as receiver:
        own = resolver("8.8.8.8", "127.0.0.1")
        outcome = Sender(resolver=own).post(f"{url}:{receiver.port}/", {}, b"", Unlimited())
    assert outcome.error == (NOT_PUBLIC if "own" in url else PRIVATE)
    assert receiver.connections == 0


def test_the_flag_opens_this_hosts_own_addresses_too():
    with Receiver() as receiver:
        assert Sender(allow_private=True).post(receiver.url, {}, b"", Unlimited()).error is None


@pytest.mark.parametrize("url", ["http://8.8.8.8/", "http://0x08080808:8080/x", "http://[::ffff:8.8.8.8]/"])
def test_this_hosts_own_public_address_is_refused_when_saved_too(url):
    def is_own(address):
        return str(address) == "8.8.8.8"

    assert refused_url(url, allow_private=False, is_own=is_own) == PRIVATE
    assert refused_url(url, allow_private=True, is_own=is_own) is None
    assert refused_url("http://8.8.4.4/", allow_private=False, is_own=is_own) is None


def test_an_address_is_own_where_the_system_would_speak_from_it():
    assert is_own(ipaddress.ip_address("127.0.0.1"))
    assert not is_own(ipaddress.ip_address("8.8.8.8"))
    assert not is_own(ipaddress.ip_address("2001:db8::1"))


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("8.8.8.8", "8.8.8.8"),
        ("2606:4700:0:1:2::3", "2606:4700:0:1::/64"),
        ("2606:4700:0:1:ffff::", "2606:4700:0:1::/64"),
        ("::ffff:8.8.8.8", "8.8.8.8"),
        ("64:ff9b::808:808", "8.8.8.8"),
        ("2002:808:808:7::1", "8.8.8.8"),
    ],
)
def test_all_addresses_of_one_owner_count_as_one(address, name):
    assert address_name(ipaddress.ip_address(address)) == name


def test_a_url_has_at_most_2000_bytes():
    url = "https://hooks.example/"
    for letter in "a\u00e9\u4e2d\U0001f600":
        count, rest = divmod(2000 - len(url), len(letter.encode()))
        longest = url + rest * "a" + count * letter
        assert refused_url(longest, allow_private=False) is None
        assert "2,000 bytes" in refused_url(longest + "a", allow_private=False)


TOO_LONG = "The URL's host is too long: a name has at most 253 characters, and 63 between its dots."
LONG_HOSTS = {
    "many characters": "\u4e2d" * 600,
    "wide dots": "\u3002".join(["\u4e2d" * 60] * 9),
    "half wide dots": "\uff61".join(["\u4e2d"] * 200),
    "one character for eighteen": ".".join(["\ufdfa" * 63] * 3),
    "characters for three": ".".join(["\u3316" * 30] * 8),
    "a label of 64": "a" * 64 + ".example",
    "254 characters": ".".join(["a" * 49] * 5) + ".abcd",
}


@pytest.mark.parametrize("host", LONG_HOSTS.values(), ids=LONG_HOSTS)
def test_a_host_that_is_too_long_never_comes_to_the_codec_whose_time_grows_with_the_square(host, monkeypatch):
    parse.cache_clear()
    given, to_ascii = [], encodings.idna.ToASCII
    monkeypatch.setattr(encodings.idna, "ToASCII", lambda label: given.append(label) or to_ascii(label))
    assert refused_url(f"https://{host}/", allow_private=False) == TOO_LONG
    assert given == []
    assert refused_url("https://b\u00fccher.example/", allow_private=False) is None
    assert given == ["b\u00fccher", "example"]


@pytest.mark.parametrize(
    "host", [".".join(["".join(map(chr, range(0x4E00, 0x9000, 1100)))] * 6), "a" * 64, ".".join(["a" * 62] * 5)]
)
def test_a_host_that_is_too_long_is_told_how_long_it_may_be(host):
    assert refused_url(f"https://{host}/", allow_private=False) == TOO_LONG


def test_the_longest_host_may_end_in_a_dot():
    host = ".".join(["a" * 49] * 5) + ".abc"
    assert len(host) == 253
    assert parse(f"http://{host}./").host == host
