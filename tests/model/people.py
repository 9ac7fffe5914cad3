"""The jobs that ping, and the owners of the checks, who edit, move, delete, test and revoke."""

from tests.model.model import Known
from tests.model.server import REFUSED

RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""The waits of `curl --retry 5 --retry-connrefused`."""
ENDED_SNOOZES = 0.3
"""Of so many the owner does not wait for the end."""
FIRST_RETRY_SECONDS = 5.0
"""After this an owner tries again what was refused, and then after twice as long each time."""


class Job:
    """A job with a check: it pings with each run, and stalls and flaps as its kind does."""

    def __init__(self, world, owner, check, sent_at):
        self._world = world
        self._luck = world.luck
        self.owner = owner
        self.known = Known(
            check["id"],
            owner.id,
            sent_at,
            world.now,
            repeats={check["repeat_seconds"]},
        )
        world.model.checks[check["id"]] = self.known
        world.jobs[check["id"]] = self
        self.is_ended = False
        self.adopt(check)
        self._stalls, self._flaps = self._luck.choice(
            ((0.02, 0.0), (0.1, 0.0), (0.02, 0.5), (0.0, 0.0))
        )
        self._fails = self._luck.choice((0.0, 0.03))
        self._run_later()

    def adopt(self, check):
        """The check is as it is now."""
        self._allowed = check["period_seconds"] + check["grace_seconds"]

    def end(self):
        self.is_ended = True

    def _run_later(self):
        share = self._luck.uniform(0.4, 0.9)
        if self._luck.random() < self._stalls:
            share = self._luck.uniform(1.5, 6.0)
        elif self._luck.random() < self._flaps:
            share = self._luck.uniform(0.9, 1.6)
        self._world.scheduler.after(self._allowed * share, self._run)

    def _run(self):
        if not self.is_ended:
            if self._luck.random() < self._fails:
                self._fail(0)
            else:
                self._ping(0)
            self._run_later()

    def signal(self):
        """Besides its runs."""
        self._luck.choice((self._fail, self._ping))(0)

    def _fail(self, tried):
        if self.is_ended:
            return
        sent_at = self._world.now

        def told(status, _answer):
            self._note("fail", status, sent_at)
            self._retry(status, self._fail, tried)

        path = f"/ping/{self.known.id}/{self._luck.choice(('fail', '1'))}"
        self._world.server.ask("POST", path, told, lambda *_: None)

    def _retry(self, status, signal, tried):
        if status in (0, 503, REFUSED) and tried < len(RETRY_SECONDS):
            self._world.scheduler.after(
                RETRY_SECONDS[tried], signal, tried + 1
            )

    def _ping(self, tried):
        if self.is_ended:
            return
        sent_at = self._world.now
        known = self.known
        known.asked_pings += 1

        def told(status, _answer):
            known.asked_pings -= 1
            if not status:
                known.lost_pings += 1
                known.under_way += 1
            self._note("ping", status, sent_at)
            self._retry(status, self._ping, tried)

        def late(status, _answer):
            known.under_way -= 1
            if status:
                known.lost_pings -= 1
                self._note("ping", status, sent_at)
            else:
                known.is_blurred = True

        self._world.server.ask("POST", f"/ping/{known.id}", told, late)

    def _note(self, signal, status, sent_at):
        model = self._world.model
        self._world.note(signal, self.known.id, status)
        if status in (0, REFUSED):
            model.unanswered(sent_at, self.known)
            return
        answered = (
            model.answered_ping
            if signal == "ping"
            else model.answered_failure
        )
        answered(self.known, sent_at, self._world.now, status)
        if status == 404:
            self.end()


class Owner:
    """Has a key and its checks."""

    def __init__(self, world, wanted):
        self._world = world
        self._luck = world.luck
        self._wanted = wanted
        self._key = ""
        self.id = ""
        self.is_gone = False
        self.jobs = []
        self._register()

    def _register(self, tried=0):
        def registered(status, answer):
            if status != 201:
                self._try_again(self._register, tried)
                return
            self._key = answer["key"]
            for _ in range(self._wanted):
                seconds = self._luck.uniform(
                    0, self._world.settle_seconds
                )
                self._world.scheduler.after(seconds, self.create)

        self._ask(
            "POST",
            "/register",
            registered,
            {"email": "owner@example.com"},
        )

    def _try_again(self, what, tried):
        """At the latest after a quarter of a sweep's interval, where a disk stays in trouble for several of them."""
        longest = max(60.0, self._world.sweep_seconds / 4)
        self._world.scheduler.after(
            min(FIRST_RETRY_SECONDS * 2**tried, longest), what, tried + 1
        )

    def create(self, tried=0):
        if self.is_gone:
            return
        sent_at = self._world.now
        body = {
            "name": f"job {len(self.jobs)}",
            "webhook_url": self._world.new_hook(),
            "repeat_seconds": self._world.new_repeat(),
            **self._world.new_period(),
        }

        def created(status, answer):
            if status == 201:
                self.id = answer["check"]["api_key_id"]
                job = Job(self._world, self, answer["check"], sent_at)
                job.known.may_be_gone = self.is_gone
                self.jobs.append(job)
            elif status in (0, 503, REFUSED):
                self._try_again(self.create, tried)

        self._ask("POST", "/checks", created, body)

    # Each tells whether it is done; an owner without checks does nothing.

    def edit(self):
        return self._patch(self._any_job(), self._world.new_period())

    def move(self):
        """Another webhook URL, while alerts may wait for the one before."""
        return self._patch(
            self._any_failing_job(),
            {"webhook_url": self._world.new_hook()},
        )

    def move_now(self, job):
        """The same for a check whose alert is on its way."""
        if job in self.jobs and not self.is_gone:
            self._patch(job, {"webhook_url": self._world.new_hook()})

    def edit_twice(self):
        """Two at once: one wins, and the other is told."""
        job = self._any_job()
        return self._patch(job, self._world.new_period()) and self._patch(
            job, {"name": "other"}
        )

    def remind(self):
        """Another time between reminders, or none."""
        job = self._any_failing_job()
        is_known = (
            job is not None and job.known.touched_at <= self._world.now
        )
        return is_known and self._patch(
            job, {"repeat_seconds": self._world.new_repeat()}
        )

    def snooze(self):
        """Mostly one whose alerts wait, or that is snoozed already."""
        sweeps = (
            self._luck.choice((3.0, 30.0, 300.0)) * self._luck.random()
        )
        return self._snooze(
            self._any_failing_job(),
            max(60, int(self._world.sweep_seconds * sweeps)),
        )

    def _end_snooze(self, job):
        if job in self.jobs and not self.is_gone:
            self._snooze(job, 0)

    def _snooze(self, job, seconds):
        if job is None or job.known.asked_snoozes:
            return False
        known = job.known
        world = self._world
        sent_at = world.now
        jumped = world.scheduler.jump_seconds
        world.model.asks_snooze(known)

        def told(status, _answer):
            if (
                status == 200
                and seconds
                and self._luck.random() < ENDED_SNOOZES
            ):
                world.scheduler.after(
                    seconds * self._luck.random(), self._end_snooze, job
                )
            if status:
                is_known = (
                    status == 200
                    and world.scheduler.jump_seconds == jumped
                )
                world.model.answered_snooze(
                    known,
                    sent_at,
                    world.now,
                    seconds if is_known else None,
                )

        def late(_status, _answer):
            world.model.answered_snooze(known, sent_at, world.now, None)

        if seconds:
            body = {"seconds": seconds}
            self._change(known, "PUT", "/snooze", told, late, body=body)
        else:
            self._change(known, "DELETE", "/snooze", told, late)
        return True

    def _patch(self, job, changes):
        if job is None:
            return False
        known = job.known
        before = known.repeats
        self._may_repeat(known, changes)

        def told(status, answer):
            if status == 200:
                self._changed(job, changes, answer["check"])
            if status and "repeat_seconds" in changes:
                known.touched_at = self._world.now
                known.repeats = (
                    {changes["repeat_seconds"]}
                    if status == 200
                    else before
                )

        def late(status, answer):
            if status == 200:
                known.lost_changes -= 1
                known.changes += 1
                self._changed(job, changes, answer["check"], is_late=True)
                # It may have been made after changes that were asked for later.
                self._may_repeat(known, changes)

        self._change(known, "PATCH", "", told, late, body=changes)
        return True

    def _change(self, known, method, path, told, late, *, body=None):
        """Ask for a change, and count what becomes of it."""
        model = self._world.model
        changes_before = known.changes
        known.asked_changes += 1

        def answered(status, answer):
            known.asked_changes -= 1
            if status == 200 and body:
                model.answered_change(
                    known, changes_before, answer["check"]["version"]
                )
            elif status in (0, 200):
                # To end a snooze that has ended changes nothing.
                known.lost_changes += 1
            told(status, answer)

        self._ask(
            method, f"/checks/{known.id}{path}", answered, body, late
        )

    def _may_repeat(self, known, changes):
        if "repeat_seconds" in changes:
            self._world.model.asks_repeat(
                known, known.repeats | {changes["repeat_seconds"]}
            )

    def _changed(self, job, changes, check, is_late=False):
        job.adopt(check)
        if "webhook_url" in changes:
            self._world.model.moved(job.known, self._world.now, is_late)

    def delete(self):
        job = self._any_job()
        if job is None:
            return False
        job.known.may_be_gone = True
        self.jobs.remove(job)

        def told(status, _answer):
            job.end()
            if status == 204:
                job.known.gone_at = self._world.now
                job.known.is_deleted = True
            self.create()

        self._ask("DELETE", f"/checks/{job.known.id}", told)
        return True

    def test(self):
        job = self._any_failing_job()
        if job is not None:
            self._ask(
                "POST",
                f"/checks/{job.known.id}/test-alert",
                lambda *_: None,
            )
        return job is not None

    def revoke(self):
        """Then a new owner comes with as many checks."""
        if not self._key or self.is_gone:
            return False
        self.is_gone = True
        for job in self.jobs:
            job.known.may_be_gone = True
        self._world.new_owner(self._wanted)
        self._revoke()
        if self._luck.random() < self._world.options["crashed_meanwhile"]:
            self._world.scheduler.after(
                self._luck.uniform(0, 1.0), self._world.server.crash
            )
        return True

    def _revoke(self, tried=0):
        def told(status, _answer):
            if status in (204, 401):
                for job in self.jobs:
                    job.known.gone_at = (
                        job.known.gone_at or self._world.now
                    )
                if self.id:
                    self._world.model.revoked[self.id] = self._world.now
                # Nobody tells a job: what it signals before the removal comes to its check is refused too.
                for job in self.jobs[-2:]:
                    self._world.scheduler.after(
                        self._luck.choice((0.001, 0.1)), job.signal
                    )
            else:
                self._try_again(self._revoke, tried)

        self._ask("DELETE", "/key", told)

    def _any_failing_job(self):
        """Mostly one whose alerts wait, if there is one: that is why people look at a webhook."""
        waiting = {
            alert.check_id for alert in self._world.model.open.values()
        }
        failing = [job for job in self.jobs if job.known.id in waiting]
        is_looked_at = (
            failing and not self.is_gone and self._luck.random() < 0.7
        )
        return (
            self._luck.choice(failing)
            if is_looked_at
            else self._any_job()
        )

    def _any_job(self):
        return (
            self._luck.choice(self.jobs)
            if self.jobs and not self.is_gone
            else None
        )

    def _ask(self, method, path, told, body=None, late=lambda *_: None):
        """`late` is told, if there was no answer in time, of one that came after that, or that there will be none."""
        sent_at = self._world.now

        def answered(status, answer):
            self._world.note(method, path, status)
            if status in (0, 500, 503, REFUSED):
                self._world.model.unanswered(
                    sent_at, f"{method} {path}: {status}"
                )
            told(status, answer)

        self._world.server.ask(
            method, path, answered, late, body, self._key
        )
