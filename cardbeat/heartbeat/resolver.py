"""Host names to addresses, with a deadline: `getaddrinfo` has none, so each lookup gets a thread to be left behind."""

import ipaddress
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future

from cardbeat.heartbeat.target import IpAddress

LOOKUPS = 1000
"""Lookups at once at the most. Each name of a silent name server occupies one until the system gives up."""


def system_addresses(host: str) -> list[IpAddress]:
    """What the system's resolver says, in its order of preference. Raises `OSError` where it knows nothing."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A dict keeps the order and drops doubles.
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


class Resolver:
    """Looks up names for any number of threads, with one lookup of a name at a time (single flight).

    `lookup` may block for as long as it likes.
    """

    def __init__(self, lookup: Callable[[str], list[IpAddress]] = system_addresses) -> None:
        self._lookup = lookup
        self._lock = threading.Lock()
        # By host; read and written under the lock only.
        self._running: dict[str, Future[list[IpAddress]]] = {}

    def addresses(self, host: str, seconds: float) -> list[IpAddress]:
        """The addresses of a name, in order of preference.

        Raises `TimeoutError` after `seconds`, or at once while too many lookups run; `OSError` for a name without any.
        """
        with self._lock:
            future = self._running.get(host)
            if future is None:
                future = self._start(host)
        return future.result(timeout=seconds)

    def _start(self, host: str) -> "Future[list[IpAddress]]":
        if len(self._running) >= LOOKUPS:
            raise TimeoutError("too many names are being looked up")
        future: Future[list[IpAddress]] = Future()
        threading.Thread(target=self._run, args=(host, future), name="webhook-resolver", daemon=True).start()
        self._running[host] = future
        return future

    def _run(self, host: str, future: "Future[list[IpAddress]]") -> None:
        try:
            addresses = self._lookup(host)
            if not addresses:
                raise socket.gaierror(socket.EAI_NONAME, "no address")
        except Exception as error:
            outcome: list[IpAddress] | Exception = error
        else:
            outcome = addresses
        with self._lock:
            del self._running[host]
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
