"""Whose changes are written first, while those of many clients wait for the database."""

import pytest

from cardbeat.concurrency.later import Workers
from cardbeat.web.exchange import Exchange
from cardbeat.web.forwarded import network_of
from cardbeat.web.message import Request
from tests.postgresql import BOTH_ENGINES
from tests.support import GOOD_CHECK, wait_until, writer_held

pytestmark = BOTH_ENGINES

MANY, OTHER, HEALTH = "198.51.100.1", "192.0.2.1", "192.0.2.2"
MANY_OF_V6 = "2001:db8:0:{}::1"
"""Networks that count as one client: a provider gives them to one customer."""


class Clients:
    """Requests to the app's routes, whose answers are noted in `order` by their clients."""

    def __init__(self, app, monkeypatch):
        self.app = app
        self.exchange = Exchange(app.service.router, Workers(2))
        self.order = []
        self.answers = []
        self.asked = 0
        write_later = app.service.database.write_later

        def counted(work):
            self.asked += 1
            return write_later(work)

        monkeypatch.setattr(app.service.database, "write_later", counted)

    def key_with_check(self):
        key = self.app.checks_key()
        return key, self.app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]["id"]

    def snooze(self, key_with_check, client):
        key, check = key_with_check
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self._ask("PUT", f"/checks/{check}/snooze", headers, b'{"seconds": 60}', client)

    def ask_for_health(self):
        self._ask("GET", "/healthz", {}, b"", HEALTH)

    def _ask(self, method, path, headers, body, client):
        request = Request(method, path, path, "", headers, body, client, network_of(client), "test")
        route = self.app.service.router.find(request)
        if route.guard:
            request.key = route.guard.look_up(request)
        answer = self.exchange.serve(request, route)
        answer.then(lambda _: self.order.append(client))
        self.answers.append(answer)
        wait_until(lambda: self.asked == len(self.answers))


@pytest.mark.parametrize("many", [[MANY] * 40, [MANY_OF_V6.format(n) for n in range(40)]], ids=["v4", "v6"])
def test_the_changes_of_one_network_keep_neither_another_client_nor_a_health_check_waiting(app, monkeypatch, many):
    clients = Clients(app, monkeypatch)
    keys, other = [clients.key_with_check() for _ in range(4)], clients.key_with_check()
    with writer_held(app.service.database):
        clients.asked = 0
        for number, client in enumerate(many):
            clients.snooze(keys[number % 4], client)
        clients.snooze(other, OTHER)
        clients.ask_for_health()
    for answer in clients.answers:
        assert answer.wait().status == 200
    wait_until(lambda: len(clients.order) == 42)
    assert clients.order.index(OTHER) <= 2
    assert clients.order.index(HEALTH) <= 2
    clients.exchange.stop()
