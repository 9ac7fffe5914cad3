"""Someone with a site and some jobs of their own, who is measured: alone, and beside an attack."""

import contextlib
import http.server
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.attacks.callers import TIMEOUT_SECONDS, Activity, Caller, Times
from tests.bench.running import Figures, Server

MIB = 1 << 20
CHECKS = 15
STORED = 5
ALERT_SECONDS = 60
"""An alert that has not come by then counts as missing."""
ALERT_PAUSE_SECONDS = 3
"""So that a minute takes fewer than the 30 test alerts that a key may have in an hour."""
SAMPLE_SECONDS = 0.05
CARD = "template=blog&author=Ada+Lovelace&tag=Engineering&domain=blog.example.com"


class Victim:
    """Pings over a kept and over new connections, asks for stored cards, new cards and its checks, and tests an alert.

    `host` is the name or address of its receiver, which runs in this process and takes every alert after `seconds`.
    """

    def __init__(self, server: Server, host: str = "127.0.0.1", seconds: float = 0) -> None:
        self._port = server.port
        self.cards_key = register(Caller(server.port))
        self.checks_key = register(Caller(server.port), "ops@example.com")
        self._arrived: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._arrived, seconds))
        webhook_url = f"http://{host}:{self._receiver.server_address[1]}/"
        self._ids = [self._create(webhook_url if number == 0 else None) for number in range(CHECKS)]
        self.activities = self._activities()

    @contextlib.contextmanager
    def receiving(self) -> Iterator[None]:
        threading.Thread(target=self._receiver.serve_forever, daemon=True).start()
        yield
        self._receiver.shutdown()
        self._receiver.server_close()

    def measure(self, wait: Callable[[], object]) -> dict[str, Times]:
        """What is found while `wait` runs."""
        ended = threading.Event()
        threads = [threading.Thread(target=activity.run, args=(ended,)) for activity in self.activities]
        for thread in threads:
            thread.start()
        try:
            wait()
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        return self._times()

    def warm_up(self) -> None:
        """Ask for everything once, so that what is stored is stored and what is loaded is loaded."""
        for number in range(STORED):
            Caller(self._port).created("GET", self.stored_card(number))
        for activity in self.activities:
            activity.turn()

    def leave_out(self, name: str) -> None:
        """Do without an activity."""
        self.activities = [activity for activity in self.activities if activity.name != name]

    def stored_card(self, number: int) -> str:
        return f"/og?title=Stored+card+{number}&{CARD}&key={self.cards_key}"

    def _create(self, webhook_url: str | None) -> str:
        check = {"name": "Nightly backup", "period_seconds": 86400, "grace_seconds": 60, "webhook_url": webhook_url}
        answer = Caller(self._port, self.checks_key).created("POST", "/checks", check)
        return answer.member("check")["id"]

    def _activities(self) -> list[Activity]:
        kept, new, stored, drawn = (Caller(self._port, kept=kept) for kept in (True, False, True, True))
        checks = Caller(self._port, self.checks_key)
        self._tests = Caller(self._port, self.checks_key, kept=False)

        def card(number: int) -> str:
            return f"/og?title=Designing+reliable+background+jobs+{number}&{CARD}&key={self.cards_key}"

        return [
            Activity("ping", 0.01, lambda n: kept.ask("GET", f"/ping/{self._ids[n % CHECKS]}").status == 200),
            Activity("ping", 0.01, lambda n: new.ask("GET", f"/ping/{self._ids[n % CHECKS]}").status == 200),
            Activity("stored card", 0.1, lambda n: stored.ask("GET", self.stored_card(n % STORED)).status == 200),
            Activity("GET /checks", 0.1, lambda n: checks.ask("GET", "/checks").status == 200),
            Activity("new card", 0.5, lambda n: drawn.ask("GET", card(n)).status == 200),
            Activity("alert", ALERT_PAUSE_SECONDS, self._alert),
        ]

    def _alert(self, _: int) -> bool:
        """Whether an alert was taken and came; the time is until then."""
        if self._tests.ask("POST", f"/checks/{self._ids[0]}/test-alert").status != 202:
            return False
        try:
            self._arrived.get(timeout=ALERT_SECONDS)
        except queue.Empty:
            return False
        return True

    def _times(self) -> dict[str, Times]:
        merged: dict[str, Times] = {}
        for activity in self.activities:
            merged.setdefault(activity.name, Times())
            merged[activity.name] += activity.times
        return merged


class Growth:
    """How much more memory and disk a server uses than at the start, at the most and in the end, in MiB."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._start = self._now()
        self._most = self._start
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Growth":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def figures(self) -> Figures:
        most, now = self._more(self._most), self._more(self._now())
        return {
            "memory, most, MiB more": most[0],
            "memory, after, MiB more": now[0],
            "database, most, MiB more": most[1],
            "database, after, MiB more": now[1],
        }

    def _run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._most = tuple(map(max, self._most, self._now()))

    def _now(self) -> tuple[int, ...]:
        return self._server.memory_bytes(), sum(map(_size, self._server.data.glob("cardbeat.db*")))

    def _more(self, sizes: tuple[int, ...]) -> list[float]:
        return [(size - start) / MIB for size, start in zip(sizes, self._start, strict=True)]


def register(caller: Caller, email: str | None = None) -> str:
    """A new key: for checks when there is an e-mail address, else for cards."""
    return caller.created("POST", "/register", None if email is None else {"email": email}).member("key")


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _handler(arrived: "queue.SimpleQueue[str]", seconds: float) -> type[http.server.BaseHTTPRequestHandler]:
    seen: set[str] = set()

    class Handler(http.server.BaseHTTPRequestHandler):
        """Takes alerts, each after `seconds`, and tells of each once: it may be sent again."""

        timeout = TIMEOUT_SECONDS

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(seconds)
            if select.select([self.connection], [], [], 0)[0]:
                # The sender has gone away in the meantime.
                return
            self.send_response(204)
            self.end_headers()
            if self.headers["webhook-id"] not in seen:
                seen.add(self.headers["webhook-id"])
                arrived.put(self.headers["webhook-id"])

        def log_message(self, *_: object) -> None:
            pass

    return Handler
