"""The option `--report-to`: a GET to another monitor after each sweep.

That monitor alarms when the GETs stop.
"""

import logging
import threading

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
            log.warning(
                "the report to the other monitor is still under way; this one is left out"
            )
            return
        try:
            threading.Thread(
                target=self._report, name="report", daemon=True
            ).start()
        except RuntimeError as error:
            self._under_way.release()
            log.warning(
                "the report to the other monitor failed: %s", error
            )

    def _report(self) -> None:
        from urllib.request import Request, urlopen  # noqa: PLC0415 - few servers report

        try:
            headers = {"User-Agent": f"cardbeat/{__version__}"}
            asked = Request(self._url, headers=headers)  # noqa: S310 - the operator's URL
            urlopen(asked, timeout=DEADLINE_SECONDS).close()  # noqa: S310
        except Exception as error:
            log.warning(
                "the report to the other monitor failed: %s", error
            )
        finally:
            self._under_way.release()
