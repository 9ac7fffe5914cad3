"""The order in which undelivered alerts are read into memory."""

from cardbeat.heartbeat.pending import PAGE, Pending, PendingAlerts


class Unread:
    """Reads each undelivered alert once, and those of a check in order.

    Alerts recorded since the beginning come first, then in turns the newest and the oldest of all others: a new alert
    does not wait until hundreds of thousands of older ones are read. Older ones of its own check come with it. Not safe
    for threads.
    """

    def __init__(self, alerts: PendingAlerts) -> None:
        self._alerts = alerts
        # All are a `seq`: of the last that is read of those recorded since the beginning; the two between which those
        # from before are unread, and which of these are read nevertheless, with a newer one of their check.
        self._last: int | None = None
        self._after = 0
        self._before = 0
        self._ahead: set[int] = set()
        self._from_newest = True

    def page(self) -> list[Pending]:
        """The next ones, empty when there are none. Raises `Unavailable`, and gives the same again then."""
        if self._last is None:
            self._last, _ = self._alerts.newest_seqs()
            self._before = self._last + 1
        new = self._alerts.after(self._last)
        page = new if self.has_read_old() else self._with_old(new)
        self._last = max([self._last, *(pending.seq for pending in new)])
        return page

    def has_read_old(self) -> bool:
        """Whether those from before the beginning are read."""
        return self._after + 1 >= self._before

    def _with_old(self, new: list[Pending]) -> list[Pending]:
        """The new ones and one page of the others, behind the older ones of the same checks that are still unread."""
        old = self._alerts.between(self._after, self._before, self._from_newest)
        after, before = self._left_unread(old)
        out_of_turn = [*old, *new] if self._from_newest else new
        older = self._alerts.of_checks({pending.check_seq for pending in out_of_turn}, after, before)
        older = [pending for pending in older if pending.seq not in self._ahead]
        old = [pending for pending in old if pending.seq not in self._ahead]
        page = [*older, *old, *new] if self._from_newest else [*old, *older, *new]
        self._after, self._before, self._from_newest = after, before, not self._from_newest
        self._ahead.update(pending.seq for pending in older)
        if self.has_read_old():
            self._ahead = set()
        return page

    def _left_unread(self, old: list[Pending]) -> tuple[int, int]:
        """Between which two the unread ones are after this page."""
        if len(old) < PAGE:
            return self._after, self._after + 1
        return (self._after, old[0].seq) if self._from_newest else (old[-1].seq, self._before)
