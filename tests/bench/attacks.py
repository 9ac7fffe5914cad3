"""What an attack by a stranger costs a victim.

    python -m tests.bench.attacks [SITUATION ...] [--tree DIR] [--beside DIR] [--seconds N]

Each situation has a server of its own on loopback. The victim calls from 127.0.0.2, each time over
a new connection: it pings and asks for stored cards 50 times a second, for its checks 10 times and
for a new card once. The strangers call from 127.0.0.1, in a process of lower priority: elsewhere
they would take no CPU from this machine.

The demands are those of the page "Limits": 95 of 100 pings and stored cards within 0.1 s, of
answers to `GET /checks` within 0.5 s, of new cards within 2 s, and no bad answer. The exit status
is 1 if the first tree does not meet a demand. Half a minute for each situation and tree:

{situations}
"""

import argparse
import asyncio
import contextlib
import http.client
import inspect
import itertools
import multiprocessing
import os
import secrets
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.bench.running import (
    Server,
    parser_of,
    raise_descriptor_limit,
    serving,
    trees_of,
)
from tests.kit.client import ask, cards_key, checks_key, exchange, new_check

VICTIM = "127.0.0.2"
STRANGER = "127.0.0.1"
NICENESS = 15
LOADED_SECONDS = 2
REFUSED_SECONDS = 0.2
"""A stranger pauses so long after a 429 or 503, or when its connection was closed."""
TRICKLE_SECONDS = 0.5
CHECKS = 100
STORED = 5
SLOW_TITLES = (
    "مرحبا بالعالم هذا عنوان طويل قليلا",
    "हिन्दी में एक लंबा शीर्षक",
    "简体 中文 标题 设计 可靠的 后台 任务",
)
LIMITS = {"ping": 0.1, "stored card": 0.1, "GET /checks": 0.5, "new card": 2.0}
"""Seconds within which 95 of 100 answers must come, by what is asked."""
EVERY_SECONDS = {
    "ping": 0.02,
    "stored card": 0.02,
    "GET /checks": 0.1,
    "new card": 1.0,
}
LEAST_ASKED = 0.5
"""A smaller share of the intended requests is a bad answer too: the victim waited all the time."""


class Scene(NamedTuple):
    """What is on the server. All keys are free ones."""

    port: int
    checks_key: str
    """A stranger's, with as many checks as it may have."""
    cards_keys: list[str]
    """Eight of a stranger."""
    public_key: str
    """The victim's, for cards."""
    own_key: str
    """The victim's, for checks."""
    own_check: str


# The attacks.


async def nothing(scene: Scene) -> None:
    """no stranger is there"""


async def connections(scene: Scene) -> None:
    """2,000 connections of one address, each idle after its request"""
    await many(
        2000, partial(send_slowly, scene.port, request("GET", "/healthz"), b"")
    )


async def pipelining(scene: Scene) -> None:
    """100 connections send 16 KiB of requests at once, again and again"""
    one = request("GET", "/x")
    count = 16 * 1024 // len(one)
    await many(
        100,
        partial(ask_again, scene.port, lambda: one * count, together=count),
    )


async def tricklers(scene: Scene) -> None:
    """200 connections send a byte of a header or a body each half second"""
    header = request("GET", "/healthz")
    body = request("POST", "/register", body=bytes(1000))
    await asyncio.gather(
        many(100, partial(send_slowly, scene.port, b"", header)),
        many(
            100, partial(send_slowly, scene.port, body[:-1000], body[-1000:])
        ),
    )


async def listing(scene: Scene) -> None:
    """64 connections of one key list its 100 checks as fast as they can"""
    wanted = request("GET", "/checks?limit=1000", scene.checks_key)
    await many(64, partial(ask_again, scene.port, lambda: wanted))


async def unknown_keys(scene: Scene) -> None:
    """64 connections send keys that do not exist as fast as they can"""

    def wanted() -> bytes:
        key = f"sk_{secrets.token_urlsafe(24)}"
        if secrets.randbelow(2):
            return request("GET", "/checks", key)
        return request("GET", f"/og?title=Card&key={key}")

    await many(64, partial(ask_again, scene.port, wanted))


async def new_cards(scene: Scene) -> None:
    """48 new cards at once, again and again, and 8 free keys that keep 512 waiting"""
    pages = many(48, partial(draw_again, scene, scene.cards_keys[0]))
    floods = [
        many(64, partial(draw_again, scene, key)) for key in scene.cards_keys
    ]
    await asyncio.gather(pages, *floods)


async def public_key(scene: Scene) -> None:
    """16 connections keep the victim's public cards key at its limit"""
    await many(16, partial(draw_again, scene, scene.public_key))


USUAL = (
    nothing,
    connections,
    pipelining,
    tricklers,
    listing,
    unknown_keys,
    new_cards,
    public_key,
)
SITUATIONS = {attack.__name__: attack for attack in USUAL}


# What the strangers do, in a process of their own. `answers` counts what they get by status, and 0
# for a connection that the server closed.

answers: Counter[int] = Counter()
card_numbers = itertools.count()


def run_strangers(
    attack: Any, scene: Scene, seconds: float, found: Any
) -> None:
    """Attack for so long; `found` gets the answers."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    raise_descriptor_limit()
    with contextlib.suppress(TimeoutError):
        asyncio.run(asyncio.wait_for(last(attack(scene), seconds), seconds))
    found.put(answers)


async def last(attack: Any, seconds: float) -> None:
    await attack
    await asyncio.sleep(seconds)


async def many(count: int, client: Any) -> None:
    """So many clients, each of which comes back when its connection is closed."""

    async def come_again() -> None:
        while True:
            try:
                await client()
            except (OSError, EOFError):
                answers[0] += 1
                await asyncio.sleep(REFUSED_SECONDS)

    await asyncio.gather(*(come_again() for _ in range(count)))


async def draw_again(scene: Scene, key: str) -> None:
    def wanted() -> bytes:
        number = next(card_numbers)
        title = quote(f"{SLOW_TITLES[number % len(SLOW_TITLES)]} {number}")
        return request(
            "GET", f"/og?title={title}&description={title}&key={key}"
        )

    await ask_again(scene.port, wanted)


async def ask_again(port: int, wanted: Any, *, together: int = 1) -> None:
    """Ask over one connection until it is closed. `wanted` gives as many requests as `together`."""
    reader, writer = await asyncio.open_connection(STRANGER, port)
    with contextlib.closing(writer):
        while True:
            writer.write(wanted())
            for _ in range(together):
                status = await read_status(reader)
            if status in (429, 503):
                await asyncio.sleep(REFUSED_SECONDS)


async def send_slowly(port: int, begun: bytes, rest: bytes) -> None:
    """Send what is begun at once and the rest byte by byte, and stay until the server closes."""
    reader, writer = await asyncio.open_connection(STRANGER, port)
    with contextlib.closing(writer):
        writer.write(begun)
        for number in range(len(rest)):
            writer.write(rest[number : number + 1])
            await writer.drain()
            await asyncio.sleep(TRICKLE_SECONDS)
            if reader.at_eof():
                return
        await read_status(reader)
        await reader.read()


async def read_status(reader: asyncio.StreamReader) -> int:
    """The status of the next answer, whose body is read too."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length or 0))
    status = int(head.split()[1])
    answers[status] += 1
    return status


def request(
    method: str, target: str, key: str = "", body: bytes = b""
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: a"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines += [
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
    return "\r\n".join([*lines, "", ""]).encode() + body


# The victim.


class Times(threading.Thread):
    """Asks for a path again and again, and keeps how long each answer took."""

    def __init__(self, scene: Scene, what: str, seconds: float) -> None:
        super().__init__()
        self.scene = scene
        self.what = what
        self.ends = time.monotonic() + seconds
        self.wanted = seconds / EVERY_SECONDS[what]
        self.times: list[float] = []
        self.bad: Counter[int] = Counter()
        """Other answers than 200, by status, and 0 for none."""

    def run(self) -> None:
        while time.monotonic() < self.ends:
            began = time.monotonic()
            status = self.status()
            took = time.monotonic() - began
            self.times.append(took)
            if status != 200:
                self.bad[status] += 1
            time.sleep(max(0, EVERY_SECONDS[self.what] - took))

    def status(self) -> int:
        number = len(self.times)
        paths = {
            "ping": f"/ping/{self.scene.own_check}",
            "stored card": stored_card(self.scene.public_key, number % STORED),
            "new card": f"/og?title=New+{number}&key={self.scene.public_key}",
        }
        path = paths.get(self.what) or self.what.removeprefix("GET ")
        source = (VICTIM, 0)
        connection = http.client.HTTPConnection(
            STRANGER, self.scene.port, 10, source
        )
        with (
            contextlib.closing(connection),
            contextlib.suppress(OSError, http.client.HTTPException),
        ):
            return exchange(
                connection, "GET", path, key=self.scene.own_key
            ).status
        return 0

    def percentile(self, part: float) -> float:
        return sorted(self.times)[int((len(self.times) - 1) * part)]

    def is_met(self) -> bool:
        is_slow = self.percentile(0.95) > LIMITS[self.what]
        return not (
            self.bad or is_slow or len(self.times) < LEAST_ASKED * self.wanted
        )


def stored_card(key: str, number: int) -> str:
    return f"/og?title=Stored+{number}&key={key}"


# One situation on one tree.


def measure(
    attack: Any, tree: Path, seconds: float
) -> tuple[list[Times], Counter[int]]:
    """What the victim and the strangers were answered."""
    with serving(tree=tree) as server:
        time.sleep(LOADED_SECONDS)
        scene = scene_of(server)
        context = multiprocessing.get_context("spawn")
        found = context.SimpleQueue()
        strangers = context.Process(
            target=run_strangers, args=(attack, scene, seconds, found)
        )
        strangers.start()
        measured = [Times(scene, what, seconds) for what in LIMITS]
        for times in measured:
            times.start()
        for times in measured:
            times.join()
        answered = found.get()
        strangers.join()
    return measured, answered


def scene_of(server: Server) -> Scene:
    """Register, create the checks and draw what is stored."""
    victims_key = cards_key(server)
    for number in range(STORED):
        ask(server, "GET", stored_card(victims_key, number))
    own_key = checks_key(server)
    own_check = new_check(server, own_key)["id"]
    strangers_key = checks_key(server)
    for number in range(CHECKS):
        new_check(
            server, strangers_key, name=f"{'Nightly backup ' * 6}{number}"
        )
    keys = [cards_key(server) for _ in range(8)]
    return Scene(
        server.port, strangers_key, keys, victims_key, own_key, own_check
    )


def show(title: str, measured: list[Times], answered: Counter[int]) -> None:
    print(f"\n{title}\n{'':14}   asked    p50 ms    p95 ms    max ms")
    for times in measured:
        parts = (0.5, 0.95, 1)
        numbers = "".join(
            f"{times.percentile(part) * 1000:10,.1f}" for part in parts
        )
        judged = (
            "met"
            if times.is_met()
            else f"NOT MET, bad answers {dict(times.bad)}"
        )
        print(f"{times.what:14}{len(times.times):8,}{numbers}  {judged}")
    print(f"strangers were answered: {dict(answered)}", flush=True)


def main(arguments: argparse.Namespace) -> int:
    raise_descriptor_limit()
    status = 0
    for name in arguments.situations or SITUATIONS:
        for side, tree in trees_of(arguments).items():
            measured, answered = measure(
                SITUATIONS[name], tree, arguments.seconds
            )
            show(f"{name}, {side}: {told(name)}", measured, answered)
            if side == "now" and not all(times.is_met() for times in measured):
                status = 1
    return status


def told(name: str) -> str:
    return inspect.getdoc(SITUATIONS[name]) or ""


if __name__ == "__main__":
    listed = "\n".join(f"    {name:14}{told(name)}" for name in SITUATIONS)
    parser = parser_of(__doc__.format(situations=listed))
    parser.add_argument(
        "situations",
        metavar="SITUATION",
        nargs="*",
        choices=[*SITUATIONS, []],
        help="[all]",
    )
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        default=20,
        help="of an attack [20]",
    )
    sys.exit(main(parser.parse_args()))
