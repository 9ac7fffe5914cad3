"""The request reader under damaged streams, until it errs or the time is over.

    python -m tests.bench.fuzz [SECONDS] [SEED]

Each stream is read whole and in pieces, and whole once more beside the heads of those before: no exception but a
refusal, no stream that takes long, and the same requests every time. Ten minutes without an argument.
"""

import argparse
import itertools
import random
import time

from tests.bench.running import parser_of
from tests.http.fuzz import mangled, new_heads, read_all


def main(arguments: argparse.Namespace) -> None:
    chance = random.Random(arguments.seed)
    heads = new_heads()
    streams = requests = refused = 0
    slowest = 0.0
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        stream = mangled(chance)
        cuts = [0, *sorted(chance.choices(range(len(stream) + 1), k=chance.randint(1, 9))), len(stream)]
        started = time.thread_time()
        whole = read_all([stream])
        slowest = max(slowest, time.thread_time() - started)
        pieces = read_all([stream[a:b] for a, b in itertools.pairwise(cuts)])
        again = read_all([stream], heads)
        if not whole[0] == pieces[0] == again[0] or not bool(whole[1]) == bool(pieces[1]) == bool(again[1]):
            raise SystemExit(f"read in other ways whole, in pieces {cuts} or once more: {stream!r}")
        streams += 1
        requests += len(whole[0])
        refused += bool(whole[1])
    print(f"{streams} streams, {requests} requests read, {refused} streams refused, slowest {slowest * 1000:.2f} ms")


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("seconds", metavar="SECONDS", nargs="?", type=float, default=600, help="[600]")
    parser.add_argument("seed", metavar="SEED", nargs="?", type=int, default=1, help="of the streams [1]")
    main(parser.parse_args())
