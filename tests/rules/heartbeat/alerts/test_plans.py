"""What each statement of the outbox costs PostgreSQL, whatever it has counted of the tables.

The dangerous state is the normal one: statistics are taken in quiet times, when no alert waits.
"""

import contextlib
import time
from collections import defaultdict

import pytest

from cardbeat.heartbeat import transitions
from cardbeat.heartbeat.alerts.message import OVERDUE, RECOVERED, REMINDER
from cardbeat.heartbeat.alerts.outbox import (
    Message,
    Outbox,
    Queue,
    Result,
)
from cardbeat.heartbeat.check import Check
from tests.kit.lists import numbered
from tests.kit.postgresql import POSTGRESQL

pytestmark = POSTGRESQL

NOW = 1_800_000_000
KEYS, CHECKS, FINISHED = 100, 40_000, 40_000
LIMIT_SECONDS = 0.01
ROUNDS = 4, 40
"""The quickest run of each statement counts. There are more rounds on a busy machine."""

FILL = f"""
INSERT INTO keys (id, scope, tier, hash, prefix, webhook_secret, created_at)
SELECT 'key' || n, 'checks', 'free', CAST('h' || n AS BYTEA), 'sk_', 'whsec_', 0 FROM generate_series(1, {KEYS}) AS n;
INSERT INTO checks (id, api_key_id, name, period_seconds, grace_seconds, webhook_url, clock_from, created_at,
    updated_at, status, outage, overdue_at, delivery)
SELECT 'check' || n, 'key' || (n % {KEYS} + 1), 'x', 60, 0, 'https://h' || n % 50 || '.example/', 0, 0, 0, 'overdue', 9,
    0, CASE n % 2 WHEN 0 THEN 'ok' ELSE 'failing' END FROM generate_series(1, {CHECKS}) AS n;
INSERT INTO alerts (id, check_id, key_id, receiver, is_new, type, outage, state, created_at)
SELECT 'f' || n, 'check' || n % {CHECKS} + 1, 'key', 'h', 1, 'check.reminder', 1, 'delivered', 0
FROM generate_series(1, {FINISHED}) AS n;
INSERT INTO alerts (id, check_id, key_id, receiver, is_new, type, outage, created_at, next_attempt_at)
SELECT 'w' || seq, id, api_key_id, 'h' || seq % 50 || '.example', seq % 2, 'check.overdue', 9, 0, {NOW}
FROM checks ORDER BY seq
"""
END = "UPDATE alerts SET state = 'delivered' WHERE outage = 9"
WAIT = "UPDATE alerts SET state = 'pending' WHERE outage = 9"
STATES = {
    "never": [FILL],
    "of empty tables": ["ANALYZE", FILL],
    "fresh": [FILL, "ANALYZE"],
    "none waited": [FILL, END, "ANALYZE", WAIT],
    "many waited": [FILL, "ANALYZE", END],
}


class Timed:
    """A transaction or a database whose statements are timed: the quickest run of each."""

    def __init__(self, real, seconds):
        self.real = real
        self.seconds = seconds
        self.fence = True

    def execute(self, sql, values=()):
        began = time.perf_counter()
        cursor = self.real.execute(sql, values)
        self.seconds[sql[:60], len(values)].append(
            time.perf_counter() - began
        )
        return cursor

    @contextlib.contextmanager
    def read(self):
        with self.real.read() as connection:
            yield Timed(connection, self.seconds)

    def write(self, work):
        with contextlib.suppress(Undone):
            self.real.write(
                lambda transaction: self.undone(work, transaction)
            )
        return []

    def undone(self, work, transaction):
        work(Timed(transaction, self.seconds))
        raise Undone

    def lock(self, transaction, sql, values):
        transaction.execute(f"{sql} FOR NO KEY UPDATE", values)


class Undone(Exception):
    """Rolls a write back, so that the next one finds the same."""


@pytest.mark.parametrize("state", STATES)
def test_no_statement_takes_long_whatever_the_statistics_say(
    database, postgresql, state
):
    ((schema,),) = rows(database, "SELECT current_schema()")
    for sql in STATES[state]:
        postgresql.execute(f"SET search_path TO {schema}; {sql}")
    seconds = defaultdict(list)
    timed = Timed(database, seconds)
    found = rows(
        database, "SELECT * FROM checks WHERE seq BETWEEN 2000 AND 2019"
    )
    checks = [
        Check.from_row(row)._replace(outage=10, repeat_seconds=300)
        for row in found
    ]
    slow = {}
    for number in range(ROUNDS[1]):
        deliver(Outbox(timed, "https://beats.example"), timed)
        change(timed, checks)
        slow = {
            what: min(each)
            for what, each in seconds.items()
            if min(each) > LIMIT_SECONDS
        }
        if number >= ROUNDS[0] and not slow:
            break
    assert len(seconds) > 12
    assert slow == {}


def change(timed, checks):
    """What changes of checks store."""
    for kind in (OVERDUE, RECOVERED, REMINDER):
        timed.write(
            lambda transaction, kind=kind: transitions.record(
                transaction, kind, checks, NOW
            )
        )
    for url in ("https://x.example/", None):
        timed.write(
            lambda transaction, url=url: transitions.move(
                transaction, "check5", url, NOW
            )
        )


def deliver(outbox, timed):
    """What the delivery asks for and stores."""
    with timed.read() as connection:
        outbox.queues(connection)
        for is_new in (False, True):
            queue = Queue("key7", is_new, "free")
            hosts = numbered("h{}.example", 40)
            outbox.due(connection, queue, NOW, hosts, hosts, 0, 256)
            outbox.due(connection, queue, NOW, [], [], 1, 256)
    outbox.newest("check5")
    outbox.messages(range(FINISHED + 7, FINISHED + 400, 50), NOW)
    states = ("delivered", "failed", "pending") * 20
    outbox.store(
        [
            Result(message_of(seq), 204, None, state, NOW, NOW)
            for seq, state in enumerate(states, 2000)
        ],
        NOW,
    )


def message_of(number):
    alert = {
        "seq": FINISHED + number,
        "id": f"w{number}",
        "check_id": f"check{number}",
        "attempts": 0,
        "state": "pending",
        "outages": 0,
    }
    return Message(alert, "", f"https://h{number % 50}.example/", b"", ())


def rows(database, sql):
    with database.read() as connection:
        return connection.execute(sql).fetchall()
