"""What applying a file does while others change the same checks, against an API without a server."""

import itertools

import pytest

from cardbeat.client.api import Refused, Unanswered
from cardbeat.client.apply import perform, plan, still_pinged
from cardbeat.client.declared import Declarations
from cardbeat.errors import StartupError


def settings(name, period=60):
    return {"name": name, "period_seconds": period, "grace_seconds": 0, "webhook_url": None}


def declared(*names, period=60):
    return {name: settings(name, period) for name in names}


class FakeApi:
    """The checks of one key, at most `limit` of them. `meanwhile` is called once, before the request that it names."""

    def __init__(self, limit=100):
        self.held = {}
        self.limit = limit
        self.meanwhile = {}
        self._ids = itertools.count(1)

    def hold(self, name, period=60):
        """Have a check that somebody else created."""
        check = {**settings(name, period), "id": str(next(self._ids)), "version": 1}
        self.held[check["id"]] = check
        return check

    def edit(self, check, **values):
        now = self.held[check["id"]]
        self.held[check["id"]] = {**now, **values, "version": now["version"] + 1}
        return self.held[check["id"]]

    def checks(self):
        self._reached("checks")
        return list(self.held.values())

    def create(self, wanted):
        self._reached("create", wanted["name"])
        if len(self.held) >= self.limit:
            raise Refused(403, "Too many checks.")
        return self.hold(wanted["name"], wanted["period_seconds"])

    def change(self, check, values):
        self._reached("change", check["name"])
        self._require_same(check)
        return self.edit(check, **values)

    def delete(self, check):
        self._reached("delete", check["name"])
        self._require_same(check)
        del self.held[check["id"]]

    def periods(self):
        return {check["name"]: check["period_seconds"] for check in self.held.values()}

    def _reached(self, *request):
        self.meanwhile.pop(request, lambda: None)()

    def _require_same(self, check):
        if check["id"] not in self.held:
            raise Refused(404, "There is no such check.")
        if self.held[check["id"]]["version"] != check["version"]:
            raise Refused(412, "It was changed.")


@pytest.fixture
def api():
    return FakeApi()


def run(api, wanted, *, prune=False, renamed=None):
    return perform(api, plan(api.checks(), Declarations(wanted, renamed or {}), prune=prune))


def counted(outcome):
    """The names in each list of an outcome that is not empty."""
    deeds = ("created", "changed", "deleted", "unchanged")
    listed = {deed: [check["name"] for check in getattr(outcome, deed)] for deed in deeds}
    listed["conflicts"] = [sentence.split(":")[0] for sentence in outcome.conflicts]
    return {deed: names for deed, names in listed.items() if names}


def test_one_pass_creates_changes_and_deletes_and_a_second_one_does_nothing(api):
    for name in ("changed", "other"):
        api.hold(name)
    api.hold("same", 70)
    wanted = declared("new", "changed", "same", period=70)
    done = run(api, wanted, prune=True)
    assert counted(done) == {"created": ["new"], "changed": ["changed"], "deleted": ["other"], "unchanged": ["same"]}
    assert api.periods() == {"new": 70, "changed": 70, "same": 70}
    assert counted(run(api, wanted, prune=True)) == {"unchanged": ["new", "changed", "same"]}


@pytest.mark.parametrize("request_name", ["change", "delete"])
def test_what_others_changed_since_it_was_listed_stays_as_they_made_it(api, request_name):
    theirs = api.hold("old")
    api.meanwhile[request_name, "old"] = lambda: api.edit(theirs, name="new", period_seconds=90)
    wanted = declared("a", "old", period=70) if request_name == "change" else declared("a")
    done = run(api, wanted, prune=True)
    assert counted(done) == {"created": ["a"], "conflicts": ["old"]}
    assert "changed it at the same time" in done.conflicts[0]
    assert api.periods()["new"] == 90


def test_what_others_deleted_since_it_was_listed_is_not_created_and_needs_no_deletion(api):
    changed, deleted = api.hold("changed"), api.hold("deleted")
    api.meanwhile["change", "changed"] = lambda: api.held.pop(changed["id"])
    api.meanwhile["delete", "deleted"] = lambda: api.held.pop(deleted["id"])
    done = run(api, declared("changed", "b", period=70), prune=True)
    assert counted(done) == {"created": ["b"], "conflicts": ["changed"]}
    assert "deleted it at the same time" in done.conflicts[0]
    assert api.periods() == {"b": 70}


def test_a_conflict_of_the_update_itself_is_told_too(api):
    api.hold("a")
    api.meanwhile["change", "a"] = raising(Refused(409, "It was modified concurrently."))
    assert counted(run(api, declared("a", "b", period=70))) == {"created": ["b"], "conflicts": ["a"]}


def test_what_two_created_at_the_same_time_is_told_by_the_next_run(api):
    api.meanwhile["create", "a"] = lambda: api.hold("a")
    assert counted(run(api, declared("a"))) == {"created": ["a"]}
    with pytest.raises(StartupError, match="2 checks named 'a'"):
        run(api, declared("a"))


def test_past_the_limit_of_the_tier_the_rest_is_left(api):
    api.limit = 1
    done = run(api, declared("a", "b", "c"))
    assert (counted(done), done.failed, done.unknown) == ({"created": ["a"]}, "b: Too many checks.", None)


def raising(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (Unanswered("The connection was closed."), "b"),
        (Refused(500, "Unexpected."), "b"),
        (Refused(502, "The proxy got no answer."), "b"),
        (Refused(504, "The proxy waited too long."), "b"),
        (Refused(503, "Busy."), None),
        (Refused(400, "No such URL."), None),
        (StartupError("It takes no connections."), None),
    ],
)
@pytest.mark.parametrize("request_name", ["create", "change", "delete"])
def test_a_request_without_an_answer_may_have_been_done(api, request_name, error, unknown):
    for name in {"create": "", "change": "ab", "delete": "b"}[request_name]:
        api.hold(name)
    api.meanwhile[request_name, "b"] = raising(error)
    wanted = declared("a", "c", period=70) if request_name == "delete" else declared("a", "b", "c", period=70)
    outcome = run(api, wanted, prune=True)
    assert (outcome.failed, outcome.unknown) == (f"b: {error}", unknown)


def test_a_renamed_check_is_changed_and_neither_created_nor_deleted(api):
    renamed, other = api.hold("old"), api.hold("other")
    done = run(api, declared("new", period=70), prune=True, renamed={"new": "old"})
    assert counted(done) == {"changed": ["new"], "deleted": ["other"]}
    assert api.held == {renamed["id"]: {**renamed, "name": "new", "period_seconds": 70, "version": 2}}
    assert counted(run(api, declared("new", period=70), prune=True, renamed={"new": "old"})) == {"unchanged": ["new"]}
    assert other["id"] not in api.held


def test_a_check_without_its_old_name_is_created(api):
    assert counted(run(api, declared("new"), renamed={"new": "old"})) == {"created": ["new"]}


@pytest.mark.parametrize(
    ("names", "says"), [(("new", "old"), "also 'old', its old name"), (("old", "old"), "2 checks")]
)
def test_a_rename_that_is_not_clear_is_refused(api, names, says):
    for name in names:
        api.hold(name)
    with pytest.raises(StartupError, match=says):
        run(api, declared("new"), renamed={"new": "old"})


@pytest.mark.parametrize(
    ("status", "last_ping_at", "is_used"),
    [
        ("on_time", None, False),
        ("on_time", "2026-12-31 00:00:00", True),
        ("overdue", "2027-01-15 07:59:01", True),
        ("overdue", "2027-01-15 07:59:00", False),
        ("overdue", "9999-99-99 99:99:99", True),
    ],
)
def test_a_check_is_in_use_while_it_is_pinged(status, last_ping_at, is_used):
    check = {"period_seconds": 60, "status": status, "last_ping_at": last_ping_at}
    assert still_pinged(check, 1_800_000_000) is is_used
    for period in (-(10**30), 10**30):
        assert still_pinged({**check, "period_seconds": period}, 1_800_000_000) is (last_ping_at is not None)
    if status == "overdue":
        failed = {**check, "last_ping_at": None, "failed_at": last_ping_at}
        assert still_pinged(failed, 1_800_000_000) is is_used
