"""For benchmarks: webhook receivers at many addresses of 127.0.0.0/8, in a process of their own.

    python -m tests.bench.receivers HOSTS HANGING

Prints the one port of them all. The first HANGING of them take a post and never answer.
"""

import asyncio
import subprocess
import sys
from contextlib import contextmanager

from tests.bench.running import ROOT


@contextmanager
def receiving(hosts, hanging):
    """The port."""
    command = [sys.executable, "-m", __name__, str(hosts), str(hanging)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def address(number):
    return f"127.1.{number // 250}.{number % 250 + 1}"


async def receive(hosts, hanging):
    port = 0
    for number in range(hosts):
        serve = hang if number < hanging else answer
        server = await asyncio.start_server(
            serve, address(number), port, backlog=1000
        )
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.Event().wait()


async def answer(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    writer.close()


async def hang(reader, writer):
    await reader.read()
    writer.close()


if __name__ == "__main__":
    asyncio.run(receive(*map(int, sys.argv[1:])))
