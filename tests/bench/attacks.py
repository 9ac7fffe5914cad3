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

import asyncio
import contextlib
import http.client
import inspect
import itertools
import multiprocessing
import os
import secrets
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import quote

from tests.bench.running import (
    arguments_of,
    raise_descriptor_limit,
    serving,
    trees_of,
)
from tests.kit.client import (
    ask,
    cards_key,
    checks_key,
    exchange,
    new_check,
)

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


async def nothing(_scene):
    """no stranger is there"""


async def connections(scene):
    """2,000 connections of one address, each idle after its request"""
    await many(
        2000, send_slowly, scene.port, request("GET /healthz"), b""
    )


async def pipelining(scene):
    """2,000 connections send 16 KiB of requests at once, again and again"""
    one = request("GET /x")
    count = 16 * 1024 // len(one)
    await many(2000, ask_again, scene.port, lambda: one * count, count)


async def tricklers(scene):
    """200 connections send a byte of a header or a body each half second"""
    head = request("GET /healthz")
    body = request("POST /register", length=1000)
    await asyncio.gather(
        many(100, send_slowly, scene.port, b"", head),
        many(100, send_slowly, scene.port, body, bytes(1000)),
    )


async def listing(scene):
    """64 connections of one key list its 100 checks as fast as they can"""
    wanted = request("GET /checks?limit=1000", scene.checks_key)
    await many(64, ask_again, scene.port, lambda: wanted)


async def unknown_keys(scene):
    """64 connections send keys that do not exist as fast as they can"""

    def wanted():
        key = f"sk_{secrets.token_urlsafe(24)}"
        if secrets.randbelow(2):
            return request("GET /checks", key)
        return request(f"GET /og?title=Card&key={key}")

    await many(64, ask_again, scene.port, wanted)


async def new_cards(scene):
    """48 new cards at once, again and again, and 8 free keys that keep 512 waiting"""
    floods = [many(48, draw_again, scene.port, scene.cards_keys[0])]
    for key in scene.cards_keys:
        floods.append(many(64, draw_again, scene.port, key))
    await asyncio.gather(*floods)


async def public_key(scene):
    """16 connections keep the victim's public cards key at its limit"""
    await many(16, draw_again, scene.port, scene.public_key)


SITUATIONS = {
    attack.__name__: attack
    for attack in (
        nothing,
        connections,
        pipelining,
        tricklers,
        listing,
        unknown_keys,
        new_cards,
        public_key,
    )
}


# What the strangers do, in a process of their own. `answers` counts what they get by status, and 0
# for a connection that the server closed.

answers = Counter()
card_numbers = itertools.count()


def run_strangers(name, scene, seconds, found):
    """Attack for so long; `found` gets the answers."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    raise_descriptor_limit()
    with contextlib.suppress(TimeoutError):
        asyncio.run(asyncio.wait_for(SITUATIONS[name](scene), seconds))
    found.put(answers)


async def many(count, client, *arguments):
    """So many clients, each of which comes back when its connection is closed."""

    async def come_again():
        while True:
            try:
                await client(*arguments)
            except (OSError, EOFError):
                answers[0] += 1
                await asyncio.sleep(REFUSED_SECONDS)

    await asyncio.gather(*(come_again() for _ in range(count)))


async def draw_again(port, key):
    def wanted():
        number = next(card_numbers)
        title = quote(
            f"{SLOW_TITLES[number % len(SLOW_TITLES)]} {number}"
        )
        return request(
            f"GET /og?title={title}&description={title}&key={key}"
        )

    await ask_again(port, wanted)


async def ask_again(port, wanted, together=1):
    """Ask over one connection until it is closed. `wanted` gives as many requests as `together`."""
    reader, writer = await asyncio.open_connection(STRANGER, port)
    with contextlib.closing(writer):
        while True:
            writer.write(wanted())
            for _ in range(together):
                status = await read_status(reader)
            if status in (429, 503):
                await asyncio.sleep(REFUSED_SECONDS)


async def send_slowly(port, begun, rest):
    """Send what is begun at once and the rest byte by byte, and stay until the server closes."""
    reader, writer = await asyncio.open_connection(STRANGER, port)
    with contextlib.closing(writer):
        writer.write(begun)
        for byte in rest:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(TRICKLE_SECONDS)
            if reader.at_eof():
                return
        await read_status(reader)
        await reader.read()


async def read_status(reader):
    """The status of the next answer, whose body is read too."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length or 0))
    status = int(head.split()[1])
    answers[status] += 1
    return status


def request(line, key="", length=0):
    """Its head."""
    lines = [f"{line} HTTP/1.1", "Host: a"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if length:
        lines.append("Content-Type: application/json")
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


# The victim.


class Demand(NamedTuple):
    what: str
    every_seconds: float
    most_seconds: float
    """Within which 95 of 100 answers must come."""
    path: str
    """With the names of a `Scene`'s fields, and `number` and `stored`, in braces."""


STORED_CARD = "/og?title=Stored+{stored}&key={public_key}"
DEMANDS = (
    Demand("ping", 0.02, 0.1, "/ping/{own_check}"),
    Demand("stored card", 0.02, 0.1, STORED_CARD),
    Demand("GET /checks", 0.1, 0.5, "/checks"),
    Demand("new card", 1, 2, "/og?title=New+{number}&key={public_key}"),
)


class Answers:
    """Of the victim's requests: how long each took, and the statuses but 200, 0 for no answer."""

    def __init__(self, demand):
        self.demand = demand
        self.times = []
        self.bad = Counter()

    def ask_for(self, scene, seconds):
        ends = time.monotonic() + seconds
        while (began := time.monotonic()) < ends:
            number = len(self.times)
            path = self.demand.path.format(
                **scene._asdict(), number=number, stored=number % STORED
            )
            status = status_of(scene, path)
            took = time.monotonic() - began
            self.times.append(took)
            if status != 200:
                self.bad[status] += 1
            time.sleep(max(0, self.demand.every_seconds - took))

    def show(self, seconds):
        """Whether the demand is met."""
        times = sorted(self.times)
        late = times[(len(times) - 1) * 95 // 100]
        is_met = (
            not self.bad
            and late <= self.demand.most_seconds
            and len(times) * self.demand.every_seconds
            >= seconds * LEAST_ASKED
        )
        print(
            f"{self.demand.what:14}{len(times):8,}"
            f"{times[len(times) // 2] * 1000:10.1f}{late * 1000:10.1f}{times[-1] * 1000:10.1f}",
            "met" if is_met else f"NOT MET, bad answers {dict(self.bad)}",
        )
        return is_met


def status_of(scene, path):
    source = (VICTIM, 0)
    connection = http.client.HTTPConnection(
        STRANGER, scene.port, 10, source
    )
    with (
        contextlib.closing(connection),
        contextlib.suppress(OSError, http.client.HTTPException),
    ):
        return exchange(connection, "GET", path, key=scene.own_key).status
    return 0


def scene_of(server):
    """Register, create the checks and draw what is stored."""
    public = cards_key(server)
    for number in range(STORED):
        path = STORED_CARD.format(stored=number, public_key=public)
        ask(server, "GET", path)
    own_key = checks_key(server)
    own_check = new_check(server, own_key)["id"]
    strangers_key = checks_key(server)
    for number in range(CHECKS):
        name = f"{'Nightly backup ' * 6}{number}"
        new_check(server, strangers_key, name=name)
    keys = [cards_key(server) for _ in range(8)]
    return Scene(
        server.port, strangers_key, keys, public, own_key, own_check
    )


def is_borne(name, side, tree, seconds):
    """Whether the victim is served as it should be during an attack."""
    context = multiprocessing.get_context("spawn")
    found = context.SimpleQueue()
    with serving(tree=tree) as server, ThreadPoolExecutor() as pool:
        time.sleep(LOADED_SECONDS)
        scene = scene_of(server)
        strangers = context.Process(
            target=run_strangers, args=(name, scene, seconds, found)
        )
        strangers.start()
        measured = [Answers(demand) for demand in DEMANDS]
        list(pool.map(lambda one: one.ask_for(scene, seconds), measured))
        answered = found.get()
        strangers.join()
    print(f"\n{name}, {side}: {inspect.getdoc(SITUATIONS[name])}")
    print(f"{'':14}   asked    p50 ms    p95 ms    max ms")
    met = [one.show(seconds) for one in measured]
    print(f"strangers were answered: {dict(answered)}", flush=True)
    return all(met)


def main():
    listed = ""
    for name, attack in SITUATIONS.items():
        listed += f"    {name:14}{inspect.getdoc(attack)}\n"
    arguments = arguments_of(
        __doc__.format(situations=listed),
        "situations",
        situations=[*SITUATIONS],
        seconds=20.0,
    )
    raise_descriptor_limit()
    failed = 0
    for name in arguments.situations:
        for side, tree in trees_of(arguments).items():
            if not is_borne(name, side, tree, arguments.seconds):
                failed |= side == "now"
    return failed


if __name__ == "__main__":
    sys.exit(main())
