"""Attacks with keys: issued, guessed, revoked with much behind them, and read from a page's HTML."""

import asyncio
import itertools
import secrets
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench.attacks.attackers import Attackers, Connection, request
from tests.bench.attacks.callers import Activity, Caller
from tests.bench.attacks.demands import at_least, at_most
from tests.bench.attacks.trial import Scene, Trial
from tests.bench.attacks.with_alerts import FREE_CHECKS, test_all
from tests.bench.attacks.with_checks import check_body, fill_with_longest
from tests.bench.checks import Check, create_checks_key, database, insert

MANY_CHECKS = 60_000
ALERTS = 3
"""Of each of them."""
FILL_SECONDS = 32
OTHER_ADDRESS = "127.0.0.3"


def revoke(trial: Trial) -> None:
    """A free key is revoked that has stored as much as it can: 100 checks, and test alerts for half a minute."""
    with trial.scene() as scene:
        (key,) = scene.checks_keys(1)
        ids = fill_with_longest(scene.attacker(key), FREE_CHECKS, f"http://127.3.0.1:{scene.receivers.port}/silent/")
        scene.only_attack(partial(test_all, tests=[(check_id, key) for check_id in ids]), FILL_SECONDS)
        scene.attack(partial(revoke_soon, key=key))
        judge_revoked(scene)


def revoke_large(trial: Trial) -> None:
    """An unlimited key is revoked that has 60,000 checks with 3 finished alerts each, written past the server."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        key = create_checks_key(trial.tree, data)
        fill(data)
        with trial.scene(data=data) as scene:
            scene.attack(partial(revoke_soon, key=key), seconds=30)
            judge_revoked(scene)


def public_key(trial: Trial) -> None:
    """Whoever reads the cards key in a page's HTML rotates and revokes it."""
    with trial.scene() as scene:
        attackers = scene.attack(partial(end_key, key=scene.victim.cards_key), seconds=5)
        trial.verdicts.append(at_most("rotations and revocations taken at most {}", attackers.statuses[200], 0))


def register_flood(trial: Trial) -> None:
    """32 clients of one address register without end; another address registers once in three seconds."""
    with trial.scene() as scene:
        someone = Caller(scene.server.port, kept=False, address=OTHER_ADDRESS)
        register = Activity("registration", 3, lambda _: someone.ask("POST", "/register").status == 201)
        scene.victim.activities.append(register)
        scene.attack(flood_register)
        worst = trial.beside["registration"].percentile(1)
        trial.verdicts.append(at_most("registration from another address within {} s", worst, 1))


def unknown_keys(trial: Trial) -> None:
    """8 clients send keys that nobody has, to /og and to /checks, as fast as they can."""
    with trial.scene() as scene:
        scene.judge_refusals(scene.attack(guess_keys))


async def revoke_soon(attackers: Attackers, key: str) -> None:
    await asyncio.sleep(2)
    started = time.monotonic()
    await Connection(attackers).ask(request("DELETE", "/key", key))
    attackers.notes["DELETE /key, s"] = time.monotonic() - started


async def end_key(attackers: Attackers, key: str) -> None:
    requests = [request("POST", "/key/rotate", key), request("DELETE", "/key", key)]
    await attackers.repeat(1, lambda number: requests[number % 2], per_second=10)


async def flood_register(attackers: Attackers) -> None:
    requests = [request("POST", "/register"), request("POST", "/register", body=b'{"email": "m@example.com"}')]
    await attackers.repeat(32, lambda number: requests[number % 2])


async def guess_keys(attackers: Attackers) -> None:
    body = check_body("http://203.0.113.1/")
    kinds = itertools.cycle(
        (
            lambda key: request("GET", f"/og?title=A+card&key={key}"),
            lambda key: request("GET", "/checks", key),
            lambda key: request("POST", "/checks", key, body),
        )
    )
    await attackers.repeat(8, lambda _: next(kinds)(f"sk_{secrets.token_urlsafe(24)}"))


def judge_revoked(scene: Scene) -> None:
    trial = scene.trial
    trial.verdicts += [
        at_least("answers 204 to DELETE /key at least {}", trial.figures.get("attack, answers 204", 0), 1),
        at_most("ping at most {} s", trial.beside["ping"].percentile(1), 0.5),
    ]


def fill(data: Path) -> None:
    """Checks of the newest key, and alerts of these."""
    now = int(time.time())
    insert(data, [Check(f"check-{number}", 100_000, None, now) for number in range(MANY_CHECKS)])
    error = "The receiver did not answer. " * 8
    with database(data) as connection:
        for outage in range(1, ALERTS + 1):
            connection.execute(
                "INSERT INTO alerts (id, check_id, type, outage, last_error, state, attempts, created_at)"
                " SELECT 'msg_' || id || ?1, id, 'check.overdue', ?1, ?2, 'failed', 1, ?3 FROM checks ORDER BY seq",
                (outage, error, now),
            )
