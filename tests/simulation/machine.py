"""The machine that all servers run on: its clocks, and the life of each server on it."""

import json
import logging
import random
import time
from collections.abc import Callable, Collection
from typing import Any

from tests.simulation.disk import Disk
from tests.simulation.locks import Event
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.threads import spawn

EPOCH = 1_800_000_000
CLIENT_SECONDS = 10.0
"""After this a client gives up."""
FINISH_SECONDS = 8.0
"""What a server that stops gives those who have asked."""
LONGEST_RESTART_SECONDS = 300.0
"""Between two starts that fail: as supervisors do, each wait is twice as long as the one before, up to here."""
BACKLOG = 128
"""Requests that a suspended server may have waiting; the system takes no more connections for it."""
REFUSED = 599
"""In the place of a status: the connection was refused, so the request was certainly not taken."""

Answer = tuple[int, dict[str, Any]]
Told = Callable[["Answer | None"], None]
"""Called with the status and the JSON of an answer; None where there was none."""

MACHINE: "Machine"
"""That of the world that runs."""


def use(machine: "Machine") -> None:
    global MACHINE  # noqa: PLW0603 - the product reads the system's clocks
    MACHINE = machine


def free_descriptors(process: Process) -> None:
    """Close what a dead process had locked; put in place with the other replacements."""
    raise NotImplementedError


class Machine:
    """`jump_seconds` is by how much the wall clock was set; a boot starts the monotonic clock anew."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.jump_seconds = 0.0
        self.is_asleep = False
        self._booted = -1000.0

    def wall(self) -> float:
        return EPOCH + self._scheduler.now + self.jump_seconds

    def monotonic(self) -> float:
        return self._scheduler.now - self._scheduler.slept - self._booted

    def boot(self) -> None:
        self._booted = self._scheduler.now - self._scheduler.slept


class Nothing:
    """A part that does nothing, whatever it is asked."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, _name: str) -> Any:
        return Nothing()

    def __call__(self, *_: object, **__: object) -> tuple[()]:
        return ()


class Front:
    """What the service has for a listener, a loop and a server, whose `serve_forever` waits for the stop."""

    def __init__(self) -> None:
        self.url = "https://beats.example"
        self.loop = self
        self.waker = Nothing()
        self.router: Any = None
        self.is_serving = False
        self.serves: Callable[[], None] = lambda: None
        """Told whenever it begins or ceases to serve."""
        self.requests: Collection[object] = ()
        """Those that are under way."""
        self._stopped = Event()

    def serve_forever(self) -> None:
        self.is_serving = not self._stopped.is_set()
        self.serves()
        self._stopped.wait()
        # As a server does, it lets those finish who have asked already.
        ends_at = time.monotonic() + FINISH_SECONDS
        while self.requests and time.monotonic() < ends_at:
            time.sleep(0.05)

    @staticmethod
    def call_soon(call: Callable[..., None], *values: Any) -> None:
        call(*values)

    def shutdown(self) -> None:
        self.is_serving = False
        self.serves()
        self._stopped.set()

    def server_close(self) -> None:
        self.is_serving = False

    close = server_close


class Server:
    """One server and who restarts it. `changed` is called whenever it begins or ceases to listen."""

    def __init__(
        self, name: str, scheduler: Scheduler, disk: Disk, luck: random.Random, make: Callable[[Front], Any]
    ) -> None:
        self.name = name
        self._scheduler = scheduler
        self._disk = disk
        self._luck = luck
        self._make = make
        self._starts = 0
        self._failed_starts = 0
        """Since it last served."""
        self.process: Process | None = None
        self.front: Front | None = None
        self.stop_asked: Callable[..., None] = lambda *_: None
        self.changed: Callable[[], None] = lambda: None
        self.is_wanted = True
        self.restart_seconds = (0.5, 10.0)

    @property
    def is_listening(self) -> bool:
        process, front = self.process, self.front
        return process is not None and process.frozen is None and front is not None and front.is_serving

    @property
    def process_name(self) -> str:
        return "" if self.process is None else self.process.name

    def start(self) -> None:
        if self.process is not None:
            return
        if MACHINE.is_asleep:
            self._start_again()
            return
        self._starts += 1
        self.process = Process(f"{self.name}.{self._starts}")
        self.process.own["server"] = self
        spawn(self.process, self._run, "main")

    def stop(self) -> None:
        """Ask for an orderly stop; the supervisor starts it again when it has ended."""
        if self.process is not None and self.process.frozen is None and self.is_listening:
            spawn(self.process, self.stop_asked, "signal")

    def crash(self, is_power_cut: bool = False) -> None:
        process, self.process, self.front = self.process, None, None
        if process is None:
            return
        self.changed()
        self._scheduler.kill(process)
        self._disk.doomed.pop(process, None)
        free_descriptors(process)
        if not is_power_cut:
            self._disk.close(process)
        self._start_again()

    def _run(self) -> None:
        from cardbeat.errors import StartupError

        process = self.process
        front = self.front = Front()
        front.serves, front.requests = self._serves, process.requests
        try:
            self._make(front).run()
        except StartupError as error:
            self._failed_starts += 1
            logging.getLogger("simulation").info("%s does not start: %s", self.name, error)
        self._scheduler.after(0, self._ended, process)

    def _serves(self) -> None:
        """It has begun to serve, or ceased to."""
        self._failed_starts = 0
        self.changed()

    def _ended(self, process: Process) -> None:
        if process is self.process:
            self.crash()

    def _start_again(self) -> None:
        if self.is_wanted:
            seconds = self._luck.uniform(*self.restart_seconds)
            longest = max(seconds, LONGEST_RESTART_SECONDS)
            self._scheduler.after(min(seconds * 2**self._failed_starts, longest), self.start)

    def ask(  # noqa: PLR0917
        self, method: str, path: str, told: Told, body: object = None, key: str = "", late: Told | None = None
    ) -> None:
        """Send a request. `told` has the answer or, after `CLIENT_SECONDS`, none; `late` one that came after that."""
        process = self.process
        is_full = process is not None and process.frozen is not None and len(process.requests) >= BACKLOG
        if process is None or self.front is None or not self.front.is_serving or is_full:
            self._scheduler.after(0.01, told, (REFUSED, {}))
            return
        _Exchange(self._scheduler, process, told, late).begin(lambda: self._answer(method, path, body, key))

    def _answer(self, method: str, path: str, body: object, key: str) -> Answer:
        from cardbeat.web.message import Request
        from cardbeat.web.router import Awaited, refusal_of

        front = self.front
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if body is not None:
            headers["content-type"] = "application/json"
        sent = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, path, "", headers, sent)
        try:
            route = front.router.find(request)
            if route.guard:
                route.guard.judge(request)
                request.key = route.guard.look_up(request)
            answer = route.handler(request)
            if isinstance(answer, Awaited):
                answer = answer.respond(answer.future.wait())
        except Exception as error:
            answer = refusal_of(request, error)
        return answer.status, json.loads(answer.body) if answer.body else {}


class _Exchange:
    """One request: its client is told once, and hears nothing after it has given up."""

    def __init__(self, scheduler: Scheduler, process: Process, told: Told, late: Told | None) -> None:
        self._scheduler = scheduler
        self._process = process
        self._told: Told | None = told
        self._late = late

    def begin(self, answer: Callable[[], Answer]) -> None:
        self._process.requests[id(self)] = self._lost
        self._scheduler.after(CLIENT_SECONDS, self._give_up)
        spawn(self._process, lambda: self._answered(answer()), "request")

    def _answered(self, answer: Answer) -> None:
        self._process.requests.pop(id(self), None)
        # By the network, so outside the server's threads.
        self._scheduler.after(0, self._tell, answer)

    def _tell(self, answer: Answer) -> None:
        told, self._told = self._told, None
        if told is not None:
            told(answer)
        elif self._late is not None:
            self._late(answer)

    def _give_up(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            told(None)

    def _lost(self) -> None:
        late, self._late = self._late, None
        self._give_up()
        if late is not None:
            late(None)
