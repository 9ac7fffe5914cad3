"""The option `--report-to`: a GET to another monitor after each sweep. That monitor alarms when the GETs stop."""

import logging
import threading
import time
from urllib.parse import urlsplit

from cardbeat import __version__
from cardbeat.concurrency.threads import DaemonThread

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 10
_LONGEST_STATUS_LINE = 4096


class Report:
    """Requests `url` at each call, in a thread of its own, so that no sweep waits for it.

    A call during a request is left out. Failures are logged and not repeated: the next sweep reports again.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._under_way = threading.Lock()

    def __call__(self) -> None:
        if not self._under_way.acquire(blocking=False):
            log.warning("the report to the other monitor is still under way; this sweep goes unreported")
            return
        try:
            DaemonThread(self._report, "report").start()
        except RuntimeError as error:
            self._under_way.release()
            log.warning("the report to the other monitor failed: %s", error)

    def _report(self) -> None:
        try:
            status = get_status(self._url, DEADLINE_SECONDS)
            if not 200 <= status < 300:
                log.warning("the report to the other monitor was answered %d", status)
        except Exception as error:
            log.warning("the report to the other monitor failed: %s", error)
        finally:
            self._under_way.release()


def get_status(url: str, seconds: float) -> int:
    """The status of a GET; follows no redirect. Raises `OSError` or `ValueError` if none came in time."""
    import http.client  # noqa: PLC0415 - imports much, and few servers report

    ends = time.monotonic() + seconds
    parts = urlsplit(url)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=seconds)
    try:
        target = parts.path or "/"
        connection.request("GET", f"{target}?{parts.query}" if parts.query else target, headers=_HEADERS)
        line = b""
        while b"\n" not in line and len(line) < _LONGEST_STATUS_LINE:
            # Read from the socket: a timeout of http.client starts again with each byte that arrives.
            connection.sock.settimeout(max(0.001, ends - time.monotonic()))
            received = connection.sock.recv(_LONGEST_STATUS_LINE)
            if not received:
                break
            line += received
        version, status = line.split(maxsplit=2)[:2]
        if not version.startswith(b"HTTP/1."):
            raise ValueError("the answer is not HTTP")
        return int(status)
    finally:
        connection.close()


_HEADERS = {"User-Agent": f"cardbeat/{__version__}", "Connection": "close"}
