"""One attempt at the first alert of a check's queue: read it, post it, judge what came of it."""

import logging
import math
import random
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cardbeat.clock import Clock
from cardbeat.heartbeat.alert import Outcome, signed_headers
from cardbeat.heartbeat.alerts import Alerts, Message
from cardbeat.heartbeat.attempts import Attempt
from cardbeat.heartbeat.lanes import CheckQueue
from cardbeat.heartbeat.permit import Permit, Postponed
from cardbeat.heartbeat.receivers import request_for
from cardbeat.heartbeat.retries import verdict
from cardbeat.heartbeat.target import host_of
from cardbeat.log import cut

log = logging.getLogger(__name__)

Post = Callable[[str, Mapping[str, str], bytes, Permit], Outcome]
"""Sends a body with headers to a URL, and tells what came of it. Raises `Postponed`."""

WITHOUT_URL_SECONDS = 60.0
"""How often it is looked whether a check that has alerts and no webhook URL has one again, where nobody tells of it."""
_BROKEN = Outcome(error="The alert could not be sent; the server's log says why.")


@dataclass(frozen=True, slots=True)
class Result:
    """What is to be done after an attempt.

    `attempt` is to be stored, if one was made. The queue's first alert is tried again after `wait_seconds`; without
    these it is finished or gone. `host` is the queue's new host, where its check has another URL by now.
    """

    queue: CheckQueue
    attempt: Attempt | None = None
    wait_seconds: float | None = None
    host: str | None = None


class Courier:
    """Makes attempts, in any number of threads at once: it holds nothing between them."""

    def __init__(self, alerts: Alerts, post: Post, clock: Clock) -> None:
        self._alerts = alerts
        self._post = post
        self._clock = clock

    def attempt(self, queue: CheckQueue, permit: Permit) -> Result:
        """Raises `Unavailable` when the alert can't be read, and `Postponed`; whatever else the post raises is a failed
        attempt.
        """
        message = self._alerts.message(queue.alerts[0])
        if message is None:
            return Result(queue)
        url = message.webhook_url
        if url is None:
            # No attempt: the check's alerts wait until it has a URL again.
            return Result(queue, wait_seconds=WITHOUT_URL_SECONDS)
        host = host_of(url)
        if host != queue.host:
            # Not posted yet: it has to count for the limits of its new host.
            return Result(queue, wait_seconds=0, host=host)
        return self._judged(queue, message, url, self._outcome(message, url, permit))

    def _outcome(self, message: Message, url: str, permit: Permit) -> Outcome:
        try:
            address, body = request_for(url, message.body)
            now = int(self._clock())
            headers = signed_headers(message.id, now, body, *message.secrets_at(now))
            return self._post(address, headers, body, permit)
        except Postponed:
            raise
        except Exception:
            log.error("alert %s could not be sent\n%s", message.id, _trace(url))
            return _BROKEN

    def _judged(self, queue: CheckQueue, message: Message, url: str, outcome: Outcome) -> Result:
        now = self._clock()
        judged = verdict(outcome, message.attempts + 1, now, random.random())  # noqa: S311 - jitter
        wait_seconds = judged.wait_seconds
        next_attempt_at = None if wait_seconds is None else math.ceil(now + wait_seconds)
        told = judged.state, outcome.status, outcome.error, next_attempt_at
        attempt = Attempt(queue.alerts[0], message.id, *told, url, message.attempts)
        return Result(queue, attempt, wait_seconds)


def _trace(url: str) -> str:
    """The trace of the exception at hand, without what comes after the host in a URL: that may be a secret."""
    secret = re.split(r"(?<![:/])[/?]", url, maxsplit=1)[-1]
    return traceback.format_exc().replace(secret, cut(secret))
