"""The receivers of alerts, and what a post to one of them meets."""

import json
from urllib.parse import urlsplit

from cardbeat.heartbeat.alerts.limits import POST_SECONDS, Postponed
from cardbeat.heartbeat.alerts.message import Outcome
from tests.model import threads

ANSWERS = {
    "takes": Outcome(204),
    "refuses": Outcome(error="The connection was refused."),
    "is gone": Outcome(410, "The receiver answered 410."),
    "redirects": Outcome(
        302, "The receiver answered 302; redirects are not followed."
    ),
    "fails": Outcome(500, "The receiver answered 500."),
    "is busy": Outcome(
        429, "The receiver answered 429.", retry_after="120"
    ),
    "is hasty": Outcome(
        503, "The receiver answered 503.", retry_after="1"
    ),
}
"""What a receiver does with a post at once, by the name of that; one that hangs does nothing."""
ASKED_SECONDS = {
    does: int(outcome.retry_after)
    for does, outcome in ANSWERS.items()
    if outcome.retry_after
}
"""What a receiver that does this asks for by `Retry-After`."""
STEADY = frozenset(ANSWERS)
HANGS = "hangs"
SLOW = "is slow"
LATE = Outcome(error="There was no complete answer within 10 seconds.")


class Network:
    """Told of each post: `began` before anything is sent, then `met` with what the receiver does, and `received` when
    that has it.
    """

    def __init__(self, luck, hosts):
        self.luck = luck
        self.doing = dict.fromkeys(hosts, "takes")
        self.began = lambda _id, _url: None
        self.met = lambda _id, _url, _does: None
        self.received = lambda _id, _url, _does, _outages: None

    def post(self, url, headers, body, attempt):
        """As `Sender.post`. Raises `Postponed` as that does."""
        host = urlsplit(url).hostname or ""
        # Each host has one address.
        if not attempt.enter(host):
            raise Postponed
        identity = headers["webhook-id"]
        outages = json.loads(body)["data"].get("outages", 0)
        self.began(identity, url)
        self._sleep(self.luck.uniform(0.005, 0.1))
        does = self.doing.get(host, "takes")
        self.met(identity, url, does)
        if does == SLOW:
            self._sleep(self.luck.uniform(0.5, 1.9))
            does = "takes"
        if does == HANGS:
            # It has it, or has not; the answer never comes.
            if self.luck.random() < 0.5:
                self.received(identity, url, does, outages)
            self._sleep(POST_SECONDS)
            return LATE
        self.received(identity, url, does, outages)
        self._sleep(self.luck.uniform(0.005, 0.1))
        return ANSWERS[does]

    @staticmethod
    def _sleep(seconds):
        threads.SCHEDULER.sleep(seconds)
