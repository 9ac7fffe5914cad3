"""For benchmarks: webhook receivers at many addresses of 127.0.0.0/8, in a process of their own.

    python -m tests.bench.receivers HOSTS HANGING

Prints the one port of them all. The first HANGING of them take a post and never answer.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.running import ROOT, parser_of


@contextmanager
def receiving(hosts: int, hanging: int) -> Iterator[int]:
    """The port."""
    command = [
        sys.executable,
        "-m",
        "tests.bench.receivers",
        str(hosts),
        str(hanging),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def address(number: int) -> str:
    return f"127.1.{number // 250}.{number % 250 + 1}"


async def receive(hosts: int, hanging: int) -> None:
    port = 0
    for number in range(hosts):
        server = await asyncio.start_server(
            hang if number < hanging else answer,
            address(number),
            port,
            backlog=1000,
        )
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.Event().wait()


async def answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(
        head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    )
    await reader.readexactly(length)
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    writer.close()


async def hang(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await reader.read()
    writer.close()


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("hosts", metavar="HOSTS", type=int)
    parser.add_argument("hanging", metavar="HANGING", type=int)
    arguments = parser.parse_args()
    asyncio.run(receive(arguments.hosts, arguments.hanging))
