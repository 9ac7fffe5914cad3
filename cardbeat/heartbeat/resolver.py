"""Host names to addresses, with a deadline: `getaddrinfo` has none, so each lookup gets a thread to be left behind."""

import ipaddress
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from cardbeat.fair_queue import FairQueue
from cardbeat.heartbeat.target import IpAddress

LOOKUPS = 256
"""Lookups at once at the most. Each name of a silent name server occupies one until the system gives up."""
KEPT_SHARE = 4
"""One in so many of these is kept for names that were found before."""
REMEMBERED = 10_000
"""Names of which it is remembered that they were found."""

_Found = Future[list[IpAddress]]


def system_addresses(host: str) -> list[IpAddress]:
    """What the system's resolver says, in its order of preference. Raises `OSError` where it knows nothing."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A dict keeps the order and drops doubles.
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


def family_of(address: IpAddress) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def is_own(address: IpAddress) -> bool:
    """Whether an address is this host's own: there the system would speak from that address itself. Nothing is sent."""
    try:
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError:
        # No way leads there.
        return False


class Resolver:
    """Looks up names for any number of threads, with one lookup of a name at a time (single flight).

    Lookups wait in turns by key, and a key may have no more under way than could still begin for others. So keys whose
    names are not answered leave room for the next key. `lookup` may block for as long as it likes.
    """

    def __init__(self, lookup: Callable[[str], list[IpAddress]] = system_addresses) -> None:
        self._lookup = lookup
        # Read and written under the lock only, all of them.
        self._lock = threading.Lock()
        self._waiting = tuple(FairQueue[tuple[str, _Found]](sys.maxsize) for _ in (False, True))
        """By whether the name was found before. No more wait than there are threads that ask."""
        self._running: tuple[dict[str, _Found], dict[str, _Found]] = ({}, {})
        """The same way, by host."""
        self._found_before: dict[str, None] = {}

    def addresses(self, host: str, seconds: float, key: str = "") -> list[IpAddress]:
        """The addresses of a name, in order of preference, asked for in a turn of this key.

        Raises `TimeoutError` after `seconds`, if a thread could be started; `OSError` for a name without any.
        """
        future: _Found = Future()
        with self._lock:
            self._waiting[host in self._found_before].put(key, (host, future))
            begun = self._begun()
        self._start(begun)
        try:
            return future.result(timeout=seconds)
        finally:
            # If it has not begun, it need not any more.
            future.cancel()

    def _begun(self) -> list["_Lookup"]:
        """The lookups whose turn it is, each of which needs a thread now."""
        begun = []
        for known in (True, False):
            waiting = self._waiting[known]
            while (free := self._free(known)) > 0 and (taken := waiting.take(free)) is not None:
                key, (host, future) = taken
                same = self._running[True].get(host) or self._running[False].get(host)
                is_wanted = future.set_running_or_notify_cancel()
                if is_wanted and same is None:
                    self._running[known][host] = future
                    begun.append(_Lookup(known, key, host, future))
                    continue
                waiting.done(key, 0)
                if is_wanted and same is not None:
                    same.add_done_callback(partial(_copy, future))
        return begun

    def _free(self, known: bool) -> int:
        """How many more lookups could begin, of names that were found before or of others."""
        others = len(self._running[False])
        free = LOOKUPS - len(self._running[True]) - others
        return free if known else min(free, LOOKUPS - LOOKUPS // KEPT_SHARE - others)

    def _start(self, begun: list["_Lookup"]) -> None:
        """Start a thread for each of these. Where the system grants none, they are looked up in this one."""
        while begun:
            one = begun.pop(0)
            try:
                threading.Thread(target=self._run, args=(one,), name="webhook-resolver", daemon=True).start()
            except (RuntimeError, MemoryError):
                # Without a deadline: to tell of an attempt that was none would be worse.
                begun += self._looked_up(one)

    def _run(self, one: "_Lookup") -> None:
        self._start(self._looked_up(one))

    def _looked_up(self, one: "_Lookup") -> list["_Lookup"]:
        """Look up one; those that may begin now."""
        began = time.monotonic()
        outcome: list[IpAddress] | Exception
        try:
            outcome = self._lookup(one.host) or socket.gaierror(socket.EAI_NONAME, "no address")
        except Exception as error:
            outcome = error
        return self._ended(one, time.monotonic() - began, outcome)

    def _ended(self, one: "_Lookup", seconds: float, outcome: list[IpAddress] | Exception) -> list["_Lookup"]:
        """Tell who waits for it; the lookups that may begin now."""
        with self._lock:
            del self._running[one.known][one.host]
            self._waiting[one.known].done(one.key, seconds)
            self._remember(one.host, isinstance(outcome, list))
            begun = self._begun()
        if isinstance(outcome, Exception):
            one.future.set_exception(outcome)
        else:
            one.future.set_result(outcome)
        return begun

    def _remember(self, host: str, found: bool) -> None:
        self._found_before.pop(host, None)
        if found:
            self._found_before[host] = None
        if len(self._found_before) > REMEMBERED:
            del self._found_before[next(iter(self._found_before))]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """One that is under way; `known` if its name was found before."""

    known: bool
    key: str
    host: str
    future: _Found


def _copy(future: _Found, done: _Found) -> None:
    """Give one that waits for the same name what another has brought."""
    if (error := done.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())
