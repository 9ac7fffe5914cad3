"""What tests are made with: a clock that only they move, and the application without a socket."""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from cardbeat.web.loop import Loop
from cardbeat.web.message import (
    Request,
    Response,
    header_lines,
    network_of,
)
from cardbeat.web.router import Awaited, refusal_of
from cardbeat.web.server import listen

GOOD_CHECK = {
    "name": "nightly backup",
    "period_seconds": 3600,
    "grace_seconds": 60,
    "webhook_url": "https://hooks.example/x",
}
"""The body that creates a check."""


class FakeClock:
    """A clock that only the test moves."""

    def __init__(self, now=1_800_000_000):
        self.now = now

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


def service_of(config, clock):
    """The service of a config, bound and not serving; whoever asks for it closes it."""
    from cardbeat.service import Service

    return Service(
        config, listen(config.host, config.port), Loop(), clock=clock
    )


class App:
    """The whole application without a socket: requests go to its router as values."""

    def __init__(self, service, clock):
        self.service = service
        self.clock = clock

    def __call__(
        self,
        method,
        target,
        json_body=None,
        *,
        key=None,
        body=b"",
        headers=None,
        client="127.0.0.1",
    ):
        sent = dict(headers or {})
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        if json_body is not None:
            body = json.dumps(json_body).encode()
            sent.setdefault("content-type", "application/json")
        path, _, query = target.partition("?")
        request = Request(
            method,
            target,
            path,
            query,
            sent,
            body,
            client,
            network_of(client),
            "test",
        )
        return answer_of(self.service.router, request)

    def json(self, *args, **options):
        """The body of an answer that is expected to be JSON."""
        return json.loads(self(*args, **options).body)

    def cards_key(self):
        return self.json("POST", "/register")["key"]

    def checks_key(self):
        body = {"email": "ops@example.com"}
        return self.json("POST", "/register", body)["key"]


def answer_of(router, request):
    """What a client gets for a request, however long it takes, with all headers that are written."""
    return taken(response_of(router, request))


def response_of(router, request):
    try:
        route = router.find(request)
        if route.guard:
            route.guard.judge(request)
            request.key = route.guard.look_up(request)
        return settled(request, route.handler(request))
    except Exception as error:
        return refusal_of(request, error)


def settled(request, answer):
    """The response that a handler's answer becomes in the end."""
    while not isinstance(answer, Response):
        if isinstance(answer, Awaited):
            answer.future.wait()
            answer = answer.answer(request)
        else:
            answer = answer(request)
    return answer


def taken(response):
    """A response as a client has it, with all headers that are written."""
    headers = dict(response.headers)
    for line in (
        header_lines(response).decode("latin-1").split("\r\n")[:-2]
    ):
        name, _, value = line.partition(": ")
        headers[name] = value
    return Response(response.status, response.body, headers)


def count_up(transaction):
    """A write of which `counted` tells how often it was made."""
    sql = "INSERT INTO monitor VALUES ('n', 1) ON CONFLICT (name) DO UPDATE SET value = monitor.value + 1"
    transaction.execute(sql)


def counted(database):
    """None before the first."""
    with database.read() as connection:
        found = connection.execute("SELECT max(value) FROM monitor")
        return found.fetchone()[0]


@contextlib.contextmanager
def writer_held(database):
    """Keep the writer busy, so that what is written meanwhile comes to stand in one group."""
    entered, release = threading.Event(), threading.Event()
    held = begun(
        lambda: database.write(
            lambda _: (entered.set(), release.wait(60))
        )
    )
    assert entered.wait(60)
    try:
        yield
    finally:
        release.set()
    held.result(60)


def begun(deed):
    """Do something in a thread of its own, which has time to come to where it waits.

    `result` returns what it returns, or raises what it raises.
    """
    pool = ThreadPoolExecutor(1)
    future = pool.submit(deed)
    pool.shutdown(wait=False)
    time.sleep(0.02)
    return future


def free_port():
    """One that the system does not give by itself: those begin at 32768 on Linux, or higher."""
    while True:
        port = 10_000 + secrets.randbelow(22_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_until(condition, seconds=60):
    """Return as soon as the condition holds; fail when it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, (
            "this did not come true in time"
        )
        time.sleep(0.01)


@contextlib.contextmanager
def full_disk():
    """A file that takes nothing, for a program's output."""
    with open("/dev/full", "wb") as file:
        yield file


@contextlib.contextmanager
def gone_reader():
    """A pipe that no process reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as file:
        yield file
