"""Who counts as one client, and whom a trusted proxy names."""

from ipaddress import ip_network

from cardbeat.web.message import (
    client_address,
    network_of,
)

PROXIES = [ip_network("10.0.0.0/8"), ip_network("2001:db8:ffff::/48")]
NETWORKS = {
    "192.0.2.1": "192.0.2.1",
    "::ffff:192.0.2.1": "192.0.2.1",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "fe80::1%eth0": "fe80::/64",
    "-": "-",
}


def test_a_client_is_an_ipv4_address_or_an_ipv6_network():
    assert {
        address: network_of(address) for address in NETWORKS
    } == NETWORKS
    assert network_of("2001:db8:1:2:3:4:5:6", 48) == "2001:db8:1::/48"
    assert network_of("192.0.2.1", 48) == "192.0.2.1"


FORWARDED = """
192.0.2.7 = 192.0.2.7
1.2.3.4, 192.0.2.7 = 192.0.2.7
1.2.3.4, 192.0.2.7, 10.0.0.2 = 192.0.2.7
1.2.3.4,192.0.2.7 , 2001:db8:ffff::1,10.0.0.2 = 192.0.2.7
10.0.0.3, 10.0.0.2 = 10.0.0.3
2001:db8::9 = 2001:db8::9
[2001:db8::9]:443 = 2001:db8::9
192.0.2.7:443 = 192.0.2.7
::ffff:192.0.2.7 = 192.0.2.7
192.0.2.7, unknown = 10.0.0.1
192.0.2.7, unknown, 10.0.0.2 = 10.0.0.2
192.0.2.7, = 10.0.0.1
"""


def test_the_client_is_the_right_most_address_that_is_no_proxy():
    # Of many proxies few are looked at.
    told = {"1.2.3.4" + ", 10.0.0.2" * 30: "10.0.0.2", "": "10.0.0.1"}
    for line in FORWARDED.strip().splitlines():
        header, client = line.split(" = ")
        told[header] = client
    for header, client in told.items():
        headers = {"x-forwarded-for": header}
        found = client_address("10.0.0.1", headers, PROXIES)
        assert found == client, header
