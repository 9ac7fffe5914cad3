"""Names that are looked up while the name server is silent."""

import ipaddress
import threading

import pytest

from cardbeat.heartbeat import resolver as resolver_module
from cardbeat.heartbeat.resolver import Resolver

FOUND = [ipaddress.ip_address("8.8.8.8")]


def test_only_so_many_names_are_looked_up_at_once(monkeypatch):
    monkeypatch.setattr(resolver_module, "LOOKUPS", 2)
    answered = threading.Event()
    resolver = Resolver(lambda _host: answered.wait(10) and FOUND)
    for host in ("a", "b"):
        with pytest.raises(TimeoutError):
            resolver.addresses(host, 0)
    with pytest.raises(TimeoutError, match="too many names"):
        resolver.addresses("c", 0)
    answered.set()
    assert [resolver.addresses(host, 10) for host in ("a", "b", "c")] == [FOUND] * 3
