"""The option `--report-to`: a GET to another monitor after each sweep.

That monitor alarms when the GETs stop.
"""

import logging
import threading
from urllib.parse import urlsplit

from cardbeat import __version__

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 10


class Report:
    """Requests `url` at each call, in a thread of its own, so that no sweep waits for it.

    A call during a request is left out. Failures are logged and not repeated: the next sweep
    reports again.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._under_way = threading.Lock()

    def __call__(self) -> None:
        if not self._under_way.acquire(blocking=False):
            log.warning("the report to the other monitor is still under way; this one is left out")
            return
        try:
            threading.Thread(target=self._report, name="report", daemon=True).start()
        except RuntimeError as error:
            self._under_way.release()
            log.warning("the report to the other monitor failed: %s", error)

    def _report(self) -> None:
        try:
            status = get_status(self._url)
            if not 200 <= status < 300:
                log.warning("the report to the other monitor was answered %d", status)
        except Exception as error:
            log.warning("the report to the other monitor failed: %s", error)
        finally:
            self._under_way.release()


def get_status(url: str, seconds: float = DEADLINE_SECONDS) -> int:
    """The status of a GET, which follows no redirect.

    Raises `OSError` or `http.client.HTTPException`, if nothing comes for `seconds` or no HTTP.
    """
    import http.client  # noqa: PLC0415 - imports much, and few servers report

    parts = urlsplit(url)
    connect: type[http.client.HTTPConnection] = http.client.HTTPConnection
    if parts.scheme == "https":
        connect = http.client.HTTPSConnection
    connection = connect(parts.hostname or "", parts.port, timeout=seconds)
    try:
        target = parts._replace(scheme="", netloc="", fragment="").geturl()
        headers = {"User-Agent": f"cardbeat/{__version__}", "Connection": "close"}
        connection.request("GET", target or "/", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()
