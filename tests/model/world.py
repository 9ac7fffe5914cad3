"""One run: a machine with a server, the people who use it, and faults, all from a seed."""

import hashlib
import logging
import random
import shutil
import tempfile
from collections import Counter, deque
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from cardbeat import service
from cardbeat.config import Config, Tier
from cardbeat.errors import Refusal
from cardbeat.heartbeat import sweep, tidy
from cardbeat.heartbeat.alerts import delivery, post
from tests.model import disk, threads
from tests.model.disk import BRIEF, Disk
from tests.model.faults import Faults
from tests.model.model import Model
from tests.model.network import ASKED_SECONDS, STEADY, Network
from tests.model.people import Owner
from tests.model.replaced import Nothing
from tests.model.server import Server
from tests.model.threads import Scheduler
from tests.model.troubles import Trouble
from tests.model.witness import Witness

HOSTS = [f"hooks{number}.example" for number in range(12)]
SWEEPS = (5, 20, 60, 300, 900, 1800, 3600)
POLLS = (1, 10, 600)
SHARES = {1: (1.0,), 3: (0.5, 0.3, 0.2)}
"""Of the checks that each owner has, by how many owners there are."""
LINES = 600
"""Of what happened last, how much is shown with a failure."""
MEMORY = Path("/dev/shm")
"""What the simulated disk keeps need not outlive the run."""


def drawn_options(luck):
    return {
        "sweep_seconds": luck.choice(SWEEPS),
        "poll_seconds": luck.choice(POLLS),
        "checks": int(10 ** luck.uniform(1, 3)),
        "owners": 3,
        "preemption": luck.choice((0.0, 0.01)),
        "senders": luck.choice((16, 64)),
        "sweeps_between_faults": luck.choice((3, 8, 24)),
        "sweeps_between_revocations": 75,
        # Of so many posts the check has another URL before they end, and of so many revocations the
        # server crashes before they are done: both would be too rare else.
        "moved_meanwhile": 0.02,
        "crashed_meanwhile": 0.1,
    }


class World:
    """`options` fix what is drawn from the seed otherwise, by the names of `drawn_options`."""

    def __init__(self, seed, **options):
        self.seed = seed
        self.luck = random.Random(seed)
        random.seed(self.luck.random())
        self.options = drawn_options(self.luck) | options
        self.sweep_seconds = self.options["sweep_seconds"]
        # A sweep takes longer to be late than a poll.
        self.poll_seconds = max(
            self.options["poll_seconds"], self.sweep_seconds / 2
        )
        self.settle_seconds = 10 * self.sweep_seconds
        self.counts = Counter()
        self.owners = []
        self.jobs = {}
        """By the ids of their checks."""
        self._hash = hashlib.blake2b(digest_size=8)
        self._lines = deque(maxlen=LINES)
        self._silent_since = 0.0
        self._build()
        _replace_parts(self)

    def _build(self):
        self.scheduler = threads.SCHEDULER = Scheduler(
            self.luck, self.options["preemption"]
        )
        self.model = Model(self.sweep_seconds, self.poll_seconds)
        self._parent = tempfile.mkdtemp(
            prefix="cardbeat-", dir=MEMORY if MEMORY.is_dir() else None
        )
        self.disk = disk.DISK = Disk(
            Path(self._parent, "data"), self.luck
        )
        self.witness = Witness(self)
        self.disk.committed = self._watched(self.witness.committed)
        self.network = Network(self.luck, HOSTS)
        self.network.began = self._watched(self._began)
        self.network.met = self._watched(self._met)
        self.network.received = self._watched(self._received)
        self.config = Config(
            data=self.disk.folder,
            base_url="https://beats.example",
            sweep_seconds=self.sweep_seconds,
            register_per_minute=10**6,
            tiers={"free": Tier(max_checks=None)},
        )
        self.server = Server(self)
        self.disk.die = self.server.crash
        self.faults = Faults(self)

    @property
    def now(self):
        return self.scheduler.now

    def run(self, seconds):
        """Live so long. Raises `Violation`, and whatever the product lets escape."""
        try:
            self.server.start()
            self.scheduler.run(30.0)
            for share in SHARES[self.options["owners"]]:
                self.new_owner(
                    max(1, int(self.options["checks"] * share))
                )
            self.scheduler.run(self.settle_seconds)
            self.faults.begin()
            self._audit_later()
            self.scheduler.run(seconds)
        except BaseException:
            self.show(f"noted by the server: {self.witness.noted()}")
            raise
        finally:
            self.witness.close()
            self.server.is_wanted = False
            self.server.crash()
            shutil.rmtree(self._parent, ignore_errors=True)

    def hash(self):
        return self._hash.hexdigest()

    def lines(self):
        return list(self._lines)

    def note(self, *parts):
        """What is the same whenever the seed is replayed."""
        self._hash.update(self.show(" ".join(map(str, parts))).encode())

    def show(self, line):
        """Keep a line for what is shown with a failure; as it is kept, with the time."""
        line = f"{self.now:.6f} {line}"
        self._lines.append(line)
        return line

    def any_owner(self):
        return self.luck.choice(self.owners)

    def new_owner(self, wanted):
        self.owners = [
            owner for owner in self.owners if not owner.is_gone
        ]
        self.owners.append(Owner(self, wanted))

    def new_hook(self):
        return f"https://{self.luck.choice(HOSTS)}/{self.luck.randrange(10**6)}"

    def new_period(self):
        """So long that all pings of the run together stay affordable."""
        sweeps = self.luck.uniform(4, 40) * max(
            1.0, self.options["checks"] / 50
        )
        period = min(max(2, int(self.sweep_seconds * sweeps)), 31_536_000)
        return {
            "period_seconds": period,
            "grace_seconds": int(period * self.luck.uniform(0, 0.3)),
        }

    def new_repeat(self):
        """Of the time between two reminders; most checks have none, so that no key uses up its posts."""
        seconds = (
            self.sweep_seconds
            * self.luck.uniform(1, 30)
            * max(1.0, self.options["checks"] / 50)
        )
        return (
            None
            if self.luck.random() < 0.6
            else min(2_592_000, max(300, int(seconds)))
        )

    def cut(self):
        """Power is lost, and comes back: the process dies, and the monotonic clock starts again. Whether it ran."""
        self.witness.close()
        has_run = self.server.crash(is_power_cut=True)
        self.scheduler.boot()
        return has_run

    def look(self, is_disturbed=False):
        """Note whether the server listens, and whether all is well, as of now."""
        is_unheard = (
            not self.server.is_listening or self.scheduler.is_asleep
        )
        is_silent = is_unheard or self.disk.trouble is not None
        if is_silent and self._silent_since is None:
            self._silent_since = self.now
        elif not is_silent and self._silent_since is not None:
            silent = Trouble(
                self._silent_since,
                self.now,
                silent=self.now - self._silent_since,
            )
            self._silent_since = None
            self.model.troubles.add(silent)
        if is_silent or self.disk.pace != BRIEF:
            self.model.calm_since = float("inf")
        elif is_disturbed or self.model.calm_since == float("inf"):
            self.model.calm_since = self.now

    def _watched(self, look):
        """What finds a violation in one of the product's threads, which may take it for any failure and go on."""

        def watched(*arguments):
            try:
                look(*arguments)
            except Exception as violation:
                self.scheduler.fail(violation)
                raise

        return watched

    def _began(self, alert_id, url):
        self.counts["posts"] += 1
        self.note("post", alert_id, url)
        self.model.began(alert_id, self.now, urlsplit(url).hostname or "")
        job = self.jobs.get(self.model.alerts[alert_id].check_id)
        if (
            job is not None
            and self.luck.random() < self.options["moved_meanwhile"]
        ):
            self.scheduler.after(
                self.luck.uniform(0, 0.2), job.owner.move_now, job
            )

    def _met(self, alert_id, url, does):
        self.model.met(
            alert_id, urlsplit(url).hostname or "", does in STEADY
        )

    def _received(self, alert_id, url, does, outages):
        alert = self.model.alerts[alert_id]
        alert.asked_seconds = ASKED_SECONDS.get(does, 0)
        alert.due_at = max(alert.due_at, self.now + alert.asked_seconds)
        if does == "takes":
            alert.is_taken = True
            self.model.told_outages(alert_id, outages)
        elif does == "is gone":
            alert.gone_from.add(url)

    def _audit_later(self):
        def audit():
            if self.now > self.model.calm_since:
                self.witness.audit()
            self._audit_later()

        self.scheduler.after(
            self.luck.uniform(5, 25) * self.sweep_seconds, audit
        )


def _replace_parts(world):
    """What of the service is another one in each world: cards, the network, signals, and how often it looks."""

    def server(front, router, *_, **__):
        front.router = router
        return front

    def on_stop_signals(handler):
        world.scheduler.own_thread().process.stop = lambda: handler(
            15, None
        )

    replaced = dict.fromkeys(
        ("Store", "Painter", "CardRoutes", "PageRoutes"), Nothing
    )
    replaced |= {
        "HttpServer": server,
        "on_stop_signals": on_stop_signals,
        "wake_on_signals": lambda _: None,
        "Delivery": partial(
            delivery.Delivery,
            poll_seconds=world.poll_seconds,
            repair_seconds=max(600.0, 10 * world.poll_seconds),
        ),
        "Tidy": partial(tidy.Tidy, poll_seconds=world.poll_seconds),
        "clients_and_senders": lambda: (10_000, world.options["senders"]),
    }
    for name, part in replaced.items():
        assert hasattr(service, name), name
        setattr(service, name, part)
    post.Sender = lambda *_: world.network
    sweep.POLL_SECONDS = tidy.POLL_SECONDS = world.poll_seconds
    logging.getLogger("cardbeat").setLevel(logging.WARNING)
    logging.getLogger().handlers = [_Log(world)]


class _Log(logging.Handler):
    """Keeps the lines; a failure that the product did not expect ends the run."""

    def __init__(self, world):
        super().__init__()
        self._world = world

    def emit(self, record):
        current = self._world.scheduler.current
        if current is not None and current.process.is_dead:
            return
        self._world.show(record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, Refusal):
            self._world.scheduler.fail(error)
