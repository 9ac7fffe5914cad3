"""Secrets that sign alerts: replaced, and forgotten when they sign no more."""

import pytest

from cardbeat.config import FREE
from cardbeat.database import Database
from cardbeat.keys.key import IssuedKey
from cardbeat.keys.store import Keys
from cardbeat.keys.webhook_secrets import AGAIN_SECONDS, OLD_SECRET_SECONDS, WebhookSecrets
from tests.postgresql import BOTH_ENGINES
from tests.support import FakeClock

pytestmark = BOTH_ENGINES


@pytest.fixture
def secrets(database: Database, clock: FakeClock) -> WebhookSecrets:
    return WebhookSecrets(database, clock)


@pytest.fixture
def issued(database: Database, clock: FakeClock) -> IssuedKey:
    return Keys(database, clock, {"free": FREE}).issue("ops@example.com").wait()


def stored(database: Database) -> list[tuple[object, ...]]:
    with database.read() as connection:
        sql = "SELECT webhook_secret, old_webhook_secret, old_webhook_secret_until FROM keys ORDER BY seq"
        return [tuple(row) for row in connection.execute(sql)]


def test_an_old_secret_leaves_the_database_when_it_signs_no_more(
    secrets: WebhookSecrets, database: Database, clock: FakeClock, issued: IssuedKey
) -> None:
    new = secrets.renew(issued.key).wait()
    clock.advance(OLD_SECRET_SECONDS - 1)
    secrets.forget_old()
    assert stored(database) == [(new, issued.webhook_secret, clock.now + 1)]
    clock.advance(1)
    secrets.forget_old()
    assert stored(database) == [(new, None, None)]


def test_one_that_was_replaced_again_meanwhile_has_its_own_24_hours(
    secrets: WebhookSecrets, database: Database, clock: FakeClock, issued: IssuedKey
) -> None:
    second = secrets.renew(issued.key).wait()
    clock.advance(OLD_SECRET_SECONDS - 1)
    third = secrets.renew(issued.key).wait()
    clock.advance(1)
    secrets.forget_old()
    assert [row[:2] for row in stored(database)] == [(third, second)]


def test_a_request_that_is_repeated_soon_leaves_the_secret_that_receivers_know(
    secrets: WebhookSecrets, database: Database, clock: FakeClock, issued: IssuedKey
) -> None:
    known, until = issued.webhook_secret, clock.now + OLD_SECRET_SECONDS
    for _ in range(3):
        last = secrets.renew(issued.key).wait()
        assert stored(database) == [(last, known, until)]
        clock.advance(AGAIN_SECONDS // 2)
    # Half of that time later than the last moment that counts as a repetition.
    newest = secrets.renew(issued.key).wait()
    assert stored(database) == [(newest, last, clock.now + OLD_SECRET_SECONDS)]


def test_where_none_is_old_nothing_is_written(
    secrets: WebhookSecrets, database: Database, issued: IssuedKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets.renew(issued.key).wait()
    monkeypatch.setattr(database, "write", None)
    secrets.forget_old()
