"""Whose requests are answered first, while those of many clients wait for a worker thread."""

import threading

import pytest

from cardbeat.concurrency.later import Workers
from cardbeat.web.exchange import Exchange
from cardbeat.web.forwarded import network_of
from cardbeat.web.message import Request
from tests.support import wait_until

OTHER = "192.0.2.1"


@pytest.mark.parametrize(
    ("with_keys", "many"),
    [(True, ["198.51.100.1"] * 30), (True, ["2001:db8:0:{}::1"] * 30), (False, ["2001:db8:0:{}::1"] * 30)],
    ids=["many keys", "many keys and v6 networks", "v6 networks without a key"],
)
def test_many_keys_and_networks_of_one_customer_have_one_turn(app, with_keys, many):
    workers, order, release = Workers(1), [], threading.Event()
    exchange = Exchange(app.service.router, workers)
    keys = [app.checks_key() for _ in range(6)]

    def ask(client, key, path):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        request = Request("GET", path, path, "", headers, b"", client, network_of(client), "test")
        route = app.service.router.find(request)
        if route.guard and key:
            request.key = route.guard.look_up(request)
        exchange.serve(request, route).then(lambda _: order.append(client))

    workers.submit(lambda: release.wait(30), "held")
    for number, client in enumerate(many):
        ask(client.format(number), keys[number % 5] if with_keys else None, "/checks" if with_keys else "/metrics")
    ask(OTHER, keys[5], "/checks")
    release.set()
    wait_until(lambda: len(order) == len(many) + 1)
    assert order.index(OTHER) <= 1
    workers.stop()
