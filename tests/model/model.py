"""The reference: what must hold, whatever goes wrong. It knows what callers were told, what commits recorded, what
receivers got and when nobody could listen, and nothing of how the product works. All times are true seconds.
"""

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from math import inf

from tests.model.troubles import JITTER_SECONDS, SLOWEST_SECONDS, Troubles

MARGIN = 60.0
"""Seconds within which work that is due begins while nothing is wrong, however many want something at once."""
PING_SECONDS = 5.0
"""A ping is answered within this time while nothing is wrong."""
MOST_ROWS = 2500
"""What one transaction changes of what is there: everybody's pings wait for it."""
HANG_SECONDS = 45.0
"""What one post to a receiver that hangs takes at the most; those behind it at its host wait for it."""
REMOVAL_SECONDS = 5 * MARGIN
"""For all that a revoked key leaves, with short pauses between the steps; one may be as long as a poll."""
WAITS = (5, 30, 120, 600, 1800, 7200, 18000, 36000, 50400)
"""Seconds after the first, second ... failed attempt, which luck lengthens by a fifth at most, and a receiver as it
asks."""
HURRIED_SECONDS = 600
"""A new alert lets the one before it be tried, this long after its last try at the earliest."""
HOUR = 3600
MOST_OF_KEY = 240
"""First posts of a key in an hour."""
MOST_TO_HOST = 700
"""And of all keys to an address, which each host has for itself."""
OLDEST_SECONDS = 4 * 86_400
"""An alert that is older has one attempt."""
MOST_ATTEMPTS = 10
MOST_WAITING = 20
"""While so many alerts of a check wait, outages that begin and end behind them are counted only."""


class Violation(Exception):
    """Something that must hold does not."""


@dataclass(slots=True)
class Known:
    """A check as its owner knows it."""

    id: str
    key: str
    sent_at: float
    """When the request was sent that last started its clock, a ping or its creation, and when that was answered."""
    told_at: float
    pings: int = 0
    lost_pings: int = 0
    changes: int = 0
    lost_changes: int = 0
    is_blurred: bool = False
    """Whether a ping was lost since, which may have started the clock too."""
    is_failing: bool = False
    """Whether its owner was last told that a failure is noted, and of no ping since."""
    under_way: int = 0
    """Pings whose senders gave up, and that may still be taken."""
    asked_pings: int = 0
    asked_changes: int = 0
    """Those that are not answered yet."""
    may_be_gone: bool = False
    gone_at: float | None = None
    """When its owner was told that it is deleted, or that its key is revoked."""
    is_deleted: bool = False
    """Whether it was the first; what a revoked key leaves goes later."""
    repeats: set[int | None] = field(default_factory=lambda: {None})
    """What its `repeat_seconds` may be now."""
    moved_at: float = 0.0
    """When its owner was last told that it has another webhook URL."""
    touched_at: float = 0.0
    """When its owner last sent a change or a snooze, or was told what became of one."""
    asked_snoozes: int = 0
    """Those that are not answered yet."""
    snoozed_at: float = 0.0
    snoozed_until: float = 0.0
    """Since when, and until when at the least, it is surely snoozed, if no further snooze is asked for."""
    snoozed_until_most: float = 0.0
    is_clock_of_snooze: bool = False
    """Whether a snooze may have started its clock."""

    @property
    def unsure_changes(self):
        """Those of which its owner has no answer."""
        return self.asked_changes + self.lost_changes

    def is_snoozed(self, moment):
        """Whether it surely was at that moment."""
        if self.asked_snoozes:
            return False
        return (
            self.snoozed_at
            < moment
            < self.snoozed_until - 3 * JITTER_SECONDS
        )

    def may_be_snoozed(self, moment):
        return (
            self.asked_snoozes > 0
            or moment <= self.snoozed_until_most + JITTER_SECONDS
        )


@dataclass(slots=True)
class Told:
    """An alert as it was recorded."""

    id: str
    seq: int
    check_id: str
    type: str
    ping_count: int
    decided_at: float
    recorded_at: float
    due_at: float
    posted_at: float = 0.0
    asked_seconds: int = 0
    """What its receiver has asked for in answer to the last post, by `Retry-After`."""
    not_before: float = 0.0
    """Until then it waits after its last attempt, as far as that is known."""
    attempts: int = 0
    posts: int = 0
    is_taken: bool = False
    is_taken_back: bool = False
    is_finished: bool = False
    set_back: float = 0.0
    """By how many seconds the clock was set back since its last post."""
    set_forward: float = 0.0
    """Likewise forward."""
    aged: float = 0.0
    """Likewise forward, since it was recorded."""
    gone_from: set[str] = field(default_factory=set)
    """The URLs that answered 410 to it."""


@dataclass(slots=True)
class Outage:
    """One that is told, and its reminders so far."""

    began_at: float
    repeats: set[int | None]
    """What `repeat_seconds` may have been since."""
    reminders: int = 0
    newest: str = ""
    """The id of the last reminder."""


class Model:
    """`sweep_seconds` and `poll_seconds` are what the servers run with."""

    def __init__(self, sweep_seconds, poll_seconds):
        self.sweep_seconds = sweep_seconds
        self.poll_seconds = poll_seconds
        self.calm_since = 0.0
        """Since when nothing is wrong; infinity while something is."""
        self.checks = {}
        self.alerts = {}
        self.open = {}
        """Those that wait or are on their way, by `seq`, in that order."""
        self.revoked = {}
        self._steady = set()
        """Keys and the hosts whose last answer to them came at once."""
        self._outages = {}
        self._last_type = {}
        self._outage_of = {}
        """By the id of a check that is overdue."""
        self._recovered_at = {}
        self._first_posts = defaultdict(deque)
        """By key and by host: when alerts were posted for the first time, of late."""
        self._taken_back = Counter()
        """By check: outages that were taken back."""
        self._told_outages = {}
        """By check and alert: how many of these it has told."""
        # A sweep may be left out.
        self._near = 2 * sweep_seconds + MARGIN
        self.troubles = Troubles(sweep_seconds, self._near)

    # What callers are told.

    def answered_ping(self, check, sent_at, now, status):
        if status == 200:
            check.pings += 1
            check.sent_at = sent_at
            check.told_at = now
            check.is_blurred = check.is_failing = False
            check.is_clock_of_snooze &= check.may_be_snoozed(sent_at)
            self.require(
                check.gone_at is None or sent_at <= check.gone_at,
                "a deleted check took a ping",
                check,
            )
        elif status == 404:
            self.require(
                check.may_be_gone,
                "a check is unknown that nobody has deleted",
                check,
            )
        else:
            self.require(
                status == 503, f"a ping was answered {status}", check
            )
            self._require_calm_service(
                sent_at,
                f"a ping was answered {status} while nothing was wrong",
                check,
            )
        if now - sent_at > PING_SECONDS:
            self._require_calm_service(
                sent_at,
                f"a ping took {now - sent_at:.1f} s while nothing was wrong",
                check,
            )

    def answered_failure(self, check, sent_at, now, status):
        """As an answered ping, but it neither counts nor starts the clock."""
        if status != 200:
            self.answered_ping(check, sent_at, now, status)
        else:
            # During a snooze it is noted, and the check stays on time.
            check.is_failing |= not check.may_be_snoozed(sent_at)
            self.require(
                check.gone_at is None or sent_at <= check.gone_at,
                "a deleted check took a failure",
                check,
            )

    def unanswered(self, sent_at, about):
        self._require_calm_service(
            sent_at,
            "a request was not answered while nothing was wrong",
            about,
        )

    def answered_change(self, check, before, version):
        """Made; its owner knew of so many changes `before` it was asked for. Later ones may be answered first."""
        check.changes += 1
        since = check.changes - before - 1
        self.require_between(
            version,
            2 + before,
            since + check.unsure_changes,
            "version",
            check,
        )

    def asks_repeat(self, check, repeats):
        """It may have each of these from now on."""
        check.touched_at = inf
        check.repeats = repeats
        if check.id in self._outage_of:
            self._outage_of[check.id].repeats |= repeats

    def asks_snooze(self, check):
        check.asked_snoozes += 1
        check.is_clock_of_snooze = True
        check.touched_at = inf

    def answered_snooze(self, check, sent_at, now, seconds):
        """It was snoozed for so many seconds, 0 to end that; None if that is not known."""
        check.asked_snoozes -= 1
        check.touched_at = now
        if seconds is None or now < self.calm_since + self._near:
            # Nor is it known after the clock was set, until that is credited.
            check.snoozed_until = 0.0
            check.snoozed_until_most = inf
        else:
            check.snoozed_at = now
            check.snoozed_until = sent_at + seconds
            check.snoozed_until_most = now + seconds

    def _require_calm_service(self, sent_at, sentence, about):
        self.require(sent_at < self.calm_since + MARGIN, sentence, about)

    # What commits record.

    def changed(self, rows):
        self.require(
            rows <= MOST_ROWS,
            f"a transaction changes {rows} rows at once",
            MOST_ROWS,
        )

    def recorded(self, alert):
        """Every outage is told once: of one outage, between two pings, there is one alert of each kind."""
        self.alerts[alert.id] = alert
        self.open[alert.seq] = alert
        if alert.type == "check.test":
            # Who asks for one wants to see now what becomes of those that wait.
            for other in self._waiting(alert.check_id):
                if other.type == "check.test":
                    other.not_before = 0.0
            return
        check = self.checks.get(alert.check_id)
        if check is not None and alert.type != "check.recovered":
            is_snoozed = check.is_snoozed(alert.decided_at)
            self.require(
                not is_snoozed,
                "an alert of a snoozed check is recorded",
                (alert, check),
            )
        if alert.type == "check.reminder":
            self._reminded(alert)
        else:
            self._turned(alert, check)

    def _turned(self, alert, check):
        """An outage begins or ends, in turn."""
        outage = (alert.check_id, alert.type, alert.ping_count)
        self.require(
            outage not in self._outages, "an outage is told twice", alert
        )
        self._outages[outage] = alert.id
        expected = (
            "check.recovered"
            if self.is_told(alert.check_id)
            else "check.overdue"
        )
        self.require(
            alert.type == expected,
            f"{alert.type} follows another one",
            alert,
        )
        self._last_type[alert.check_id] = alert.type
        if alert.type == "check.overdue":
            self._outage_of[alert.check_id] = Outage(
                alert.decided_at, set(check.repeats) if check else set()
            )
        else:
            self._outage_of.pop(alert.check_id, None)
            self._recovered_at[alert.check_id] = alert.recorded_at

    def _reminded(self, alert):
        """A reminder follows an outage that is told, as often as its span has passed since, and no sooner."""
        outage = self._outage_of.get(alert.check_id)
        self.require(
            outage is not None,
            "a reminder is recorded of a check that is not overdue",
            alert,
        )
        assert outage is not None
        outage.reminders += 1
        outage.newest = alert.id
        spans = [
            seconds for seconds in outage.repeats if seconds is not None
        ]
        # A check whose creation is not answered yet is not known.
        self.require(
            bool(spans) or not outage.repeats,
            "a reminder is recorded that was not asked for",
            alert,
        )
        least = outage.reminders * min(spans, default=0)
        # A slow commit that began it may end as the disk is well again, long after the moment that it stores.
        was_calm = self.calm_since < outage.began_at - SLOWEST_SECONDS
        is_early = (
            was_calm
            and alert.decided_at - outage.began_at < least - MARGIN
        )
        self.require(
            not is_early,
            f"{outage.reminders} reminders came too soon",
            (alert, outage),
        )

    def is_taken_back(self, alert):
        """Note an outage that is gone from the alerts, if it ended untold behind many alerts."""
        waiting = sum(
            other.type != "check.test"
            for other in self._waiting(alert.check_id)
        )
        is_newest = (
            self._outages.get(
                (alert.check_id, "check.overdue", alert.ping_count)
            )
            == alert.id
        )
        if (
            alert.type != "check.overdue"
            or alert.posts
            or waiting < MOST_WAITING
            or not is_newest
        ):
            return False
        check = self.checks.get(alert.check_id)
        if check is None or check.may_be_gone:
            return False
        self._taken_back[alert.check_id] += 1
        self._last_type[alert.check_id] = "check.recovered"
        self._outage_of.pop(alert.check_id, None)
        self._recovered_at[alert.check_id] = alert.recorded_at
        alert.is_taken_back = True
        return True

    def told_outages(self, alert_id, outages):
        """A receiver has taken an alert that tells so many outages that were taken back."""
        self._told_outages[self.alerts[alert_id].check_id, alert_id] = (
            outages
        )

    def require_counted(self, waiting):
        """What was taken back is told once, or waits to be; where alerts were given up, it may be lost."""
        told = Counter[str]()
        for (check_id, _), outages in self._told_outages.items():
            told[check_id] += outages
        for check_id, outages in waiting.items():
            known = self._taken_back[check_id]
            self.require(
                outages <= known and told[check_id] <= known,
                f"{told[check_id]} outages are told and {outages} are to be, of {known}",
                check_id,
            )

    def hurried(self, alert, wait_seconds, now):
        """A new alert, or a test, lets this one be tried soon; that try does not count."""
        is_followed = any(
            other.seq > alert.seq and other.recorded_at == now
            for other in self._waiting(alert.check_id)
        )
        self.require(
            is_followed,
            "a try does not count, without a new alert",
            alert,
        )
        least = max(HURRIED_SECONDS - alert.set_back, alert.asked_seconds)
        alert.attempts -= 1
        alert.not_before = alert.posted_at + least - alert.set_forward
        alert.due_at = now + max(0.0, wait_seconds) + alert.set_forward

    def finished(self, alert, state, attempts, url, now):
        """An alert ends as delivered where its receiver has taken it, or as failed for a reason that was announced."""
        alert.is_finished = True
        self.require(
            attempts <= alert.posts,
            f"{attempts} attempts are counted, {alert.posts} were made",
            alert,
        )
        if state == "delivered":
            self.require(
                alert.is_taken,
                "an alert counts as delivered that nobody has taken",
                alert,
            )
            if alert.type == "check.test" and url is not None:
                self._hurried(alert.check_id, now)
        else:
            check = self.checks.get(alert.check_id)
            # A move that is not answered yet, or never was, may be in the same commit, behind the answer of the URL
            # before.
            moves = check is not None and check.unsure_changes > 0
            is_gone = url in alert.gone_from or (
                moves and bool(alert.gone_from)
            )
            age = now - alert.recorded_at + alert.aged
            is_old = age > OLDEST_SECONDS - MARGIN
            is_due = attempts >= MOST_ATTEMPTS or is_gone or is_old
            self.require(
                is_due,
                f"an alert failed after {attempts} attempts, for no reason",
                alert,
            )

    def tried(self, alert, wait_seconds):
        """An attempt has failed, and the next one is to follow after the documented wait."""
        self.require(
            alert.attempts <= alert.posts,
            f"{alert.posts} attempts were made",
            alert,
        )
        planned = WAITS[min(alert.attempts, len(WAITS)) - 1]
        most = (
            max(1.2 * planned, alert.asked_seconds)
            + alert.set_back
            + JITTER_SECONDS
        )
        self.require(
            wait_seconds <= most,
            f"an alert is put off for {wait_seconds:.0f} s, not {most:.0f}",
            alert,
        )
        check = self.checks.get(alert.check_id)
        is_moved = (
            check is None
            or check.unsure_changes
            or check.moved_at >= alert.posted_at
        )
        # A clock that was set just before may take the wait back with its credit, and another process may have posted.
        is_plain = (
            not is_moved
            and alert.posted_at > self.calm_since + self._near
        )
        alert.not_before = (
            alert.posted_at + max(planned, alert.asked_seconds)
            if is_plain
            else 0.0
        )

    def moved(self, check, now, is_late):
        """It has another webhook URL: what waits for it is due now, whatever the one before answers.

        If the owner was told late, it is unknown since when.
        """
        check.moved_at = now
        for alert in self._waiting(check.id):
            alert.not_before = 0.0
            if not is_late:
                alert.due_at = now

    def _hurried(self, check_id, now):
        """A test was delivered: the outage that waits for a retry is due."""
        for alert in self._waiting(check_id):
            if alert.type != "check.test":
                alert.not_before = 0.0
                # Unless it is being posted. What was stored before the clock was set forward may be due already by it.
                if alert.attempts > 0 and not alert.set_forward:
                    alert.due_at = min(
                        alert.due_at,
                        max(now, alert.posted_at + HANG_SECONDS),
                    )

    def _waiting(self, check_id):
        return (
            alert
            for alert in self.open.values()
            if alert.check_id == check_id
        )

    def removed(self, alert):
        check = self.checks.get(alert.check_id)
        outage = self._outage_of.get(alert.check_id)
        # A reminder gives way to the next one and to the recovery, and a change or a snooze may drop it: also a change
        # whose owner gave up, which a server makes when it is no longer suspended.
        is_touched = check is not None and (
            check.touched_at >= alert.recorded_at
            or len(check.repeats) > 1
        )
        is_dropped = (
            outage is None or outage.newest != alert.id or is_touched
        )
        may_go = alert.is_taken_back or (
            alert.type == "check.reminder" and is_dropped
        )
        self.require(
            check is None or check.may_be_gone or may_go,
            "an alert is lost",
            (alert, check),
        )

    def require_in_order(self, waiting):
        """A reminder waits alone. `waiting` has the check's id and the type of each alert of an outage that waits."""
        types = defaultdict[str, list[str]](list)
        for check_id, alert_type in waiting:
            types[check_id].append(alert_type)
        for check_id, those in types.items():
            is_alone = len(those) == 1 or "check.reminder" not in those
            self.require(
                is_alone,
                f"a reminder does not give way: {those}",
                check_id,
            )

    def is_told(self, check_id):
        """Whether the last alert of the check is that of an outage."""
        return self._last_type.get(check_id) == "check.overdue"

    # What receivers get.

    def began(self, alert_id, now, host):
        """A check's alerts go out in order, and none of a check that is gone."""
        alert = self.alerts.get(alert_id)
        self.require(
            alert is not None,
            "an alert goes out that is not recorded",
            alert_id,
        )
        self.require(
            not alert.is_finished,
            "an alert goes out again that is finished",
            alert,
        )
        check = self.checks.get(alert.check_id)
        may_have_moved = check is not None and check.unsure_changes > 0
        early = alert.not_before - now
        is_early = early > JITTER_SECONDS and not may_have_moved
        self.require(
            not is_early,
            f"an alert is tried again {early:.0f} s too early",
            alert,
        )
        alert.posts += 1
        alert.set_back = alert.set_forward = 0.0
        alert.asked_seconds = 0
        self._require_turn(alert, check, now)
        if alert.posts == 1:
            self._first_posts[
                check.key if check is not None else ""
            ].append(now)
            self._first_posts[host].append(now)
        # The next attempt is due when this one has ended, however it ends.
        alert.due_at = max(alert.due_at, now + HANG_SECONDS)
        alert.posted_at = now

    def _require_turn(self, alert, check, now):
        gone_at = None if check is None else check.gone_at
        self.require(
            gone_at is None or now < gone_at + PING_SECONDS,
            "an alert of a check goes out that is gone",
            alert,
        )
        if alert.type == "check.reminder":
            is_late = alert.check_id not in self._outage_of and (
                now > self._recovered_at[alert.check_id] + PING_SECONDS
            )
            self.require(
                not is_late,
                "a reminder goes out after the recovery",
                alert,
            )
            is_snoozed = check is not None and check.is_snoozed(
                now - PING_SECONDS
            )
            self.require(
                not is_snoozed,
                "a reminder of a snoozed check goes out",
                alert,
            )
        is_test = alert.type == "check.test"
        for other in self.open.values():
            if other.seq >= alert.seq:
                break
            is_before = (
                other.check_id == alert.check_id
                and (other.type == "check.test") == is_test
            )
            self.require(
                not is_before,
                "an alert goes out before an earlier one of its check",
                (alert, other),
            )

    def met(self, alert_id, host, is_steady):
        """What a post has met: a receiver that answers at once, or one that does not."""
        if not is_steady:
            self._steady = {
                pair for pair in self._steady if pair[1] != host
            }
        elif (
            check := self.checks.get(self.alerts[alert_id].check_id)
        ) is not None:
            self._steady.add((check.key, host))

    # When what waits may wait longer.

    def jumped(self, seconds):
        """Stored times are by the wall clock: after it was set back, what waits may wait longer by as much."""
        for alert in self.open.values():
            alert.due_at += max(0.0, -seconds)
            alert.set_back += max(0.0, -seconds)
            alert.set_forward += max(0.0, seconds)
            alert.aged += max(0.0, seconds)
            alert.not_before = 0.0
        for check in self.checks.values():
            if seconds > 0:
                check.snoozed_until -= seconds
            else:
                # How far it moves back depends on who listened then.
                check.snoozed_until_most = (
                    inf if check.snoozed_until_most else 0.0
                )
                # A snooze that had ended may hold the clock again, for as long.
                check.is_clock_of_snooze |= check.snoozed_until_most > 0

    def slept(self, seconds):
        """Waits are by the monotonic clock, which stands still meanwhile: a retry may be later by as much."""
        for alert in self.open.values():
            alert.due_at += seconds

    # What can be seen at any moment.

    def require_check(self, check, row, now, wall, outage):
        """Nothing acknowledged is lost, versions are exact, and there is no credit without silence.

        `outage` is the alert of the one that the check is in.
        """
        is_told = self.is_told(check.id)
        self.require(
            is_told == (row["status"] == "overdue"),
            "the last alert tells another status",
            (check, dict(row)),
        )
        self.require_between(
            row["version"],
            1 + check.changes,
            check.unsure_changes,
            "version",
            check,
        )
        self.require_between(
            row["ping_count"],
            check.pings,
            check.lost_pings + check.asked_pings,
            "ping_count",
            check,
        )
        if check.is_failing and not (
            check.is_blurred or check.under_way or check.asked_pings
        ):
            is_noted = (
                row["status"] == "overdue"
                and row["failed_at"] is not None
            )
            self.require(
                is_noted, "a failure is lost", (check, dict(row))
            )
        self._require_snooze(check, row, now, wall)
        is_settled = self.calm_since + self._near < now
        # A ping that is stored already, and not answered yet, has started the clock too.
        is_unsure = (
            check.is_blurred
            or check.under_way
            or check.asked_pings
            or check.is_clock_of_snooze
        )
        if is_settled and not is_unsure:
            self._require_credit(check, row, now, outage)

    def _require_credit(self, check, row, now, outage):
        credit = row["clock_from"] - (
            row["last_ping_at"] or row["created_at"]
        )
        decided_at, until = (
            (now, now)
            if outage is None
            else (outage.decided_at, outage.recorded_at)
        )
        if outage is not None and row["overdue_reason"] == "failed":
            # A failure waits for no credit that is due, and afterwards the deadline stays: any part may be missing.
            decided_at = -math.inf
        low, high = self.troubles.bounds(
            check.sent_at, check.told_at, decided_at, until
        )
        if not low <= credit <= high:
            known = self.troubles.since(check.sent_at)
            sentence = f"a clock was credited with {credit} s, between {low:.0f} and {high:.0f} s are due"
            raise Violation(
                f"{sentence}, now {now:.0f}, until {until:.0f}: {check} {known}"
            )

    def _require_snooze(self, check, row, now, wall):
        """A snooze lasts as long as its owner was told, and holds the clock; and what is overdue will be told again."""
        # It ends where the clock of the check starts, which moves with the wall clock, and not past `snoozed_until`.
        is_snoozed = (
            wall < row["clock_from"] <= (row["snoozed_until"] or 0)
        )
        until = now - wall + row["clock_from"] if is_snoozed else 0.0
        about = (check, dict(row), until)
        if check.asked_snoozes:
            return
        if check.is_snoozed(now):
            # Each jump of the clock rounds.
            self.require(
                until >= check.snoozed_until - 3 * JITTER_SECONDS,
                "a snooze is forgotten",
                about,
            )
        if until > now:
            self.require(
                until <= check.snoozed_until_most + JITTER_SECONDS,
                "a snooze lasts too long",
                about,
            )
        if len(check.repeats) == 1:
            is_due = row["status"] == "overdue" and check.repeats != {
                None
            }
            self.require(
                is_due == (row["remind_at"] is not None),
                "a reminder is due, or none",
                about,
            )

    def require_in_time(self, now, host_of, going):
        """Nobody is starved: each alert goes out within its time while nothing is wrong.

        To a receiver that answers at once, however many wait for others that do not. `host_of` has the host of each
        check. Those `going` have a revoked key: also one whose creation was never answered.
        """
        seen = set()
        at_host = Counter()
        for alert in self.open.values():
            queue = alert.check_id, alert.type == "check.test"
            if queue in seen:
                continue
            seen.add(queue)
            host = host_of.get(alert.check_id)
            at_host[host] += 1
            check = self.checks.get(alert.check_id)
            may_be_gone = check is not None and check.may_be_gone
            if may_be_gone or alert.check_id in going:
                continue  # it waits for its removal, and may not go out
            late = now - max(alert.due_at, self.calm_since)
            key = None if check is None else check.key
            allowed = self._allowed_wait(key, host, at_host[host], now)
            self.require(
                late <= allowed,
                f"an alert waits for {late:.0f} s, up to {allowed:.0f} s are allowed",
                alert,
            )

    def _allowed_wait(self, key, host, waiting, now):
        """Of an alert to a host for which so many are `waiting`."""
        allowed = MARGIN
        if (key, host) not in self._steady:
            allowed += HANG_SECONDS * waiting
        is_full = self._posts_of_key(key, now) >= MOST_OF_KEY - 1
        if is_full or self._posts(host or "", now) >= MOST_TO_HOST - 1:
            allowed += HOUR
        return allowed

    def _posts_of_key(self, key, now):
        """Those in an hour, with all of checks whose creation was not answered: any key may be theirs."""
        keys = list(self._first_posts) if key is None else [key]
        return max(
            (self._posts(name, now) for name in keys), default=0
        ) + self._posts("", now)

    def _posts(self, name, now):
        posts = self._first_posts[name]
        # Of two hours: the hour of a limit has its own begin.
        while posts and posts[0] < now - 2 * HOUR:
            posts.popleft()
        return len(posts)

    def require_removed(self, key, now):
        late = now - max(self.revoked[key], self.calm_since)
        allowed = REMOVAL_SECONDS + self.poll_seconds
        self.require(late <= allowed, "a revoked key is not removed", key)

    def require_swept(self, overdue_since, now, about):
        """`overdue_since` is when the deadline of a check passed that is still on time."""
        late = now - max(overdue_since, self.calm_since)
        self.require(
            late <= self._near,
            f"a check is overdue for {late:.0f} s and not marked",
            about,
        )

    # How it is said.

    def require_between(self, value, least, lost, name, about):
        is_exact = value is not None and least <= value <= least + lost
        self.require(
            is_exact,
            f"{name} is {value}; {least} is due, or up to {lost} more",
            about,
        )

    @staticmethod
    def require(condition, sentence, about):
        if not condition:
            raise Violation(f"{sentence}: {about}")
