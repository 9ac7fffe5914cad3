"""Alerts: stored with the change that they tell of, delivered after it (CONTRACT 4, Alerts)."""

import json
import secrets
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from cardbeat.clock import Clock, utc_text
from cardbeat.database import Database
from cardbeat.errors import TooMany
from cardbeat.heartbeat.check import Check
from cardbeat.heartbeat.courier import Courier, Post, host_of
from cardbeat.heartbeat.delivery import Delivery
from cardbeat.heartbeat.outbox import WAITING_FOR_TESTS, NewAlert, Outbox
from cardbeat.heartbeat.webhook import Sender

TEST = "check.test"

# One encoder for all: `json.dumps` with separators makes a new one each time, and a sweep records thousands.
_COMPACT = json.JSONEncoder(separators=(",", ":"))


class Alerts:
    """The alerts of all checks. `post` replaces the webhook sender, `elapsed` the monotonic clock."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        base_url: str,
        allow_private_webhooks: bool = False,
        *,
        post: Post | None = None,
        elapsed: Clock = time.monotonic,
    ) -> None:
        self._base_url = base_url
        self._outbox = Outbox(database)
        courier = Courier(self._outbox, post or Sender(allow_private_webhooks).post, clock)
        self._delivery = Delivery(self._outbox, courier, clock, database.path.with_name("delivery.lock"), elapsed)

    def start(self) -> None:
        """Begin to deliver, first of all what an earlier process left."""
        self._delivery.start()

    def stop(self, seconds: float) -> None:
        """Begin no more posts; wait at most `seconds` for those that run. What is left is sent after a restart."""
        self._delivery.stop(seconds)

    def totals(self) -> dict[str, int]:
        """Attempts since the start by what came of them: delivered, retried, failed."""
        return self._delivery.totals()

    def record(self, connection: sqlite3.Connection, alert_type: str, check: Check, now: int) -> None:
        """Store an alert inside the caller's transaction; `wake` must follow its commit.

        Nothing is stored for a check without a webhook URL, nor a second alert of one outage and type. Raises
        `TooMany` for a test alert while the check has too many waiting.
        """
        if alert_type == TEST and self._outbox.waiting(connection, check.id) >= WAITING_FOR_TESTS:
            raise TooMany("Too many alerts are waiting for this receiver; test it when it answers again.", 60)
        self.record_all(connection, alert_type, [check], now)

    def record_all(self, connection: sqlite3.Connection, alert_type: str, checks: Sequence[Check], now: int) -> None:
        """The same for up to 1,000 checks at a time, none of them a test."""
        alerts = [self._alert(alert_type, check, now) for check in checks if check.webhook_url is not None]
        if alerts:
            self._outbox.add(connection, alerts)

    def wake(self) -> None:
        """Alerts are stored and committed."""
        self._delivery.wake()

    def make_due(self, connection: sqlite3.Connection, check_id: str, now: int) -> None:
        """What waits for a check's receiver is due now, because there is another; `move` must follow the commit."""
        self._outbox.make_due(connection, check_id, now)

    def move(self, check: Check) -> None:
        """The check has another webhook URL, and its alerts were made due."""
        self._delivery.move(check.seq, host_of(check.webhook_url))

    def newest(self, check_id: str) -> list[dict[str, Any]]:
        """A check's history as the contract shows it, newest first, at most 100."""
        return self._outbox.newest(check_id)

    def _alert(self, alert_type: str, check: Check, now: int) -> NewAlert:
        outage = None if alert_type == TEST else check.outage
        body = self._body(alert_type, check, now)
        return NewAlert(f"msg_{secrets.token_hex(16)}", check.id, alert_type, outage, body, now)

    def _body(self, alert_type: str, check: Check, now: int) -> str:
        sentence = _SENTENCES[alert_type](_safe(check.name), check)
        body = {
            "type": alert_type,
            # ISO 8601, as the Standard Webhooks specification has it.
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "data": {"check": check.as_json(self._base_url)},
            "text": sentence,
            "content": sentence,
        }
        return _COMPACT.encode(body)


def _overdue(name: str, check: Check) -> str:
    last = "no ping yet" if check.last_ping_at is None else f"last ping {utc_text(check.last_ping_at)} UTC"
    return f'"{name}" is overdue: {last}, expected by {utc_text(check.deadline_at)} UTC.'


def _recovered(name: str, check: Check) -> str:
    return f'"{name}" has recovered: pinged again, next ping expected by {utc_text(check.deadline_at)} UTC.'


def _test(name: str, check: Check) -> str:
    return f'This is a test alert for "{name}"; its alerts arrive here.'


_SENTENCES = {"check.overdue": _overdue, "check.recovered": _recovered, TEST: _test}


def _safe(name: str) -> str:
    """A name that calls nobody in Slack, Mattermost or Discord: no <!channel>, no @everyone."""
    return name.replace("<", "\u2039").replace(">", "\u203a").replace("@", "@\u200b")
