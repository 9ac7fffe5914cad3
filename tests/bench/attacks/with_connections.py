"""Attacks with connections: answers that are not read, and bodies that never end."""

from functools import partial

from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.trial import Trial
from tests.bench.attacks.with_checks import fill_with_longest

BODY_BYTES = 65536
"""As many as a body may have; the last one is never sent."""


def slow_readers(trial: Trial) -> None:
    """1,500 clients of one free key ask for all of its 100 checks, and read 1,000 bytes a second of the answer."""
    with trial.scene() as scene:
        (key,) = scene.checks_keys(1)
        fill_with_longest(scene.attacker(key), 100)
        scene.attack(partial(read_slowly, key=key), seconds=40)


def bodies(trial: Trial) -> None:
    """9,000 clients without a key send 64 KiB of a body and then nothing, to no path, /register and /checks."""
    with trial.scene() as scene:
        scene.attack(send_unfinished, seconds=30)


async def read_slowly(attackers: Attackers, key: str) -> None:
    await attackers.hold(1500, lambda _: request("GET", "/checks?limit=1000", key), reads_bytes=1000)


async def send_unfinished(attackers: Attackers) -> None:
    whole = [request("POST", target, body=b"a" * BODY_BYTES) for target in ("/no/path", "/register", "/checks")]
    await attackers.hold(9000, lambda number: whole[number % len(whole)][:-1])
