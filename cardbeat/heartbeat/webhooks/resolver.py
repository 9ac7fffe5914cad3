"""Resolves host names with a deadline. `getaddrinfo` has none, so each lookup runs in a thread of its own."""

import functools
import ipaddress
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from cardbeat.concurrency.fair_queue import FairQueue
from cardbeat.concurrency.threads import DaemonThread
from cardbeat.heartbeat.webhooks.target import IpAddress
from cardbeat.host.descriptors import raise_if_lacking, shares

KEPT_SHARE = 4
"""One lookup in this many is reserved for names that were resolved before."""
ADDRESSES = 64
"""Addresses of a name that are looked at, and vetted: a name server may give thousands."""
REMEMBERED = 10_000
"""Resolved names that are remembered."""

_Found = Future[list[IpAddress]]


def system_addresses(host: str) -> list[IpAddress]:
    """The addresses from the system's resolver, in its order of preference. Raises `OSError`, and as `is_own`."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        is_own(ipaddress.ip_address("127.0.0.1"))  # the resolver does not tell that it lacked descriptors
        raise
    # A dict keeps the order and drops duplicates.
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found[:ADDRESSES]))


def family_of(address: IpAddress) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def is_own(address: IpAddress) -> bool:
    """Whether an address belongs to this host: it would be a source address. Sends nothing. Raises `Unavailable`."""
    try:
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError as error:
        raise_if_lacking(error)
        # There is no route to it.
        return False


class _Lookup(NamedTuple):
    """A running lookup; `known` if the name was resolved before. Each of the `futures` is that of a waiting thread."""

    known: bool
    key: str
    host: str
    futures: list[_Found]


class Resolver:
    """Looks up names for any number of threads, one lookup of a name at a time (single flight).

    Lookups wait in a fair queue by key. A key can start a lookup only while fewer of its lookups run than slots are
    free, so keys with silent name servers leave slots for the next key. `lookup` may block without limit.
    """

    def __init__(self, lookup: Callable[[str], list[IpAddress]] = system_addresses, lookups: int | None = None) -> None:
        self._lookup = lookup
        self._lookups = lookups or shares().lookups
        # Guards all attributes below.
        self._lock = threading.Lock()
        self._waiting = tuple(FairQueue[tuple[str, _Found]](sys.maxsize) for _ in (False, True))
        """Index 1: names resolved before; index 0: others. What is not awaited any more stays until its turn."""
        self._running: dict[str, _Lookup] = {}
        """By host."""
        self._found_before: dict[str, None] = {}

    def addresses(self, host: str, seconds: float, key: str = "") -> list[IpAddress]:
        """The addresses of a name, in order of preference; the lookup waits in the queue of `key`.

        Raises `OSError` if the name has no address, and `TimeoutError` after `seconds`, unless the system grants no
        thread: then the lookup runs in this one, without a deadline.
        """
        future: _Found = Future()
        with self._lock:
            self._waiting[host in self._found_before].put(key, (host, future))
        self._start_all()
        try:
            return future.result(timeout=seconds)
        finally:
            # If the lookup has not begun, it is not needed any more.
            future.cancel()

    def _start_all(self) -> None:
        """Start a thread for each lookup that may begin now. If the system grants none, look up in this thread."""
        while (lookup := self._next()) is not None:
            try:
                DaemonThread(functools.partial(self._run, lookup), "webhook-resolver").start()
            except (RuntimeError, MemoryError):
                # A late result is better than a failed attempt that was never made.
                self._look_up(lookup)

    def _next(self) -> _Lookup | None:
        """The next lookup that may begin, None if there is none now. Waiting requests for a running one join it."""
        with self._lock:
            for known in (True, False):
                waiting = self._waiting[known]
                while (free := self._free(known)) > 0 and (taken := waiting.take(free)) is not None:
                    key, (host, future) = taken
                    if future.set_running_or_notify_cancel():
                        if host not in self._running:
                            self._running[host] = _Lookup(known, key, host, [future])
                            return self._running[host]
                        self._running[host].futures.append(future)
                    waiting.done(key, 0)
        return None

    def _free(self, known: bool) -> int:
        """The number of free slots for names that were resolved before (`known`), or for others."""
        free = self._lookups - len(self._running)
        others = sum(not lookup.known for lookup in self._running.values())
        return free if known else min(free, self._lookups - self._lookups // KEPT_SHARE - others)

    def _run(self, lookup: _Lookup) -> None:
        self._look_up(lookup)
        self._start_all()

    def _look_up(self, lookup: _Lookup) -> None:
        """Look up one name, and give the outcome to the threads that wait for it."""
        began = time.monotonic()
        found, failure = list[IpAddress](), None
        try:
            found = self._lookup(lookup.host)
        except Exception as error:
            failure = error
        with self._lock:
            del self._running[lookup.host]
            self._waiting[lookup.known].done(lookup.key, time.monotonic() - began)
            self._remember(lookup.host, bool(found))
        for future in lookup.futures:
            if found:
                future.set_result(found)
            else:
                future.set_exception(failure or socket.gaierror(socket.EAI_NONAME, "no address"))

    def _remember(self, host: str, found: bool) -> None:
        self._found_before.pop(host, None)
        if found:
            self._found_before[host] = None
        if len(self._found_before) > REMEMBERED:
            del self._found_before[next(iter(self._found_before))]
