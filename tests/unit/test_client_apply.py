"""What applying a file does beside others who change the same checks, against an API without a server."""

import itertools

import pytest

from cardbeat.client.api import Refused, Unanswered
from cardbeat.client.apply import apply
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
            raise Refused(409, "Too many checks.", "too_many_checks")
        return self.hold(wanted["name"], wanted["period_seconds"])

    def read(self, check_id):
        if check_id not in self.held:
            raise Refused(404, "There is no such check.")
        return self.held[check_id]

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
        if self.read(check["id"])["version"] != check["version"]:
            raise Refused(412, "It was changed.")


@pytest.fixture
def api():
    return FakeApi()


def run(api, wanted, *, prune=False, between=lambda: None):
    """Apply; `between` is called while it waits for a further round."""
    return apply(api, wanted, prune=prune, sleep=lambda _: between())


def counted(outcome):
    """The names in each list of an outcome that is not empty."""
    deeds = ("created", "changed", "deleted", "unchanged")
    listed = {deed: [check["name"] for check in getattr(outcome, deed)] for deed in deeds}
    listed["conflicts"] = [sentence.split(":")[0] for sentence in outcome.conflicts]
    return {deed: names for deed, names in listed.items() if names}


def raise_limit(api):
    def more_room():
        api.limit = 100

    return more_room


def test_what_was_left_to_others_stays_theirs_in_the_rounds_after_the_limit(api):
    """Others create `b` first, with another period, and take the place that `c` needs."""
    api.limit = 3
    api.meanwhile["create", "b"] = lambda: api.hold("b", 120)
    outcome = run(api, declared("a", "b", "c"), between=raise_limit(api))
    assert outcome.failed is None
    assert counted(outcome) == {"created": ["a", "c"], "conflicts": ["b"]}
    assert api.periods() == {"a": 60, "b": 120, "c": 60}


@pytest.mark.parametrize("request_name", ["change", "delete"])
def test_what_others_renamed_meanwhile_is_neither_deleted_nor_changed_in_the_next_round(api, request_name):
    theirs = api.hold("old")
    api.limit = 1
    api.meanwhile[request_name, "old"] = lambda: api.edit(theirs, name="new", period_seconds=90)
    wanted = declared("a", "new") | (declared("old", period=70) if request_name == "change" else {})
    outcome = run(api, wanted, prune=True, between=raise_limit(api))
    assert counted(outcome) == {"created": ["a"], "conflicts": ["old"]}
    assert api.periods() == {"new": 90, "a": 60}


def test_what_others_deleted_meanwhile_is_not_created_in_the_next_round(api):
    theirs, _ = api.hold("a"), api.hold("b")
    api.limit = 1
    api.meanwhile["change", "a"] = lambda: api.held.pop(theirs["id"])
    outcome = run(api, declared("a", "b", "c", period=70), between=raise_limit(api))
    assert counted(outcome) == {"created": ["c"], "changed": ["b"], "conflicts": ["a"]}
    assert api.periods() == {"b": 70, "c": 70}


def test_a_check_is_listed_once_over_all_rounds(api):
    changed, _ = api.hold("changed"), api.hold("same", 70)
    api.limit = 3

    def edit_both():
        api.limit = 100
        for check in (changed, api.held["3"]):
            api.edit(check, period_seconds=90)

    outcome = run(api, declared("changed", "same", "created", "last", period=70), between=edit_both)
    assert counted(outcome) == {"created": ["created", "last"], "changed": ["changed"], "unchanged": ["same"]}
    assert {check["period_seconds"] for check in outcome.created + outcome.changed} == {70}


def test_what_others_created_alike_at_the_same_moment_is_as_declared(api):
    older = []
    api.meanwhile["create", "a"] = lambda: older.append(api.hold("a"))
    outcome = run(api, declared("a", "b"))
    assert counted(outcome) == {"created": ["b"], "unchanged": ["a"]}
    assert outcome.unchanged == older
    assert api.periods() == {"a": 60, "b": 60}


def test_what_others_created_alike_is_counted_once_over_all_rounds(api):
    api.limit = 3
    api.meanwhile["create", "b"] = lambda: api.hold("b")
    outcome = run(api, declared("a", "b", "c"), between=raise_limit(api))
    assert counted(outcome) == {"created": ["a", "c"], "unchanged": ["b"]}


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


def test_a_double_whose_withdrawal_has_no_answer_may_be_gone(api):
    api.meanwhile["create", "a"] = lambda: api.hold("a")
    api.meanwhile["delete", "a"] = raising(Unanswered("The connection was closed."))
    assert run(api, declared("a")).unknown == "a"


def test_without_the_list_in_which_to_look_for_doubles_nothing_is_in_doubt(api):
    api.meanwhile["create", "a"] = lambda: api.meanwhile.update({("checks",): raising(Unanswered("Closed."))})
    outcome = run(api, declared("a"))
    assert (outcome.failed, outcome.unknown, counted(outcome)) == ("Closed.", None, {"created": ["a"]})
