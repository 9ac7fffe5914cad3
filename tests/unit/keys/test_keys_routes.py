"""Which of the keys' endpoints wait, and who waits for them."""

from collections.abc import Callable

import pytest

from cardbeat.concurrency.later import Later
from cardbeat.config import FREE, Config
from cardbeat.database import Database
from cardbeat.keys.rate import RateLimit
from cardbeat.keys.registration import Registration
from cardbeat.keys.routes import KeyRoutes
from cardbeat.keys.store import Keys, hash_of
from cardbeat.keys.webhook_secrets import WebhookSecrets
from cardbeat.web.message import Request, Response
from tests.support import FakeClock


@pytest.mark.parametrize(
    ("change", "status"), [(lambda routes, asked: routes.rotate(asked), 200), (lambda r, asked: r.revoke(asked), 204)]
)
def test_no_thread_waits_until_a_changed_key_is_known_everywhere(
    database: Database, clock: FakeClock, change: Callable[[KeyRoutes, Request], Later[Response]], status: int
) -> None:
    waiting: list[Callable[[], object]] = []
    keys = Keys(database, clock, {"free": FREE}, afterwards=waiting.append)
    secrets = WebhookSecrets(database, clock)
    registration = Registration(Config())
    routes = KeyRoutes(registration, keys, secrets, RateLimit(), lambda _: (0, 0), lambda: None)
    issued = keys.issue("a@b").wait()
    answer = change(routes, Request("POST", "/key/rotate", "/key/rotate", key=issued.key))
    database.write(lambda _: None)
    assert keys.find(hash_of(issued.value)) is None
    assert not answer.is_settled
    [settle] = waiting
    settle()
    assert answer.wait().status == status
