"""Host names to addresses, with a deadline that a silent name server cannot stretch."""

import ipaddress
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future

from cardbeat.heartbeat.target import IpAddress

LOOKUPS = 1000
"""Names looked up at once at the most. A silent name server holds one of them for each of its names."""


def system_addresses(host: str) -> list[IpAddress]:
    """What the system's resolver says, in its order of preference. Raises `OSError` where it knows nothing."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A dict keeps the order and drops doubles.
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


class Resolver:
    """`lookup` blocks for as long as it likes, so each name has at most one thread that waits for it."""

    def __init__(self, lookup: Callable[[str], list[IpAddress]] = system_addresses) -> None:
        self._lookup = lookup
        self._lock = threading.Lock()
        self._running: dict[str, Future[list[IpAddress]]] = {}

    def addresses(self, host: str, seconds: float) -> list[IpAddress]:
        """Raises `TimeoutError` after `seconds`, or `OSError` for a name without an address."""
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
