"""One attempt to deliver an alert: read it, post it, judge the outcome."""

import logging
import math
import random
import re
import traceback
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cardbeat.clock import Clock, utc_text
from cardbeat.errors import Unavailable
from cardbeat.heartbeat.delivery.lanes import CheckQueue
from cardbeat.heartbeat.delivery.retries import ASKED, verdict
from cardbeat.heartbeat.outbox.alert import Outcome, signed_headers
from cardbeat.heartbeat.outbox.alerts import Alerts, Message
from cardbeat.heartbeat.outbox.attempts import Attempt
from cardbeat.heartbeat.webhooks.permit import Permit, Postponed
from cardbeat.heartbeat.webhooks.target import receiver_of
from cardbeat.log import cut

log = logging.getLogger(__name__)

Post = Callable[[str, Mapping[str, str], bytes, Permit], Outcome]
"""Sends a body with headers to a URL and returns the outcome. Raises `Postponed`."""

_BROKEN = Outcome(error="The alert could not be sent; the server's log says why.")


class Result(NamedTuple):
    """The result of an attempt, to be stored as `attempt` if one was made.

    The same alert is tried again after `wait_seconds`. If that is None, the database tells the check's next alert.
    `is_held` if its address may get no more posts until then.
    """

    queue: CheckQueue
    attempt: Attempt | None = None
    wait_seconds: float | None = None
    is_held: bool = False


class Courier:
    """Makes attempts. It has no state, so any number of threads may use it."""

    def __init__(self, alerts: Alerts, post: Post, clock: Clock) -> None:
        self._alerts = alerts
        self._post = post
        self._clock = clock

    def attempt(self, queue: CheckQueue, permit: Permit) -> Result:
        """Post the queue's alert. Raises `Postponed`, and `Unavailable` if it can't be read or descriptors lack.

        Any other error of the post is a failed attempt.
        """
        if self._alerts.database.fence is not None:
            # Another host reads it.
            permit.leave_turn()
        message = self._alerts.message(queue.alert, int(self._clock()))
        url = None if message is None else message.webhook_url
        if message is None or url is None or receiver_of(url) != (queue.host, queue.port):
            # Finished, deleted, or moved to another host or port, whose limits must count it.
            return Result(queue)
        return self._judged(queue, message, url, self._outcome(message, url, permit))

    def _outcome(self, message: Message, url: str, permit: Permit) -> Outcome:
        from cardbeat.heartbeat.webhooks.receivers import request_for  # noqa: PLC0415 - a start does without its patterns

        try:
            address, body = request_for(url, message.body)
            headers = signed_headers(message.id, int(self._clock()), body, *message.secrets)
            permit.leave_turn()
            return self._post(address, headers, body, permit)
        except (Postponed, Unavailable):
            raise
        except Exception:
            # The trace, with the URL cut after its host: the rest may be a secret.
            secret = re.split(r"(?<![:/])[/?]", url, maxsplit=1)[-1]
            trace = traceback.format_exc().replace(secret, cut(secret))
            log.error("alert %s could not be sent\n%s", message.id, trace)
            return _BROKEN

    def _judged(self, queue: CheckQueue, message: Message, url: str, outcome: Outcome) -> Result:
        now = self._clock()
        luck = random.random()  # noqa: S311 - jitter
        judged = verdict(outcome, message.attempts + (not queue.is_extra), now, luck)
        wait_seconds, error, counted = judged.wait_seconds, outcome.error, 1
        if judged.asked_seconds > 0:
            error = f"{error}{ASKED}{utc_text(now + judged.asked_seconds)}."
        if queue.is_extra and wait_seconds is not None:
            wait_seconds, counted = max(judged.asked_seconds, 0), 0
        next_attempt_at = None if wait_seconds is None else math.ceil(now + wait_seconds)
        told = judged.state, outcome.status, error, next_attempt_at
        return Result(queue, Attempt(queue.alert, message.id, *told, url, message.attempts, counted), wait_seconds)
