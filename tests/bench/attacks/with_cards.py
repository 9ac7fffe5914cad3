"""Attacks with cards: dear to draw, dear to refuse, and crowding out those that are stored."""

import itertools
import random
import unicodedata
from collections.abc import Iterator
from functools import partial
from urllib.parse import quote

from tests.bench.attacks.attackers import Attackers, request
from tests.bench.attacks.callers import Activity, Caller
from tests.bench.attacks.demands import at_least, at_most
from tests.bench.attacks.trial import Trial
from tests.bench.attacks.victim import CARD, register

TEXT_BYTES = {"title": 1800, "description": 3900, "author": 700, "tag": 700, "domain": 700}
"""Percent-encoded, so that the request line stays under 8 KiB."""
SIGNS = 8100
ESCAPES = 2600
"""Of three characters each."""


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


def shared_key(trial: Trial) -> None:
    """New cards without end with the victim's own cards key, as read in its pages, where 2 MiB of cards are stored."""
    with trial.scene("--store-mb", "2") as scene:
        victim = scene.victim
        victim.leave_out("new card")
        own = Caller(scene.server.port)

        def card(number: int) -> str:
            return f"/og?title=Own+card+{number}&{CARD}&key={victim.cards_key}"

        # As many as a site's owner publishes, and not as many as the key may draw.
        victim.activities.append(Activity("new card", 3, lambda n: own.ask("GET", card(n)).status == 200))
        targets = [card(1000 + number) for number in range(20)]
        for target in targets:
            own.created("GET", target)
        scene.attack(partial(draw_many, key=victim.cards_key, most=None, clients=12), seconds=45)
        hits = sum(own.ask("GET", target).cache == "HIT" for target in targets)
        trial.verdicts.append(at_least("of the victim's 20 cards at least {} are still stored", hits, 20))


def refused_cards(trial: Trial) -> None:
    """700 connections of 70 free keys ask for dear cards, without a pause after a refusal."""
    with trial.scene("--register-per-minute", "1000") as scene:
        first = Caller(scene.server.port)
        keys = iter([register(first) for _ in range(60)])
        new = f"/og?title=First+card&{CARD}&key="
        ask_first = Activity("first card", 1, lambda _: first.ask("GET", new + next(keys)).status == 200)
        scene.victim.activities.append(ask_first)
        scene.attack(partial(ask_too_much, keys=scene.cards_keys(70)))
        worst = trial.beside["first card"].percentile(1)
        trial.verdicts.append(at_most("first card of a new key within {} s", worst, 3))


def refused_queries(trial: Trial) -> None:
    """One free key over its limit asks for cards with 8 KB of %41, from 16 connections without a pause."""
    with trial.scene() as scene:
        scene.judge_refusals(scene.attack(partial(ask_long, key=scene.cards_keys(1)[0])))


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


async def ask_too_much(attackers: Attackers, keys: list[str]) -> None:
    """The texts are made before, so that most of the time is spent on asking."""
    queries = list(itertools.islice(mixed_cards(), 2 * len(keys)))

    def one(number: int) -> bytes:
        return request("GET", f"/og?v={number}&key={keys[number % len(keys)]}&{queries[number % len(queries)]}")

    await attackers.repeat(10 * len(keys), one, pause=0)


async def ask_long(attackers: Attackers, key: str) -> None:
    """With `template` wrong in every other one."""
    long = "%41" * ESCAPES

    def one(number: int) -> bytes:
        wrong = "&template=x" if number % 2 else ""
        return request("GET", f"/og?title={number}{long}{wrong}&key={key}")

    await attackers.repeat(16, one, pause=0)


async def draw_many(attackers: Attackers, key: str, most: int | None = 88, clients: int = 4) -> None:
    def one(number: int) -> bytes:
        texts = f"title=Attack+{number}&description={'+'.join(['lorem', 'ipsum'] * 20)}&template=article"
        return request("GET", f"/og?{texts}&key={key}")

    await attackers.repeat(clients, one, most=most)


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
