"""Servers of a small site on a socket, and clients of them."""

import contextlib

import pytest

from tests.server.sockets import Client, Clock, Site, starting


@pytest.fixture
def site():
    return Site()


@pytest.fixture
def clock():
    return Clock(0)


@pytest.fixture
def serve(site):
    """Starts servers of the site, with limits and options."""
    with starting(site.router) as serve:
        yield serve
        site.let_go.set()


@pytest.fixture
def connect():
    """Connects clients, which are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(
            Client(*args, **options)
        )


@pytest.fixture
def talk(serve, connect):
    """Connects a client to a server of its own, which gets the limits and options."""
    return lambda data=b"", *args, **options: connect(
        serve(*args, **options), data
    )
