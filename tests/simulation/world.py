"""One run: a machine with one server or two on one folder, the people who use them, and faults, all from a seed."""

import hashlib
import random
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cardbeat import service
from cardbeat.config import Config, Tier
from tests.simulation import disk, machine, scheduler
from tests.simulation.disk import BRIEF, Disk
from tests.simulation.faults import Faults
from tests.simulation.machine import Front, Machine, Server
from tests.simulation.model import Model
from tests.simulation.network import ASKED_SECONDS, STEADY, Network
from tests.simulation.parts import replace_parts
from tests.simulation.people import Job, Owner
from tests.simulation.scheduler import Scheduler
from tests.simulation.troubles import Trouble
from tests.simulation.witness import Witness

HOSTS = [f"hooks{number}.example" for number in range(12)]
SWEEPS = (5, 20, 60, 300, 900, 1800, 3600)
POLLS = (1, 10, 600)
SHARES = {1: (1.0,), 3: (0.5, 0.3, 0.2)}
"""Of the checks that each owner has, by how many owners there are."""
LINES = 600
"""Of what happened last, how much is shown with a failure."""


def drawn_options(luck: random.Random) -> dict[str, Any]:
    return {
        "sweep_seconds": luck.choice(SWEEPS),
        "poll_seconds": luck.choice(POLLS),
        "servers": 1,
        "checks": int(10 ** luck.uniform(1, 3)),
        "owners": 3,
        "preemption": luck.choice((0.0, 0.01)),
        "senders": luck.choice((16, 64)),
        "sweeps_between_faults": luck.choice((3, 8, 24)),
        # Between two jumps of the clock beside those among the faults; 0 for none of these.
        "sweeps_between_jumps": 0,
        "sweeps_between_revocations": 75,
        # Of so many posts the check has another URL before they end, and of so many revocations the
        # server crashes before they are done: both would be too rare else.
        "moved_meanwhile": 0.02,
        "crashed_meanwhile": 0.1,
    }


class World:
    """`options` fix what is drawn from the seed otherwise, by the names of `drawn_options`."""

    def __init__(self, seed: int, **options: Any) -> None:
        self.seed = seed
        self.luck = random.Random(seed)
        random.seed(self.luck.random())
        self.options = drawn_options(self.luck) | options
        self.sweep_seconds: float = self.options["sweep_seconds"]
        # A sweep takes longer to be late than a poll.
        self.poll_seconds = max(self.options["poll_seconds"], self.sweep_seconds / 2)
        self.settle_seconds = 10 * self.sweep_seconds
        self.counts: Counter[str] = Counter()
        self.owners: list[Owner] = []
        self.jobs: dict[str, Job] = {}
        """By the ids of their checks."""
        self.deliverer: str | None = None
        self._hash = hashlib.blake2b(digest_size=8)
        self._lines: deque[str] = deque(maxlen=LINES)
        self._silent_since: float | None = 0.0
        self._build()
        self.servers = [self._server(f"server{n}") for n in range(self.options["servers"])]
        gap_seconds = max(600.0, self.sweep_seconds * self.options["sweeps_between_faults"])
        self.faults = Faults(self, gap_seconds)
        replace_parts(self)

    def _build(self) -> None:
        """The machine, its disk and network, and those who watch them."""
        self.scheduler = Scheduler(self.luck, self.options["preemption"])
        scheduler.use(self.scheduler)
        self.model = Model(self.sweep_seconds, self.poll_seconds)
        self.machine = Machine(self.scheduler)
        machine.use(self.machine)
        self._parent = tempfile.mkdtemp(prefix="cardbeat-simulation-", dir=_memory())
        self.disk = Disk(Path(self._parent, "data"), self.luck)
        disk.use(self.disk)
        self.witness = Witness(self.scheduler, self.disk, self.machine, self.model, self.luck)
        self.disk.committed = self._watched(self.witness.committed)
        self.network = Network(self.luck, HOSTS)
        self.network.began = self._watched(self._began)
        self.network.met = self._watched(self._met)
        self.network.received = self._watched(self._received)

    @property
    def now(self) -> float:
        return self.scheduler.now

    def run(self, seconds: float) -> None:
        """Live so long. Raises `Violation`, and whatever the product lets escape."""
        try:
            self.servers[0].start()
            for server in self.servers[1:]:
                self.scheduler.after(5.0, server.start)
            self.scheduler.run(30.0)
            for share in SHARES[self.options["owners"]]:
                self.new_owner(max(1, int(self.options["checks"] * share)))
            self.scheduler.run(self.settle_seconds)
            self.faults.begin()
            self._audit_later()
            self.scheduler.run(seconds)
        except BaseException:
            self._lines.append(f"noted by the servers: {self.witness.noted()}")
            raise
        finally:
            self._end()

    def hash(self) -> str:
        return self._hash.hexdigest()

    def count(self, kind: str) -> None:
        self.counts[kind] += 1

    def note(self, *parts: object) -> None:
        """What is the same whenever the seed is replayed."""
        self._hash.update(self.show(" ".join(map(str, parts))).encode())

    def show(self, line: str) -> str:
        """Keep a line for what is shown with a failure; as it is kept, with the time."""
        line = f"{self.now:.6f} {line}"
        self._lines.append(line)
        return line

    def lines(self) -> list[str]:
        return list(self._lines)

    def any_server(self) -> Server:
        return self.luck.choice(self.servers)

    def any_owner(self) -> Owner:
        return self.luck.choice(self.owners)

    def new_owner(self, wanted: int) -> None:
        self.owners = [owner for owner in self.owners if not owner.is_gone]
        self.owners.append(Owner(self, wanted))

    def new_hook(self) -> str:
        return f"https://{self.luck.choice(HOSTS)}/{self.luck.randrange(10**6)}"

    def new_period(self) -> dict[str, int]:
        """So long that all pings of the run together stay affordable."""
        sweeps = self.luck.uniform(4, 40) * max(1.0, self.options["checks"] / 50)
        period = max(2, int(self.sweep_seconds * sweeps))
        return {"period_seconds": min(period, 31_536_000), "grace_seconds": int(period * self.luck.uniform(0, 0.3))}

    def new_repeat(self) -> int | None:
        """Of the time between two reminders; most checks have none, so that no key uses up its posts."""
        seconds = self.sweep_seconds * self.luck.uniform(1, 30) * max(1.0, self.options["checks"] / 50)
        return None if self.luck.random() < 0.6 else min(2_592_000, max(300, int(seconds)))

    def cut(self) -> None:
        """Power is lost, and comes back: all processes die, and the monotonic clock starts anew."""
        processes = [server.process for server in self.servers if server.process is not None]
        self.witness.close()
        for server in self.servers:
            server.crash(is_power_cut=True)
        self.disk.cut(processes)
        self.machine.boot()
        self.look()

    def look(self, is_disturbed: bool = False) -> None:
        """Note whether anybody listens, and whether all is well, as of now."""
        listening = [server for server in self.servers if server.is_listening]
        blocks = any(
            connection.in_transaction
            for server in self.servers
            if server.process is not None and server.process.frozen is not None
            for connection in server.process.connections
        )
        is_unheard = not listening or self.machine.is_asleep
        is_silent = is_unheard or self.disk.trouble is not None or blocks
        if is_silent and self._silent_since is None:
            self._silent_since = self.now
        elif not is_silent and self._silent_since is not None:
            silent = Trouble(self._silent_since, self.now, silent=self.now - self._silent_since)
            self._silent_since = None
            self.model.troubles.add(silent)
        is_calm = not is_silent and len(listening) == len(self.servers) and self.disk.pace == BRIEF
        if not is_calm:
            self.model.calm_since = float("inf")
        elif is_disturbed or self.model.calm_since == float("inf"):
            self.model.calm_since = self.now

    def _server(self, name: str) -> Server:
        server = Server(name, self.scheduler, self.disk, self.luck, self._service)
        server.restart_seconds = (0.5, self.luck.choice((5.0, 4 * self.sweep_seconds)))
        server.changed = lambda: self._changed(server)
        return server

    def _changed(self, server: Server) -> None:
        self.look()

    def _service(self, front: Front) -> Any:
        config = Config(
            data=self.disk.folder,
            base_url="https://beats.example",
            sweep_seconds=self.sweep_seconds,
            register_per_minute=10**6,
            tiers={"free": Tier(max_checks=None)},
        )
        return service.Service(config, front, front, clock=self.machine.wall)  # type: ignore[arg-type]

    def _watched(self, look: Callable[..., None]) -> Callable[..., None]:
        """What finds a violation in one of the product's threads, which may take it for any failure and go on."""

        def watched(*arguments: Any) -> None:
            try:
                look(*arguments)
            except Exception as violation:
                self.scheduler.failure = self.scheduler.failure or violation
                raise

        return watched

    def _began(self, alert_id: str, url: str) -> None:
        self.count("posts")
        self.deliverer = self.scheduler.own_thread().process.name
        self.note("post", alert_id, url)
        self.model.began(alert_id, self.now, urlsplit(url).hostname or "")
        job = self.jobs.get(self.model.alerts[alert_id].check_id)
        if job is not None and self.luck.random() < self.options["moved_meanwhile"]:
            self.scheduler.after(self.luck.uniform(0, 0.2), job.owner.move_now, job)

    def _met(self, alert_id: str, url: str, does: str) -> None:
        self.count(f"posts that met a receiver that {does}" if does != "takes" else "posts that were taken")
        self.model.met(alert_id, urlsplit(url).hostname, does in STEADY)

    def _received(self, alert_id: str, url: str, does: str, outages: int) -> None:
        alert = self.model.alerts[alert_id]
        alert.asked_seconds = ASKED_SECONDS.get(does, 0)
        alert.due_at = max(alert.due_at, self.now + alert.asked_seconds)
        if does == "takes":
            alert.is_taken = True
            self.model.told_outages(alert_id, outages)
        elif does == "is gone":
            alert.gone_from.add(url)

    def _audit_later(self) -> None:
        def audit() -> None:
            if self.now > self.model.calm_since:
                self.count("audits")
                self.witness.audit(self.deliverer)
            self._audit_later()

        self.scheduler.after(self.luck.uniform(5, 25) * self.sweep_seconds, audit)

    def _end(self) -> None:
        self.witness.close()
        for server in self.servers:
            server.is_wanted = False
            server.crash()
        shutil.rmtree(self._parent, ignore_errors=True)


def _memory() -> str | None:
    """A folder in memory, where there is one: what the simulated disk keeps need not outlive the run."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
