"""Attacks with connections: answers that are not read, bodies that never end, and requests that wait for their turn."""

import contextlib
from collections.abc import Iterator
from functools import partial

from cardbeat.host.descriptors import OTHERS, Shares
from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.callers import Activity, Caller
from tests.bench.attacks.trial import Scene, Trial
from tests.bench.attacks.victim import register
from tests.bench.attacks.with_checks import ask_for_pages, fill_with_longest

BODY_BYTES = 65536
"""As many as a body may have; the last one is never sent."""
RESERVED_DESCRIPTORS = OTHERS + Shares().couriers + Shares().lookups
"""Of those that a server may open, it keeps so many for other things than clients if it has 2,048 more."""
PIPELINED = request("GET", "/x") * (16 * 1024 // len(request("GET", "/x")))


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


def pipelines_few(trial: Trial) -> None:
    """100 clients send 16 KiB of `GET /x` at once, and again when half of it is answered."""
    pipelines(trial, 100, 10_000)


def pipelines_all(trial: Trial) -> None:
    """The same from as many clients as a server with 2,896 descriptors has places."""
    pipelines(trial, 2000, 2000)


def pipelines_most(trial: Trial) -> None:
    """The same from 10,000 clients, which is the most that a server has places for."""
    pipelines(trial, 10_000, 10_000)


def pipelines(trial: Trial, clients: int, places: int) -> None:
    with scene_with_health(trial, places) as scene:
        scene.attack(partial(send_pipelined, clients=clients))


def waiting(trial: Trial) -> None:
    """2,700 clients of 27 free keys ask for all checks of their key, at a server with 2,000 places."""
    wait_for_workers(trial, 27, 2000)


def waiting_most(trial: Trial) -> None:
    """13,500 clients of 135 free keys do so at a server with 10,000 places."""
    wait_for_workers(trial, 135, 10_000)


def wait_for_workers(trial: Trial, keys: int, places: int) -> None:
    with scene_with_health(trial, places) as scene:
        # An address gets 30 keys a minute.
        callers = [Caller(scene.server.port, address=f"127.0.0.{3 + number // 27}") for number in range(keys)]
        values = [register(caller, "mallory@example.com") for caller in callers]
        for value in values:
            fill_with_longest(scene.attacker(value), 100)
        scene.attack(partial(ask_for_pages, keys=values, clients=100 * keys))


@contextlib.contextmanager
def scene_with_health(trial: Trial, places: int) -> Iterator[Scene]:
    """A server that has places for so many clients, and a victim that asks for `/healthz` too."""
    with trial.scene(descriptors=places + RESERVED_DESCRIPTORS) as scene:
        someone = Caller(scene.server.port, kept=False)
        health = Activity("healthz", 0.1, lambda _: someone.ask("GET", "/healthz").status == 200)
        scene.victim.activities.append(health)
        yield scene


async def send_pipelined(attackers: Attackers, clients: int) -> None:
    await attackers.pipeline(clients, PIPELINED)


async def read_slowly(attackers: Attackers, key: str) -> None:
    await attackers.hold(1500, lambda _: request("GET", "/checks?limit=1000", key), reads_bytes=1000)


async def send_unfinished(attackers: Attackers) -> None:
    whole = [request("POST", target, body=b"a" * BODY_BYTES) for target in ("/no/path", "/register", "/checks")]
    await attackers.hold(9000, lambda number: whole[number % len(whole)][:-1])
