"""One attack on one tree: the server, who is there, and what was found."""

import contextlib
import inspect
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.attacks import resolving
from tests.bench.attacks.attackers import Assault, Attackers, attack, compute
from tests.bench.attacks.callers import Caller, Times
from tests.bench.attacks.demands import Verdict, at_most, common
from tests.bench.attacks.receiver import Receivers, receiving
from tests.bench.attacks.victim import Growth, Victim, register
from tests.bench.running import Figures, Server, serving

OPTIONS = ("--allow-private-webhooks", "--sweep-seconds", "1")
AFTER_SECONDS = 5
"""From the end of an attack until what the server keeps is measured."""


@dataclass
class Trial:
    """`attackers_address` is where attacks come from; the victim calls from 127.0.0.1.

    An attack fills in the rest: the victim's times, other figures, and the demands that were judged.
    """

    tree: Path
    attackers_address: str
    alone_seconds: float
    seconds: float
    alone: dict[str, Times] = field(default_factory=dict)
    beside: dict[str, Times] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)

    @contextlib.contextmanager
    def scene(
        self,
        *options: str,
        data: Path | None = None,
        victim: str = "127.0.0.1",
        victim_seconds: float = 0,
        descriptors: int | None = None,
    ) -> "Iterator[Scene]":
        """A server, a victim whose receiver has this name or address and takes so long, and the attackers' receivers.

        The server is killed in the end: what an attack has left to be done may take it minutes.
        """
        command = ("-c", inspect.getsource(resolving))
        with (
            receiving() as receivers,
            serving(*OPTIONS, *options, tree=self.tree, data=data, command=command, descriptors=descriptors) as server,
        ):
            try:
                someone = Victim(server, victim, victim_seconds)
                with someone.receiving():
                    yield Scene(self, server, someone, receivers)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Scene:
    trial: Trial
    server: Server
    victim: Victim
    receivers: Receivers

    def attacker(self, key: str = "") -> Caller:
        return Caller(self.server.port, key, address=self.trial.attackers_address)

    def cards_keys(self, count: int) -> list[str]:
        """Free keys of the attackers, of which an address gets 30 a minute."""
        return [register(self.attacker()) for _ in range(count)]

    def checks_keys(self, count: int) -> list[str]:
        return [register(self.attacker(), "mallory@example.com") for _ in range(count)]

    def attack(self, assault: Assault, *, seconds: float | None = None) -> Attackers:
        """Measure the victim alone, then beside the attack; the common demands are judged."""
        trial = self.trial
        self.victim.warm_up()
        with Growth(self.server) as growth, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            # Attackers elsewhere would take no CPU from this machine: alone, a process takes as much, and does nothing.
            computed = pool.submit(compute, trial.alone_seconds)
            self._measure("alone", trial.alone, computed.result)
            attacked = self._start(pool, assault, seconds or trial.seconds)
            self._measure("beside", trial.beside, attacked.result)
            time.sleep(AFTER_SECONDS)
            trial.figures |= growth.figures()
        attackers = attacked.result()
        trial.figures |= {"posts to one address at once": self.receivers.counts().most_at_once}
        trial.figures |= {f"attack, {name}": number for name, number in _told(attackers).items()}
        trial.verdicts += common(trial.alone, trial.beside, trial.figures)
        return attackers

    def _measure(self, when: str, times: dict[str, Times], wait: Callable[[], object]) -> None:
        started, used = time.monotonic(), self.server.cpu_seconds()
        times |= self.victim.measure(wait)
        share = (self.server.cpu_seconds() - used) / (time.monotonic() - started)
        self.trial.figures[f"server's CPU {when}, %"] = 100 * share

    def judge_refusals(self, attackers: Attackers) -> None:
        """What a refusal costs, however busy the machine is with other things."""
        figures, answers = self.trial.figures, max(attackers.statuses.total(), 1)
        share = (figures["server's CPU beside, %"] - figures["server's CPU alone, %"]) / 100
        milliseconds = 1000 * share * self.trial.seconds / answers
        self.trial.verdicts.append(at_most("CPU for a refusal at most {} ms", milliseconds, 2))

    def only_attack(self, assault: Assault, seconds: float) -> Attackers:
        """Without measuring anybody, such as to prepare something."""
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return self._start(pool, assault, seconds).result()

    def _start(self, pool: ProcessPoolExecutor, assault: Assault, seconds: float) -> Future[Attackers]:
        return pool.submit(attack, self.server.port, self.trial.attackers_address, seconds, assault)


def _told(attackers: Attackers) -> Figures:
    answers = {f"answers {status or 'none'}": count for status, count in sorted(attackers.statuses.items())}
    return {**answers, "MiB sent": attackers.sent_bytes / (1 << 20), **attackers.notes}
