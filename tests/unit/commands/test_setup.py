"""What is likely a mistake in a server's setup, as its start and `doctor` tell it."""

import pytest

from cardbeat.commands.setup import mistaken_variables, mistakes, undefined_tiers
from cardbeat.config import TIERS, Config

PUBLIC = ["cards.example.com", "1.1.1.1", "[2606:4700::1111]:8443", "cards.example.com."]
LOCAL = [
    *("localhost:8080", "127.0.0.1", "[::1]", "10.0.0.7", "[fd00::1]", "169.254.1.1", "100.64.0.1"),
    *("cards", "cards.localhost", "cards.local", "cards.lan", "cards.internal", "cards.home.arpa"),
]


def told(**values):
    return dict(mistakes(Config(**values), {}))


def test_a_variable_without_effect_is_told_with_those_that_have_one():
    names = ["CARDBEAT_PORT", "CARDBEAT_URL", "CARDBEAT_KEY", "CARDBEAT_DATABASE", "HOME"]
    known = dict.fromkeys(names, "8080")
    assert list(mistaken_variables(known)) == []
    (said,) = mistaken_variables({**known, "CARDBEAT_BASEURL": "x"})
    found, _, advice = said.partition("; ")
    assert found == "the variable CARDBEAT_BASEURL is unknown and has no effect"
    assert "CARDBEAT_BASE_URL, CARDBEAT_DATA, CARDBEAT_DATABASE" in advice


def test_what_kubernetes_sets_for_a_service_is_told_in_one_sentence():
    others = dict.fromkeys(["CARDBEAT_PORT_8080_TCP", "CARDBEAT_SERVICE_HOST"], "x")
    (said,) = mistaken_variables({**others, "CARDBEAT_PORT": "tcp://10.96.7.1:8080"})
    assert said.startswith("CARDBEAT_PORT is ignored, because Kubernetes set it for a Service; ")
    assert len(list(mistaken_variables({**others, "CARDBEAT_PORT": "8080"}))) == 2


def test_a_webhook_proxy_is_told_while_strangers_may_register():
    said = told(webhook_proxy="http://me:s3cret@proxy:3128")["webhook_proxy"]
    assert "refuse private targets" in said
    assert "s3cret" not in said
    assert told(webhook_proxy="http://proxy:3128", registration_open=False) == {}


def test_a_public_url_with_open_registration_or_without_a_trusted_proxy_is_told():
    for host in PUBLIC:
        said = told(base_url=f"https://{host}")
        assert said["registration"].startswith(f"everyone who reaches https://{host} can get keys")
        assert said["trusted_proxy"].endswith("; set --trusted-proxy to its address")
    assert [host for host in LOCAL if told(base_url=f"http://{host}")] == []
    closed = {"registration_open": False, "trusted_proxies": ("10.0.0.0/8",)}
    assert told(base_url="https://1.1.1.1", **closed) == {}


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_on_every_address_needs_a_base_url(host):
    assert "--base-url" in told(host=host)["base_url"]
    assert told(host=host, base_url="http://cards.lan") == told(host="192.0.2.1") == {}


def test_keys_in_tiers_that_are_gone_are_counted():
    assert list(undefined_tiers({"free": 9, "unlimited": 1}, TIERS)) == []
    (said,) = undefined_tiers({"plus": 1, "gold": 2, "free": 3}, TIERS)
    assert "get free's limits (gold: 2, plus: 1); " in said
