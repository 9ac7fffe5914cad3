"""Attacks with alerts: what they store, where they go, and whom they hold up."""

import asyncio
import contextlib
import itertools
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.demands import at_least, at_most
from tests.bench.attacks.trial import Scene, Trial
from tests.bench.attacks.with_cards import draw_mixed
from tests.bench.attacks.with_checks import check_body, create, fill_with_longest

KEYS = 28
FREE_CHECKS = 100
VICTIM_SECONDS = 3

Host = Callable[[Scene, int], str]
"""Host and port of a webhook by its number."""


def tests(trial: Trial) -> None:
    """100 checks with URLs of emoji and silent receivers, and as many test alerts as 16 clients can; one free key."""
    with trial.scene() as scene:
        (key,) = scene.checks_keys(1)
        ids = fill_with_longest(scene.attacker(key), FREE_CHECKS, f"http://127.3.0.1:{scene.receivers.port}/silent/")
        scene.attack(partial(test_all, tests=[(check_id, key) for check_id in ids]), seconds=32)


def small_disk(trial: Trial) -> None:
    """The same on a disk of 128 MiB, which must be root's to mount; then the attacker revokes the key."""
    with disk(128) as folder, trial.scene(data=folder / "data") as scene:
        (key,) = scene.checks_keys(1)
        ids = fill_with_longest(scene.attacker(key), FREE_CHECKS, f"http://127.3.0.1:{scene.receivers.port}/silent/")
        scene.attack(partial(test_all, tests=[(check_id, key) for check_id in ids]), seconds=32)
        revoked = scene.attacker(key).ask("DELETE", "/key").status == 204
        trial.verdicts.append(at_least("keys revoked at least {}", revoked, 1))


def silent(trial: Trial) -> None:
    """28 free keys of 100 checks that are overdue a second later, each with a host of its own.

    Half of the hosts accept and never answer, half accept no connection.
    """
    with trial.scene() as scene:
        scene.attack(partial(create_all, hooks=hooks(scene, KEYS, silent_host)), seconds=40)


def chatty(trial: Trial) -> None:
    """The same, but all hosts answer, with thousands of informational answers."""
    with trial.scene() as scene:
        every = hooks(scene, KEYS, lambda scene, number: host_at(number, scene.receivers.port), path="chatty")
        scene.attack(partial(create_all, hooks=every), seconds=30)


def toggling(trial: Trial) -> None:
    """4,000 clients let 1,000 checks of 10 free keys fail and ping them in turn, each time with an alert.

    Their receiver refuses at once.
    """
    with trial.scene() as scene:
        url = f"http://127.5.0.1:{scene.receivers.unreachable_port}/"
        keys = scene.checks_keys(10)
        ids = [create(scene.attacker(key), url) for key in keys for _ in range(FREE_CHECKS)]
        scene.attack(partial(toggle, ids=ids))


def toggling_and_cards(trial: Trial) -> None:
    """1,500 pings and failures a second, each with an alert to a silent receiver, and cards that mix many scripts.

    From 30 addresses and with 28 free keys of each kind.
    """
    with trial.scene("--register-per-minute", "100") as scene:
        ids = [create(scene.attacker(key), url) for key, url in hooks(scene, KEYS, silent_host)[: 30 * KEYS]]
        scene.attack(partial(toggle_and_draw, ids=ids, keys=scene.cards_keys(KEYS)))


def recovering(trial: Trial) -> None:
    """3,000 checks of 30 free keys fail, and recover while their alerts go out to receivers that answer at once."""
    with trial.scene("--register-per-minute", "100") as scene:
        every = hooks(scene, 30, lambda scene, number: host_at(number % 30, scene.receivers.port), path="x")
        ids = [create(scene.attacker(key), url) for key, url in every]
        scene.attack(partial(fail_and_recover, ids=ids))


def slow_victim(trial: Trial) -> None:
    """60 free keys of 100 checks with silent receivers, beside a victim whose receiver takes 3 s for an alert."""
    with trial.scene("--register-per-minute", "100", victim_seconds=VICTIM_SECONDS) as scene:
        every = hooks(scene, 60, silent_host)
        scene.attack(partial(create_all, hooks=every), seconds=60)


def one_address(trial: Trial) -> None:
    """560 overdue checks of 28 free keys, whose names are all different and all of one address, which is silent."""
    with trial.scene() as scene:
        every = hooks(scene, KEYS, lambda scene, number: f"n{number}.127-9-9-9.test:{scene.receivers.port}")
        scene.attack(partial(create_all, hooks=every[::5]), seconds=25)


def resolver(trial: Trial) -> None:
    """2,800 overdue checks of 28 free keys, whose names' look-ups hang, beside a victim whose receiver has a name.

    It lasts longer than a look-up hangs, so that they are begun again.
    """
    with trial.scene(victim="victim.127-0-0-1.test") as scene:
        every = hooks(scene, KEYS, lambda _, number: f"n{number}.silent.test")
        scene.attack(partial(create_all, hooks=every), seconds=40)


def amplify(trial: Trial) -> None:
    """As many test alerts as 16 clients can, for 100 checks with the longest names and URLs; one free key."""
    with trial.scene() as scene:
        (key,) = scene.checks_keys(1)
        ids = fill_with_longest(scene.attacker(key), FREE_CHECKS, f"http://127.4.0.1:{scene.receivers.port}/")
        attackers = scene.attack(partial(test_all, tests=[(check_id, key) for check_id in ids]))
        counts = scene.receivers.counts()
        one = counts.taken_bytes / max(counts.taken, 1)
        fold = one / (attackers.sent_bytes / attackers.statuses.total())
        trial.figures |= {"KiB of one alert at its receiver": one / 1024, "alerts at the receiver": counts.taken}
        trial.verdicts += [
            at_most("an alert at most {} times the request for it", fold, 150),
            at_most("alerts for one key's tests at most {}", counts.taken, 30),
        ]


def reflector(trial: Trial) -> None:
    """Pings to the checks of ten free keys, 100 each with the longest names and URLs, to flood one address."""
    with trial.scene() as scene:
        url = f"http://127.4.0.1:{scene.receivers.port}/"
        callers = [scene.attacker(key) for key in scene.checks_keys(10)]
        ids = [one for caller in callers for one in fill_with_longest(caller, FREE_CHECKS, url, period_seconds=1)]
        first = scene.attack(partial(ping_all, ids=ids), seconds=60)
        _, taken, taken_bytes = scene.receivers.counts()
        later = scene.only_attack(partial(ping_all, ids=ids), seconds=60)
        _, posts, more_bytes = scene.receivers.counts()
        posts, more_bytes, sent = posts - taken, more_bytes - taken_bytes, later.sent_bytes
        trial.figures |= {
            "posts at the address, first minutes": taken,
            "MiB of them": taken_bytes / (1 << 20),
            "KiB of pings, first minute": first.sent_bytes / 1024,
            "posts at the address, last minute": posts,
            "KiB of them": more_bytes / 1024,
            "KiB of pings, last minute": sent / 1024,
        }
        trial.verdicts += [
            at_most("posts to one address at most {} in the first minutes", taken, 700),
            at_most("then at most {} in a minute", posts, 20),
            at_most("bytes of posts then at most {} times those of the pings", more_bytes / sent, 1),
        ]


async def ping_all(attackers: Attackers, ids: list[str]) -> None:
    """Pings to all of these checks every 5 s, 50 in one write, without waiting for an answer before the next."""
    batches = [ids[start : start + 50] for start in range(0, len(ids), 50)]
    requests = [b"".join(request("GET", f"/ping/{check_id}") for check_id in batch) for batch in batches]
    loop = asyncio.get_running_loop()
    with attackers.new_socket() as client:
        await loop.sock_connect(client, ("127.0.0.1", attackers.port))
        while True:
            for data in requests:
                await loop.sock_sendall(client, data)
                attackers.sent_bytes += len(data)
                attackers.statuses[200] += (await loop.sock_recv(client, 1 << 20)).count(b"HTTP/1.1 200")
                await asyncio.sleep(5 / len(requests))


async def fail_and_recover(attackers: Attackers, ids: list[str]) -> None:
    """All checks fail and are pinged, 10 in one write; from 30 addresses, which begin together every 10 s."""

    async def one(number: int) -> None:
        mine, loop = ids[number::30], asyncio.get_running_loop()
        with attackers.new_socket() as client:
            await loop.sock_connect(client, ("127.0.0.1", attackers.port))
            for signal in ("/fail", ""):
                requests = [request("GET", f"/ping/{check_id}{signal}") for check_id in mine]
                for start in range(0, len(mine), 10):
                    await loop.sock_sendall(client, b"".join(requests[start : start + 10]))
                    answered = 0
                    while answered < 10 and (answers := await loop.sock_recv(client, 1 << 16)):
                        answered += answers.count(b"HTTP/1.1 ")
                        attackers.statuses[200] += answers.count(b"HTTP/1.1 200")

    attackers.addresses = itertools.cycle(f"127.0.1.{number}" for number in range(1, 31))
    while True:
        await asyncio.gather(*(one(number) for number in range(30)))
        await asyncio.sleep(10)


async def toggle_and_draw(attackers: Attackers, ids: list[str], keys: list[str]) -> None:
    attackers.addresses = itertools.cycle(f"127.0.1.{number}" for number in range(1, 31))
    await asyncio.gather(toggle(attackers, ids, 120, per_second=1500), draw_mixed(attackers, keys, (90,)))


async def toggle(attackers: Attackers, ids: list[str], clients: int = 4000, per_second: float = 0) -> None:
    def one(number: int) -> bytes:
        turn, place = divmod(number, len(ids))
        return request("GET", f"/ping/{ids[place]}{'' if turn % 2 else '/fail'}")

    await attackers.repeat(clients, one, per_second=per_second)


async def test_all(attackers: Attackers, tests: list[tuple[str, str]]) -> None:
    """Test alerts without end, in turns over some checks, each with its key."""

    def one(number: int) -> bytes:
        check_id, key = tests[number % len(tests)]
        return request("POST", f"/checks/{check_id}/test-alert", key)

    await attackers.repeat(16, one)


async def create_all(attackers: Attackers, hooks: list[tuple[str, str]]) -> None:
    """A check for each key and webhook, overdue a second after its creation."""

    def one(number: int) -> bytes:
        key, url = hooks[number]
        return request("POST", "/checks", key, check_body(url, period_seconds=1))

    await attackers.repeat(16, one, most=len(hooks))


@contextlib.contextmanager
def disk(mib: int) -> Iterator[Path]:
    """A file system of a limited size."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def hooks(scene: Scene, keys: int, host: Host, path: str = "silent") -> list[tuple[str, str]]:
    """As many webhooks as free keys may have, each with its key; the keys alternate."""
    values = scene.checks_keys(keys)
    return [
        (values[number % keys], f"http://{host(scene, number)}/{path}/{number}") for number in range(keys * FREE_CHECKS)
    ]


def silent_host(scene: Scene, number: int) -> str:
    return host_at(number, scene.receivers.unreachable_port if number % 2 else scene.receivers.port)


def host_at(number: int, port: int) -> str:
    return f"127.2.{number // 250}.{number % 250 + 1}:{port}"
