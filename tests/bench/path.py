"""How far it is from the socket to the answer: the calls of the server's own code for one request.

    python -m tests.bench.path [--tree DIR] [--beside DIR] [--calls]

For a ping, a PATCH, a stored card (HIT) and a drawn card (MISS), sent alone over a kept connection to a quiet server
that has answered many like it: how many functions of `cardbeat/` are called, in how many files, how often the next
call lies in another file or runs in another thread than the one before, and how many calls there were until the
client had its answer. Medians of five requests, each for another of 30 checks or cards with other headers. A
comprehension is not a call. --calls lists each call of one request.

Only the start as `python -m cardbeat` is relied on; a profile function in every thread of that process counts.
"""

import argparse
import contextlib
import itertools
import json
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.bench.checks import Client, create_checks_key
from tests.bench.clients import header_blocks, read_answer
from tests.bench.running import Figures, Server, create_key, parser_of, serving, show_figures, trees_of
from tests.bench.stock import targets_of

REPETITIONS = 5
THINGS = 30
BEFORE_SECONDS = 0.02
"""So soon the server has nothing more to do for the request before, and has forgotten nothing."""
AFTER_SECONDS = 0.1
RUNNER = """
import json, runpy, socket, sys, threading, time

folder, port = sys.argv.pop(1), int(sys.argv.pop(1))
events = []

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(folder):
        events.append((time.perf_counter_ns(), threading.get_ident(), code.co_filename[len(folder):], code.co_qualname))

def hand_over(client):
    while client.recv(1):
        taken = events[:]
        del events[:len(taken)]
        client.sendall(json.dumps(taken).encode() + b"\\n")

client = socket.create_connection(("127.0.0.1", port))
threading.Thread(target=hand_over, args=(client,), daemon=True).start()
threading.setprofile(note)
sys.setprofile(note)
runpy.run_module("cardbeat", run_name="__main__", alter_sys=True)
"""
"""Runs cardbeat, and for each byte from the bench's socket sends what was called since the last one."""


class Call(NamedTuple):
    nanoseconds: int
    """By the monotonic clock, which all processes of a machine share."""
    thread: int
    file: str
    function: str


class Trace(NamedTuple):
    """All calls that one request led to, in the order of time, and when its answer was there, in nanoseconds."""

    calls: list[Call]
    answered: int


Request = Callable[[int], bytes]
"""One request of a kind, by its number from 0: for another check or card than the one before, with other headers."""


def main(arguments: argparse.Namespace) -> None:
    traces = {name: traces_of(tree) for name, tree in trees_of(arguments).items()}
    show_figures({name: figures_of(found) for name, found in traces.items()})
    for name, found in traces.items():
        for request, repetitions in found.items():
            print(f"\n{name}, {request}: {', '.join(sorted({call.file for call in repetitions[-1].calls}))}")
            if arguments.calls:
                show_calls(repetitions[-1])


def traces_of(tree: Path) -> dict[str, list[Trace]]:
    with traced(tree) as (server, take):
        requests = requests_of(tree, server)
        with server.connect() as client, client.makefile("rb") as answers:

            def ask(data: bytes) -> int:
                client.sendall(data)
                status, _, body = read_answer(answers)
                answered = time.perf_counter_ns()
                if status != 200:
                    raise SystemExit(f"{data!r} is answered with {status} {body!r}")
                return answered

            found = {}
            for name, request in requests.items():
                numbers = itertools.count()
                for number in itertools.islice(numbers, 2 * THINGS):
                    ask(request(number))
                found[name] = [trace(take, ask, request, numbers) for _ in range(REPETITIONS)]
            return found


def requests_of(tree: Path, server: Server) -> dict[str, Request]:
    """Of pings and changes, and of stored cards, there are `THINGS` to ask for."""
    cards_key = create_key(tree, server.data, "--tier", "unlimited")
    checks_key = create_checks_key(tree, server.data)
    blocks = header_blocks()
    ids = [create_check(server, checks_key) for _ in range(THINGS)]
    cards = targets_of([cards_key], 10 * THINGS)
    stored, new = cards[:THINGS], cards[THINGS:]

    def lines(number: int) -> str:
        # 64 of each kind stand together: the next one is of the next kind.
        return blocks[number * 65 % len(blocks)]

    def get(target: str, number: int) -> bytes:
        return f"GET {target} HTTP/1.1\r\n{lines(number)}\r\n".encode()

    def patch(number: int) -> bytes:
        body = json.dumps({"name": f"job {number}"})
        head = f"PATCH /checks/{ids[number % THINGS]} HTTP/1.1\r\n{lines(number)}Authorization: Bearer {checks_key}"
        return f"{head}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    return {
        "ping": lambda number: get(f"/ping/{ids[number % THINGS]}", number),
        "PATCH": patch,
        "HIT": lambda number: get(stored[number % THINGS], number),
        "MISS": lambda number: get(new[number], number),
    }


def create_check(server: Server, key: str) -> str:
    _, answer = Client(server, key).ask("POST", "/checks", {"name": "job", "period_seconds": 3600, "grace_seconds": 60})
    return answer["check"]["id"]


@contextlib.contextmanager
def traced(tree: Path) -> Iterator[tuple[Server, Callable[[], list[Call]]]]:
    """A server that counts, and a function that takes what was called since the last time."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        folder = f"{tree / 'cardbeat'}{os.sep}"
        command = ("-c", RUNNER, folder, str(listener.getsockname()[1]))
        server = stack.enter_context(serving(tree=tree, command=command))
        control = stack.enter_context(listener.accept()[0])
        lines = stack.enter_context(control.makefile("rb"))

        def take() -> list[Call]:
            control.sendall(b".")
            return [Call(*event) for event in json.loads(lines.readline())]

        yield server, take


def trace(
    take: Callable[[], list[Call]], ask: Callable[[bytes], int], request: Request, numbers: Iterator[int]
) -> Trace:
    """One request right after others like it, because what is remembered of a key is soon forgotten."""
    for number in itertools.islice(numbers, 10):
        ask(request(number))
    time.sleep(BEFORE_SECONDS)
    take()
    answered = ask(request(next(numbers)))
    time.sleep(AFTER_SECONDS)
    return Trace(take(), answered)


def figures_of(traces: dict[str, list[Trace]]) -> Figures:
    figures = {}
    for request, repetitions in traces.items():
        counted = [count(trace) for trace in repetitions]
        figures |= {f"{request}: {what}": statistics.median(each[what] for each in counted) for what in counted[0]}
    return figures


def count(trace: Trace) -> Figures:
    calls = [call for call in trace.calls if not is_comprehension(call)]
    return {
        "calls": len(calls),
        "files": len({call.file for call in calls}),
        "switches to another file": changes([call.file for call in calls]),
        "switches to another thread": changes([call.thread for call in calls]),
        "calls until the answer": sum(call.nanoseconds <= trace.answered for call in calls),
    }


def is_comprehension(call: Call) -> bool:
    return call.function.endswith(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))


def changes(values: list[object]) -> int:
    """How often a value differs from the one before it."""
    return sum(before != after for before, after in itertools.pairwise(values))


def show_calls(trace: Trace) -> None:
    threads = list(dict.fromkeys(call.thread for call in trace.calls))
    for call in trace.calls:
        late = "" if call.nanoseconds <= trace.answered else "  (after the answer)"
        print(f"  {'    ' * threads.index(call.thread)}{call.file} {call.function}{late}")


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("--calls", action="store_true", help="list the calls of one request of each kind")
    main(parser.parse_args())
