"""Attacks by strangers, and how everyone else fares meanwhile.

    python -m tests.bench.attacks [ATTACK ...] [--tree DIR] [--beside DIR] [--seconds N] [--same-address]

Each attack has a server of its own, on loopback, and ends by itself. A victim is measured alone, and then beside the
attack: it pings over one kept and over new connections, asks for stored cards and for its checks ten times a second,
for a new card each half second, and waits for a test alert at its own receiver. Prints what was found, then for each
demand whether it is met, and ends with 1 if one is not met for the first tree.

The victim calls from 127.0.0.1; the attackers from 127.0.0.2, in a process of lower priority. The server's interpreter
is given a resolver that knows the names used here. About a minute for each attack. The attacks:

{attacks}
"""

import argparse
import inspect
import math
import sys
from collections.abc import Callable

from tests.bench.attacks import with_alerts, with_cards, with_checks, with_connections, with_keys, with_storage
from tests.bench.attacks.attackers import raise_descriptor_limit
from tests.bench.attacks.callers import Times
from tests.bench.attacks.demands import Verdict
from tests.bench.attacks.trial import Trial
from tests.bench.running import parser_of, trees_of

ATTACKS: dict[str, Callable[[Trial], None]] = {
    attack.__name__: attack
    for attack in (
        with_checks.idna,
        with_checks.idna_queue,
        with_alerts.tests,
        with_alerts.small_disk,
        with_alerts.silent,
        with_alerts.chatty,
        with_alerts.toggling,
        with_alerts.toggling_and_cards,
        with_alerts.recovering,
        with_alerts.slow_victim,
        with_alerts.one_address,
        with_alerts.resolver,
        with_alerts.amplify,
        with_alerts.reflector,
        with_cards.scripts,
        with_cards.scripts_of_many,
        with_cards.percent,
        with_cards.percent_flood,
        with_cards.store,
        with_cards.shared_key,
        with_cards.refused_cards,
        with_cards.refused_queries,
        with_connections.slow_readers,
        with_connections.bodies,
        with_connections.pipelines_few,
        with_connections.pipelines_all,
        with_connections.pipelines_most,
        with_connections.waiting,
        with_connections.waiting_most,
        with_checks.pages,
        with_keys.revoke,
        with_keys.revoke_large,
        with_keys.public_key,
        with_keys.register_flood,
        with_keys.unknown_keys,
        with_storage.flapping,
    )
}


def main(arguments: argparse.Namespace) -> int:
    raise_descriptor_limit()
    address = "127.0.0.1" if arguments.same_address else "127.0.0.2"
    unmet = []
    for name in arguments.attacks or ATTACKS:
        for tree_name, tree in trees_of(arguments).items():
            trial = Trial(tree, address, arguments.alone, arguments.seconds)
            run(name, trial)
            show(f"{name}, {tree_name}", summary_of(name), trial)
            if tree_name == "now":
                unmet += [f"{name}: {verdict.told()}" for verdict in trial.verdicts if not verdict.met]
    print(f"\nnot met: {len(unmet)}", *unmet, sep="\n  ")
    return 1 if unmet else 0


def run(name: str, trial: Trial) -> None:
    try:
        ATTACKS[name](trial)
    except SystemExit as error:
        # What an attack needs was refused: the others can still be run.
        trial.verdicts.append(Verdict(f"could not be run: {error}", math.nan, met=False))


def show(title: str, summary: str, trial: Trial) -> None:
    print(f"\n{title}: {summary}\n{'milliseconds':24}    median       p95     worst   asked refused")
    for name, times in trial.beside.items():
        show_times(name, "alone", trial.alone[name])
        show_times("", "beside", times)
    for what, number in trial.figures.items():
        print(f"{what:44}{number:12,.2f}")
    print(*trial.verdicts, sep="\n", flush=True)


def show_times(name: str, when: str, times: Times) -> None:
    milliseconds = "".join(f"{times.percentile(part) * 1000:10,.1f}" for part in (0.5, 0.95, 1))
    print(f"{name:16}{when:8}{milliseconds}{times.asked:8,}{times.refused:8,}")


def summary_of(name: str) -> str:
    return inspect.getdoc(ATTACKS[name]).partition("\n")[0]


if __name__ == "__main__":
    listed = "\n".join(f"    {name:18}{summary_of(name)}" for name in ATTACKS)
    parser = parser_of(__doc__.format(attacks=listed))
    parser.add_argument("attacks", metavar="ATTACK", nargs="*", choices=[*ATTACKS, []], help="[all of them]")
    parser.add_argument("--alone", metavar="N", type=float, default=8, help="seconds that the victim is alone [8]")
    parser.add_argument("--seconds", metavar="N", type=float, default=20, help="of an attack without its own time [20]")
    parser.add_argument("--same-address", action="store_true", help="attack from the victim's address, 127.0.0.1")
    sys.exit(main(parser.parse_args()))
