"""How many descriptors each part may hold at once, so that none takes those of another."""

import errno
from typing import Final, NamedTuple

from cardbeat.errors import Unavailable
from cardbeat.host.system import MOST_SOCKETS, descriptor_limit

OTHERS: Final = 128
"""For the database, fonts, stored cards and the log, which take 20 to 40, and the listener."""


EACH_SENDER: Final = 2
"""What one post of an alert holds."""


class Shares(NamedTuple):
    """The most clients, each with one descriptor, and posts of alerts at once."""

    clients: int = 10_000
    senders: int = 128


def shares() -> Shares:
    """The shares under the process's limit of descriptors, which is raised first if it may be."""
    most = Shares()
    limit = descriptor_limit(most.clients + EACH_SENDER * most.senders + OTHERS)
    rest = max(limit // 4, limit - OTHERS)
    senders = max(1, min(most.senders, rest // 4 // EACH_SENDER))
    clients = min(rest - EACH_SENDER * senders, (MOST_SOCKETS or limit) - 2)
    return Shares(clients, senders)


def raise_if_lacking(error: OSError) -> None:
    """Raise `Unavailable` if the error says that this host lacks descriptors or memory."""
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
        sentence = "This server has too many files open; try again in a moment."
        raise Unavailable("busy", sentence, 1) from None
