"""What is likely a mistake in a server's setup, as its start and `doctor` tell it."""

import pytest

from cardbeat.commands.serve import mistakes
from cardbeat.config import Config

PUBLIC = [
    "cards.example.com",
    "1.1.1.1",
    "[2606:4700::1111]:8443",
    "cards.example.com.",
]
LOCAL = [
    *(
        "localhost:8080",
        "127.0.0.1",
        "[::1]",
        "10.0.0.7",
        "[fd00::1]",
        "169.254.1.1",
        "100.64.0.1",
    ),
    *(
        "cards",
        "cards.localhost",
        "cards.local",
        "cards.lan",
        "cards.internal",
        "cards.home.arpa",
    ),
]


def told(**values):
    return list(mistakes(Config(**values)))


def test_a_webhook_proxy_is_told_while_strangers_may_register():
    (said,) = told(webhook_proxy="http://me:s3cret@proxy:3128")
    assert "refuse private targets" in said
    assert "s3cret" not in said
    assert (
        told(webhook_proxy="http://proxy:3128", registration_open=False)
        == []
    )


def test_a_public_url_with_open_registration_or_without_a_trusted_proxy_is_told():
    for host in PUBLIC:
        registration, proxy = told(base_url=f"https://{host}")
        assert registration.startswith(
            f"everyone who reaches https://{host} can get keys"
        )
        assert proxy.endswith("; set --trusted-proxy to its address")
    assert [
        host for host in LOCAL if told(base_url=f"http://{host}")
    ] == []
    closed = {
        "registration_open": False,
        "trusted_proxies": ("10.0.0.0/8",),
    }
    assert told(base_url="https://1.1.1.1", **closed) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_on_every_address_needs_a_base_url(host):
    (said,) = told(host=host)
    assert "--base-url" in said
    assert (
        told(host=host, base_url="http://cards.lan")
        == told(host="192.0.2.1")
        == []
    )
