"""Clients that attack: in a process of their own, of lower priority, all from one address, and for a limited time."""

import asyncio
import contextlib
import itertools
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

IP_BIND_ADDRESS_NO_PORT = getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24)
"""Lets the kernel choose the port when it knows the other side, so that ports don't run out."""
REFUSED_PAUSE_SECONDS = 1
"""After a 429, a 503 or none at all, as the shortest `Retry-After` has it. Other refusals are asked for at once."""
HOLD_SECONDS = 10
NICENESS = 15
"""Attackers elsewhere would take no CPU from the server and the victim."""

Request = Callable[[int], bytes]
"""The bytes of a request by its number, from 0."""
Assault = Callable[["Attackers"], Awaitable[None]]
"""What attackers do; it need not end by itself. A function of a module, or a partial one, to be sent to a process."""


@dataclass
class Attackers:
    """`statuses` counts the answers, with 0 for none; `notes` takes figures that an assault finds by itself.

    Connections come from `address`, or in turn from `addresses` if an assault sets them.
    """

    port: int
    address: str
    addresses: Iterator[str] | None = None
    statuses: Counter[int] = field(default_factory=Counter)
    sent_bytes: int = 0
    notes: dict[str, float] = field(default_factory=dict)

    async def repeat(
        self,
        clients: int,
        request: Request,
        *,
        most: int | None = None,
        per_second: float = 0,
        pause: float = REFUSED_PAUSE_SECONDS,
    ) -> None:
        """Many clients over kept connections: `most` requests, or without end, as fast as they can or at a rate.

        `pause` is what each waits after a 429 or a 503, in seconds.
        """
        numbers = iter(range(most)) if most is not None else itertools.count()
        started = asyncio.get_running_loop().time()

        async def client() -> None:
            connection = Connection(self)
            for number in numbers:
                if per_second:
                    await asyncio.sleep(started + number / per_second - asyncio.get_running_loop().time())
                if await connection.ask(request(number)) in (429, 503):
                    await asyncio.sleep(pause)

        await asyncio.gather(*(client() for _ in range(clients)))

    async def pipeline(self, clients: int, data: bytes) -> None:
        """Clients that send many requests at once, and again when half of the answers have come."""

        async def client() -> None:
            while True:
                with contextlib.suppress(OSError):
                    await self._pipeline_one(data)
                self.statuses[0] += 1
                await asyncio.sleep(REFUSED_PAUSE_SECONDS)

        await asyncio.gather(*(client() for _ in range(clients)))

    async def _pipeline_one(self, data: bytes) -> None:
        loop, wanted, answered = asyncio.get_running_loop(), data.count(b"\r\n\r\n"), 0
        with self.new_socket() as client:
            await loop.sock_connect(client, ("127.0.0.1", self.port))
            while True:
                await loop.sock_sendall(client, data)
                self.sent_bytes += len(data)
                while answered < wanted // 2:
                    answers = await loop.sock_recv(client, 65536)
                    if not answers:
                        return
                    answered += answers.count(b"HTTP/1.1 ")
                self.statuses[404] += answered
                answered -= wanted

    async def hold(self, clients: int, request: Request, *, reads_bytes: int = 0) -> None:
        """Connections that send their request and are in no hurry.

        Once a second each reads so many bytes, or 64 KiB if it is 0, from a small buffer. Each client comes at most
        once in `HOLD_SECONDS`, over which the clients are spread evenly.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()

        async def client(number: int) -> None:
            turn = started + HOLD_SECONDS * number / clients
            while True:
                await asyncio.sleep(turn - loop.time())
                turn = max(turn, loop.time()) + HOLD_SECONDS
                with contextlib.suppress(OSError):
                    await self._hold_one(request(number), reads_bytes)

        await asyncio.gather(*(client(number) for number in range(clients)))

    async def _hold_one(self, data: bytes, reads_bytes: int) -> None:
        loop = asyncio.get_running_loop()
        with self.new_socket() as client:
            if reads_bytes:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await loop.sock_connect(client, ("127.0.0.1", self.port))
            await loop.sock_sendall(client, data)
            self.sent_bytes += len(data)
            answer = await loop.sock_recv(client, reads_bytes or 65536)
            self.statuses[int(answer[9:12] or 0)] += 1
            while await loop.sock_recv(client, reads_bytes or 65536):
                await asyncio.sleep(1)

    def new_socket(self) -> socket.socket:
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        client.bind((next(self.addresses) if self.addresses else self.address, 0))
        return client


class Connection:
    """Asks over one connection, and opens another when it is closed."""

    def __init__(self, attackers: Attackers) -> None:
        self._attackers = attackers
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, data: bytes) -> int:
        """The status of the answer, 0 for none."""
        try:
            status = await self._ask(data)
        except (OSError, EOFError):
            status = 0
            self.close()
            await asyncio.sleep(REFUSED_PAUSE_SECONDS)
        self._attackers.statuses[status] += 1
        return status

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()
        self._streams = None

    async def _ask(self, data: bytes) -> int:
        reader, writer = self._streams = self._streams or await self._open()
        writer.write(data)
        self._attackers.sent_bytes += len(data)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        if b"\r\nconnection: close" in head:
            self.close()
        return int(head.split()[1])

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        client = self._attackers.new_socket()
        try:
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", self._attackers.port))
        except BaseException:
            client.close()
            raise
        return await asyncio.open_connection(sock=client, limit=1 << 20)


def attack(port: int, address: str, seconds: float, assault: Assault) -> Attackers:
    """To be called in a process of its own: what the assault did in these seconds, after all of them."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    raise_descriptor_limit()
    attackers = Attackers(port, address)
    asyncio.run(_bounded(assault(attackers), seconds))
    return attackers


def compute(seconds: float) -> None:
    """To be called in a process of its own: use the CPU as attackers do, for so long, and ask for nothing."""
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def _bounded(work: Awaitable[None], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await work
            await asyncio.sleep(seconds)


def raise_descriptor_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def request(method: str, target: str, key: str = "", body: bytes = b"") -> bytes:
    """A request as short as can be."""
    lines = [f"{method} {target} HTTP/1.1", "Host: a"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body
