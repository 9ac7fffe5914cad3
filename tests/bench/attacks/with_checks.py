"""Attacks with checks: what their fields hold, and how often they are read."""

import json
from functools import partial

from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.callers import Caller
from tests.bench.attacks.trial import Trial

HAN_HOST = "".join(chr(0x4E00 + 7 * number) for number in range(1990))
"""Of different characters: how long the codec `idna` takes grows with the square of their number."""
EMOJI = "😀"
URL_LENGTH = 2000


def idna(trial: Trial) -> None:
    """64 clients create and change checks whose webhook's host has 1,990 Han characters, 6 KB; one free key."""
    with trial.scene() as scene:
        (key,) = scene.checks_keys(1)
        check_id = create(scene.attacker(key))
        scene.judge_refusals(scene.attack(partial(send_hosts, key=key, check_id=check_id, clients=64)))


def idna_queue(trial: Trial) -> None:
    """The same from 900 clients at once, while the server may open 1,024 descriptors."""
    with trial.scene(descriptors=1024) as scene:
        (key,) = scene.checks_keys(1)
        check_id = create(scene.attacker(key))
        scene.judge_refusals(scene.attack(partial(send_hosts, key=key, check_id=check_id, clients=900)))


def pages(trial: Trial) -> None:
    """64 clients of one free key ask for all of its 100 checks, whose names and URLs are as long as can be."""
    with trial.scene() as scene:
        (key,) = scene.checks_keys(1)
        fill_with_longest(scene.attacker(key), 100)
        scene.attack(partial(ask_for_pages, key=key))


async def send_hosts(attackers: Attackers, key: str, check_id: str, clients: int) -> None:
    def one(number: int) -> bytes:
        url = f"http://{HAN_HOST[: -len(str(number))]}{number}/"
        if number % 2:
            return request("PATCH", f"/checks/{check_id}", key, body({"webhook_url": url}))
        return request("POST", "/checks", key, check_body(url))

    await attackers.repeat(clients, one)


async def ask_for_pages(attackers: Attackers, key: str) -> None:
    await attackers.repeat(64, lambda _: request("GET", "/checks?limit=1000", key))


def body(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def check_body(webhook_url: str, *, period_seconds: int = 86400, name: str = "job") -> bytes:
    fields = {"name": name, "period_seconds": period_seconds, "grace_seconds": 0, "webhook_url": webhook_url}
    return body(fields)


def create(caller: Caller, webhook_url: str | None = None, name: str = "job", period_seconds: int = 86400) -> str:
    """The id of a new check."""
    fields = {"name": name, "period_seconds": period_seconds, "grace_seconds": 0, "webhook_url": webhook_url}
    return caller.created("POST", "/checks", fields).member("check")["id"]


def longest_url(caller: Caller, start: str) -> str:
    """A URL of as many emoji as the server takes: a limit of characters lets in more bytes than one of bytes."""
    by_characters = start + EMOJI * (URL_LENGTH - len(start))
    check = {"name": "probe", "period_seconds": 86400, "grace_seconds": 0, "webhook_url": by_characters}
    answer = caller.ask("POST", "/checks", check)
    if answer.status != 201:
        return start + EMOJI * ((URL_LENGTH - len(start)) // len(EMOJI.encode()))
    caller.created("DELETE", f"/checks/{answer.member('check')['id']}")
    return by_characters


def fill_with_longest(
    caller: Caller, count: int, start: str = "http://127.3.0.1/", period_seconds: int = 86400
) -> list[str]:
    """The ids of so many checks with the longest names and URLs."""
    url = longest_url(caller, start)
    return [create(caller, url, EMOJI * 100, period_seconds) for _ in range(count)]
