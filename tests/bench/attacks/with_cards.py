"""Attacks with cards: dear to draw, dear to refuse, and crowding out those that are stored."""

import random
import unicodedata
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.demands import at_least
from tests.bench.attacks.trial import Trial

TEXT_BYTES = {"title": 1800, "description": 3900, "author": 700, "tag": 700, "domain": 700}
"""Percent-encoded, so that the request line stays under 8 KiB."""
SIGNS = 8100


def scripts(trial: Trial) -> None:
    """Cards that mix many scripts, from 12 and then 72 connections of one free key."""
    with trial.scene() as scene:
        scene.attack(partial(draw_mixed, keys=scene.cards_keys(1), clients=(12, 72)))


def scripts_of_many(trial: Trial) -> None:
    """The same from 72 connections of 28 free keys."""
    with trial.scene() as scene:
        scene.attack(partial(draw_mixed, keys=scene.cards_keys(28), clients=(72,)), seconds=40)


def percent(trial: Trial) -> None:
    """/og with 8,100 percent signs and no key, 54 times a second."""
    with trial.scene() as scene:
        scene.judge_refusals(scene.attack(partial(send_signs, signs=["%"], per_second=54)))


def percent_flood(trial: Trial) -> None:
    """The same as fast as 4 clients can, in turns with as many other signs of a query."""
    with trial.scene() as scene:
        scene.judge_refusals(scene.attack(partial(send_signs, signs=["%", "%41", "&", "+", "=", "a=&"], per_second=0)))


def store(trial: Trial) -> None:
    """88 cards of one free key, where 2 MiB of cards are stored; 20 cards of the victim were stored before."""
    with trial.scene("--store-mb", "2") as scene:
        (key,) = scene.cards_keys(1)
        # Its own new cards would crowd out its stored ones.
        scene.victim.leave_out("new card")
        targets = [scene.victim.stored_card(number) for number in range(20)]
        caller = scene.attacker()
        for target in targets:
            caller.created("GET", target)
        scene.attack(partial(draw_many, key=key))
        hits = sum(caller.ask("GET", target).cache == "HIT" for target in targets)
        trial.verdicts.append(at_least("of the victim's 20 cards at least {} are still stored", hits, 20))


async def draw_mixed(attackers: Attackers, keys: list[str], clients: tuple[int, ...]) -> None:
    """Half of a minute's cards from the first number of clients, and then without end from the last."""
    queries = mixed_cards()

    def one(number: int) -> bytes:
        return request("GET", f"/og?key={keys[number % len(keys)]}&{next(queries)}")

    await attackers.repeat(clients[0], one, most=60 if len(clients) > 1 else None)
    await attackers.repeat(clients[-1], one)


async def send_signs(attackers: Attackers, signs: list[str], per_second: float) -> None:
    targets = [f"/og?title={(sign * SIGNS)[:SIGNS]}" for sign in signs]
    await attackers.repeat(4, lambda number: request("GET", targets[number % len(targets)]), per_second=per_second)


async def draw_many(attackers: Attackers, key: str) -> None:
    def one(number: int) -> bytes:
        texts = f"title=Attack+{number}&description={'+'.join(['lorem', 'ipsum'] * 20)}&template=article"
        return request("GET", f"/og?{texts}&key={key}")

    await attackers.repeat(4, one, most=88)


def mixed_cards(seed: int = 14) -> Iterator[str]:
    """Queries without end of which each text mixes letters from all over Unicode: each opens fonts of its own."""
    chance = random.Random(seed)
    blocks = letters_by_block()
    while True:
        yield "&".join(f"{name}={mixed_text(chance, blocks, size)}" for name, size in TEXT_BYTES.items())


def mixed_text(chance: random.Random, blocks: list[list[str]], size: int) -> str:
    text = ""
    while len(text) <= size - 12:
        text += quote(chance.choice(chance.choice(blocks)))
    return text


def letters_by_block() -> list[list[str]]:
    """The letters, digits and symbols that Unicode has beyond ASCII, by 64 code points."""
    blocks: dict[int, list[str]] = {}
    for character in map(chr, range(0x80, 0x1F800)):
        if unicodedata.category(character)[0] in "LNS":
            blocks.setdefault(ord(character) // 64, []).append(character)
    return list(blocks.values())
