"""One run: a machine with one server or two on one folder, the people who use them, and faults, all from a seed."""

import hashlib
import logging
import random
import shutil
import sys
import tempfile
from collections import Counter, deque
from pathlib import Path
from typing import Any

from cardbeat import alarms, service
from cardbeat.config import Config, Tier
from cardbeat.errors import Refusal
from tests.simulation import disk, machine, scheduler
from tests.simulation.disk import BRIEF, Disk
from tests.simulation.faults import Faults
from tests.simulation.machine import Front, Machine, Nothing, Server
from tests.simulation.model import Model, Trouble
from tests.simulation.network import Network
from tests.simulation.people import Job, Owner
from tests.simulation.replaced import PerProcess
from tests.simulation.scheduler import Scheduler
from tests.simulation.witness import Witness

HOSTS = [f"hooks{number}.example" for number in range(12)]
SWEEPS = (5, 20, 60, 300, 900, 1800, 3600)
POLLS = (1, 10, 600)
MOVED_MEANWHILE = 0.02
"""Of how many posts the check has another URL before they end: that would be too rare else."""
LINES = 600
"""Of what happened last, how much is shown with a failure."""


class World:
    """`options` fix what is drawn from the seed otherwise; their names are those of `drawn` below."""

    def __init__(self, seed: int, **options: Any) -> None:
        self.seed = seed
        self.luck = luck = random.Random(seed)
        random.seed(luck.random())
        drawn = {
            "sweep_seconds": luck.choice(SWEEPS),
            "poll_seconds": luck.choice(POLLS),
            "servers": luck.choice((1, 2, 2)),
            "checks": int(10 ** luck.uniform(1, 3)),
            "preemption": luck.choice((0.0, 0.01)),
            "couriers": luck.choice((16, 64)),
            "sweeps_between_faults": luck.choice((6, 12, 24)),
        }
        self.options = drawn | options
        self.sweep_seconds: float = self.options["sweep_seconds"]
        # A sweep takes longer to be late than a poll.
        self.poll_seconds = max(self.options["poll_seconds"], self.sweep_seconds / 3)
        self.settle_seconds = 10 * self.sweep_seconds
        self.scheduler = Scheduler(luck, self.options["preemption"])
        scheduler.use(self.scheduler)
        self._hash = hashlib.blake2b(digest_size=8)
        self._lines: deque[str] = deque(maxlen=LINES)
        self.counts: Counter[str] = Counter()
        self.model = Model(self.sweep_seconds, self.poll_seconds)
        self.machine = Machine(self.scheduler)
        machine.use(self.machine)
        self._parent = tempfile.mkdtemp(prefix="cardbeat-simulation-", dir=_memory())
        self.disk = Disk(Path(self._parent, "data"), luck)
        disk.use(self.disk)
        self.witness = Witness(self.scheduler, self.disk, self.machine, self.model, luck)
        self.disk.committed = self.witness.committed
        self.network = Network(luck, HOSTS)
        self.network.began, self.network.received = self._began, self._received
        self.schema = 0
        self.deliverer: str | None = None
        self._silent_since: float | None = 0.0
        self.servers = [self._server(f"server{number}") for number in range(self.options["servers"])]
        self.owners: list[Owner] = []
        self.jobs: dict[str, Job] = {}
        """By the ids of their checks."""
        gap_seconds = max(600.0, self.sweep_seconds * self.options["sweeps_between_faults"])
        self.faults = Faults(self, gap_seconds)
        self._replace_parts()

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
            for share in (0.5, 0.3, 0.2):
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
        line = f"{self.now:.6f} {' '.join(map(str, parts))}"
        self._hash.update(line.encode())
        self._lines.append(line)

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
        is_silent = not listening or self.disk.trouble is not None or blocks or self.machine.is_asleep
        if is_silent and self._silent_since is None:
            self._silent_since = self.now
        elif not is_silent and self._silent_since is not None:
            silent = Trouble(self._silent_since, self.now, silent=self.now - self._silent_since)
            self._silent_since = None
            self.model.trouble(silent)
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
        if server.is_listening:
            self.model.trouble(Trouble(self.now, self.now, has_start=True))
        self.look()

    def _service(self, front: Front) -> Any:
        config = Config(
            data=self.disk.folder,
            base_url="https://beats.example",
            sweep_seconds=self.sweep_seconds,
            register_per_minute=10**6,
            tiers={"free": Tier(max_checks=None)},
        )
        return service.Service(config, front, self.machine.wall)  # type: ignore[arg-type]

    def _began(self, alert_id: str, url: str) -> None:
        self.count("posts")
        self.deliverer = self.scheduler.own_thread().process.name
        self.note("post", alert_id, url)
        self.model.began(alert_id, self.now)
        job = self.jobs.get(self.model.alerts[alert_id].check_id)
        if job is not None and self.luck.random() < MOVED_MEANWHILE:
            self.scheduler.after(self.luck.uniform(0, 0.2), job.owner.move_now, job)

    def _received(self, alert_id: str, url: str, _body: bytes, does: str) -> None:
        alert = self.model.alerts[alert_id]
        if does == "takes":
            alert.is_taken = True
        elif does == "gone":
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

    def _replace_parts(self) -> None:
        """What of the service has to do with cards, the network or the system's signals."""
        alarms._alarms = PerProcess("alarms", alarms._Alarms)  # type: ignore[assignment]
        for name in ("Fonts", "Store", "CardRoutes", "OpenApiRoutes", "PageRoutes", "Renderer"):
            setattr(service, name, Nothing)
        service.Sender = lambda *_: self.network  # type: ignore[assignment, misc]
        service.on_stop_signals = _on_stop_signals
        _set("POLL_SECONDS", self.poll_seconds)
        _set("LOCK_POLL_SECONDS", 0.25)
        _lengthen("LOOK_SECONDS", self.sweep_seconds / 8)
        _lengthen("STALLED_SECONDS", 4 * self.poll_seconds)
        _set("descriptor_limit", lambda _wanted: 4 * self.options["couriers"])
        _set("read_text", _read_text)
        logging.getLogger("cardbeat").setLevel(logging.WARNING)
        logger = logging.getLogger()
        logger.handlers = [_Log(self)]


class _Log(logging.Handler):
    """Keeps the lines; a failure that the product did not expect ends the run."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        current = self._world.scheduler.current
        process = "" if current is None else current.process.name
        if current is not None and current.process.is_dead:
            return
        self._world._lines.append(f"{self._world.now:.6f} {process} {record.getMessage()}")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, Refusal):
            self._world.scheduler.failure = self._world.scheduler.failure or error


def _on_stop_signals(handler: Any) -> None:
    server = scheduler.SCHEDULER.own_thread().process.own["server"]
    server.stop_asked = lambda: handler(15, None)


_ORIGINAL: dict[str, Any] = {}


def _set(name: str, value: Any) -> None:
    """Replace a name in all modules of the product that have it."""
    modules = [module for own, module in sys.modules.items() if own.startswith("cardbeat.") and hasattr(module, name)]
    assert modules, f"nothing in the product is called {name} any more"
    for module in modules:
        if name == "read_text" and module.__name__ == "cardbeat.resources":
            continue
        _ORIGINAL.setdefault(name, getattr(module, name))
        setattr(module, name, value)


def _lengthen(name: str, seconds: float) -> None:
    """What is done every so often in the product is done as often in relation to the sweeps."""
    for own, module in sys.modules.items():
        if own.startswith("cardbeat.heartbeat.") and hasattr(module, name):
            usual = _ORIGINAL.setdefault(f"{own}.{name}", getattr(module, name))
            setattr(module, name, max(usual, seconds))


def _read_text(name: str) -> str:
    """A resource; there are further migrations for a server that was upgraded."""
    try:
        text: str = _ORIGINAL["read_text"](name)
    except OSError:
        current = scheduler.SCHEDULER.current
        number = int(name.partition("/")[2].removesuffix(".sql"))
        present = next(count for count in range(number) if not _exists(count + 1))
        if current is None or number > present + current.process.own["server"].schema:
            raise
        return f"CREATE TABLE upgrade_{number} (x INTEGER) STRICT"
    return text


def _exists(number: int) -> bool:
    try:
        return bool(_ORIGINAL["read_text"](f"schema/{number:03}.sql"))
    except OSError:
        return False


def _memory() -> str | None:
    """A folder in memory, where there is one: what the simulated disk keeps need not outlive the run."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
