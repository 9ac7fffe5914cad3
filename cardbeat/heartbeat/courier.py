"""One attempt at the first alert of a line: read it, post it, judge what came of it."""

import logging
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cardbeat.clock import Clock
from cardbeat.heartbeat.lanes import Line
from cardbeat.heartbeat.outbox import Attempt, Letter, Outbox
from cardbeat.heartbeat.retries import verdict
from cardbeat.heartbeat.target import Refused, parse
from cardbeat.heartbeat.webhook import Outcome, body_for, signed_headers

log = logging.getLogger(__name__)

Post = Callable[[str, Mapping[str, str], bytes], Outcome]
"""URL, headers and body to what came of it."""

_NO_URL = Outcome(error="The check has no webhook URL any more.", final=True)
_BROKEN = Outcome(error="The alert could not be sent; the server's log says why.")


@dataclass(frozen=True, slots=True)
class Report:
    """What a courier brings back.

    `attempt` is to be stored, if one was made. Without `wait_seconds` the line's first alert is finished or gone.
    `host` is the line's new host where its check has a new URL.
    """

    line: Line
    attempt: Attempt | None = None
    wait_seconds: float | None = None
    host: str | None = None


class Courier:
    """Holds nothing between attempts: one serves all threads."""

    def __init__(self, outbox: Outbox, post: Post, clock: Clock) -> None:
        self._outbox = outbox
        self._post = post
        self._clock = clock

    def attempt(self, line: Line) -> Report:
        """Raises what reading the database raises; whatever the post does is in the report."""
        letter = self._outbox.letter(line.alerts[0])
        if letter is None:
            return Report(line)
        host = host_of(letter.webhook_url)
        if host != line.host:
            return Report(line, wait_seconds=0, host=host)
        return self._judged(line, letter, self._outcome(letter))

    def _outcome(self, letter: Letter) -> Outcome:
        if letter.webhook_url is None:
            return _NO_URL
        try:
            body = body_for(letter.webhook_url, letter.body)
            headers = signed_headers(letter.id, int(self._clock()), body, letter.webhook_secret)
            return self._post(letter.webhook_url, headers, body)
        except Exception:
            log.exception("alert %s could not be sent", letter.id)
            return _BROKEN

    def _judged(self, line: Line, letter: Letter, outcome: Outcome) -> Report:
        now = self._clock()
        judged = verdict(outcome, letter.attempts + 1, now, random.random())  # noqa: S311 - jitter
        wait_seconds = judged.wait_seconds
        next_attempt_at = None if wait_seconds is None else math.ceil(now + wait_seconds)
        attempt = Attempt(line.alerts[0], judged.state, outcome.status, outcome.error, next_attempt_at)
        return Report(line, attempt, wait_seconds)


def host_of(webhook_url: str | None) -> str:
    """Which host's queue a URL belongs to, whatever its port; those that are refused share one."""
    try:
        return parse(webhook_url or "").host
    except Refused:
        return ""
