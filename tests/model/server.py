"""The server on the simulated machine: it starts, answers, stops, crashes, and is started again."""

import json
import time

from cardbeat import service
from cardbeat.errors import StartupError
from cardbeat.web.message import Request
from tests.kit.support import response_of
from tests.model.threads import Event, Process, Thread

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


class Front:
    """What the service has for a listener, a loop and a server, whose `serve_forever` waits for the stop."""

    url = "https://beats.example"
    waker = None
    router = None
    is_serving = False

    def __init__(self, process, changed):
        self.loop = self
        self._requests = process.requests
        self._changed = changed
        self._stopped = Event()

    def serve_forever(self):
        self.is_serving = not self._stopped.is_set()
        self._changed()
        self._stopped.wait()
        # As a server does, it lets those finish who have asked already.
        ends_at = time.monotonic() + FINISH_SECONDS
        while self._requests and time.monotonic() < ends_at:
            time.sleep(0.05)

    @staticmethod
    def call_soon(call, *values):
        call(*values)

    call_next = call_soon

    def shutdown(self):
        self.close()
        self._changed()
        self._stopped.set()

    def close(self):
        self.is_serving = False

    server_close = close


class Server:
    """The one of a world, and who restarts it."""

    def __init__(self, world):
        self._world = world
        self._scheduler = world.scheduler
        self._starts = 0
        self._failed_starts = 0
        """Since it last served."""
        self._restart_seconds = (
            0.5,
            world.luck.choice((5.0, 4 * world.sweep_seconds)),
        )
        self.process = None
        self.front = None
        self.is_wanted = True

    @property
    def is_running(self):
        return self.process is not None and self.process.frozen is None

    @property
    def is_listening(self):
        return (
            self.is_running
            and self.front is not None
            and self.front.is_serving
        )

    def start(self):
        if self._scheduler.is_asleep:
            self._start_again()
            return
        self._starts += 1
        self.process = Process(f"server.{self._starts}")
        Thread(self._run, "main").begin(self.process)

    def stop(self):
        """Ask for an orderly stop; the supervisor starts it again when it has ended. Whether it listened."""
        if not self.is_listening:
            return False
        Thread(self.process.stop, "signal").begin(self.process)
        return True

    def crash(self, is_power_cut=False):
        """Whether it ran."""
        process = self.process
        if process is None:
            return False
        self.process = self.front = None
        self._world.look()
        self._scheduler.kill(process)
        if is_power_cut:
            self._world.disk.cut(process)
        self._world.disk.close(process)
        self._start_again()
        return True

    def _run(self):
        process = self._scheduler.own_thread().process
        self.front = Front(process, self._serves)
        front = self.front
        try:
            service.Service(
                self._world.config,
                front,
                front,
                clock=self._scheduler.wall,
            ).run()
        except StartupError as error:
            self._failed_starts += 1
            self._world.show(f"the server does not start: {error}")
        self._scheduler.after(0, self._ended, process)

    def _serves(self):
        """It has begun to serve, or ceased to."""
        self._failed_starts = 0
        self._world.look()

    def _ended(self, process):
        if process is self.process:
            self.crash()

    def _start_again(self):
        if self.is_wanted:
            seconds = self._world.luck.uniform(*self._restart_seconds)
            longest = max(seconds, LONGEST_RESTART_SECONDS)
            self._scheduler.after(
                min(seconds * 2**self._failed_starts, longest), self.start
            )

    def ask(  # noqa: PLR0917
        self, method, path, told, late, body=None, key=""
    ):
        """Send a request. `told` has the answer or, after `CLIENT_SECONDS`, none; `late` one that came after that, or
        none where there will be none."""
        process = self.process
        front = self.front
        is_refused = front is None or not front.is_serving
        if not (is_refused or self.is_running):
            is_refused = len(process.requests) >= BACKLOG
        if is_refused:
            self._scheduler.after(0.01, told, REFUSED, {})
            return
        request = _request(method, path, body, key)
        exchange = _Exchange(told, late)
        process.requests[exchange] = exchange.lost
        self._scheduler.after(CLIENT_SECONDS, exchange.give_up)

        def answer():
            response = response_of(front.router, request)
            del process.requests[exchange]
            # By the network, so outside the server's threads.
            told = json.loads(response.body) if response.body else {}
            self._scheduler.after(0, exchange.tell, response.status, told)

        Thread(answer, "request").begin(process)


def _request(method, path, body, key):
    headers = {"authorization": f"Bearer {key}"} if key else {}
    sent = b""
    if body is not None:
        headers["content-type"] = "application/json"
        sent = json.dumps(body).encode()
    return Request(method, path, path, "", headers, sent)


class _Exchange:
    """One request: its client is told once, of an answer or that it gives up; what comes later is told apart."""

    def __init__(self, told, late):
        self._told = told
        self._late = late

    def tell(self, status, answer):
        told = self._told or self._late
        self._told = None
        told(status, answer)

    def give_up(self):
        if self._told:
            self.tell(0, {})

    def lost(self):
        self.give_up()
        self._late(0, {})
