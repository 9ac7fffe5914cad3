"""A key and a check of it, for what is done with them."""

import contextlib
import json
import re
import threading
import time

import pytest

from cardbeat import cli
from tests.kit.support import GOOD_CHECK, App, FakeClock, service_of
from tests.service.customer import (
    PERIOD_SECONDS,
    Customer,
    One,
    delivering,
)


@pytest.fixture
def app_of(config, clock):
    """Makes an application with other options; those before it are closed."""
    with contextlib.ExitStack() as stack:

        def make(**options):
            stack.close()
            service = service_of(config._replace(**options), clock)
            stack.callback(service.close)
            return App(service, clock)

        yield make


@pytest.fixture
def key(app):
    return app.checks_key()


@pytest.fixture
def check(app, key):
    return create(app, key)


@pytest.fixture
def one(app, key, check):
    return One(app, key, check)


def create(app, key, **changes):
    return app.json("POST", "/checks", GOOD_CHECK | changes, key=key)[
        "check"
    ]


def pages(app, key, target):
    """The pages from a target on. The `Link` of each must agree with its `next`."""
    while target:
        answer = app("GET", target, key=key)
        page = json.loads(answer.body)
        yield page
        link = answer.headers.get("Link")
        assert (link is None) == (page["next"] is None)
        target = link and re.search("/checks[^>]+", link)[0]


@contextlib.contextmanager
def served(app):
    """The URL of an application that answers on a socket."""
    server = app.service.server
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.url
    server.shutdown()
    thread.join()


@pytest.fixture
def checks(capsys):
    """Runs the command `checks`; its exit status, and what it printed on stdout and stderr."""

    def run(*argv):
        status = cli.main(["checks", *map(str, argv)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def customer(config):
    # The verifier compares with its own clock.
    clock = FakeClock(time.time() - PERIOD_SECONDS - 1)
    customer = Customer(delivering(config, clock))
    yield customer
    customer.app.service.close()
