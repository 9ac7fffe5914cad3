"""How many descriptors each part may hold at once, so that none takes those of another."""

import errno
from typing import Final, NamedTuple

from cardbeat.errors import Unavailable
from cardbeat.host.system import MOST_SOCKETS, descriptor_limit

OTHERS: Final = 128
"""For the database, fonts, stored cards and the log, which take 20 to 40, and two for the listener and the loop."""


class Shares(NamedTuple):
    """The most clients, posts of alerts and lookups of names at once. Each holds one descriptor."""

    clients: int = 10_000
    couriers: int = 512
    lookups: int = 256


def shares() -> Shares:
    """The shares under the process's limit of descriptors, which is raised first if it may be."""
    _, couriers, lookups = most = Shares()
    limit = descriptor_limit(sum(most) + OTHERS)
    rest = max(limit // 4, limit - OTHERS)
    couriers, lookups = max(1, min(couriers, rest // 4)), max(2, min(lookups, rest // 8))
    return Shares(min(rest - couriers - lookups, (MOST_SOCKETS or limit) - 2), couriers, lookups)


def raise_if_lacking(error: OSError) -> None:
    """Raise `Unavailable` if the error says that this host lacks descriptors or memory."""
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
        raise Unavailable("busy", "This server has too many files open; try again in a moment.", 1) from None
