"""The option `--report-to`: a GET to another monitor after each sweep.

That monitor alarms when the GETs stop.
"""

import logging
import threading

from cardbeat import __version__

log = logging.getLogger(__name__)

DEADLINE_SECONDS = 10


def report(url: str) -> None:
    """Request `url` in a thread of its own, so that no sweep waits for it.

    A failure is logged and not repeated: the next sweep reports again.
    """
    threading.Thread(
        target=_request, args=(url,), name="report", daemon=True
    ).start()


def _request(url: str) -> None:
    from urllib.request import Request, urlopen  # noqa: PLC0415 - few servers report

    try:
        headers = {"User-Agent": f"cardbeat/{__version__}"}
        asked = Request(url, headers=headers)  # noqa: S310 - the operator's URL
        urlopen(asked, timeout=DEADLINE_SECONDS).close()  # noqa: S310
    except Exception as error:
        log.warning("the report to the other monitor failed: %s", error)
