"""The command `checks`: checks kept in a file, pings, tests and snoozes, over a server of ours."""

import json
import os
import re

import pytest

from tests.kit.lists import each, numbered
from tests.kit.receiver import Receiver, answer
from tests.kit.support import GOOD_CHECK
from tests.service.conftest import served

REST = "period_seconds=60\ngrace_seconds=0\n"


@pytest.fixture
def server(app):
    with served(app) as url:
        yield url


@pytest.fixture
def key(app, server, monkeypatch):
    """A checks key, which the command uses from here on."""
    key = app.checks_key()
    monkeypatch.setenv("CARDBEAT_URL", server)
    monkeypatch.setenv("CARDBEAT_KEY", key)
    return key


@pytest.fixture
def file(tmp_path):
    """Writes a file of checks: lines of each check, and of the defaults."""

    def write(*tables, defaults=REST):
        checks = "".join(f"[[check]]\n{table}\n" for table in tables)
        path = tmp_path / "c.toml"
        path.write_text(f"[defaults]\n{defaults}\n{checks}")
        return path

    return write


@pytest.fixture
def listed(checks, key):
    """The checks of the key by their names."""
    return lambda: {
        check["name"]: check
        for check in json.loads(checks("list", "--json")[1])
    }


@pytest.fixture
def applied(checks, key):
    """Applies a file; the exit status, and what it did."""

    def apply(*argv):
        status, out, err = checks("apply", *argv, "--json")
        assert not err
        return status, [tuple(row.values()) for row in json.loads(out)]

    return apply


def test_fifty_checks_are_created_once_and_then_nothing_changes(
    applied, checks, listed, file
):
    path = file(*numbered('name = "job {}"', 50))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    status, done = applied(path)
    before = listed()
    made = [
        ("created", f"job {n}", before[f"job {n}"]["ping_url"])
        for n in range(50)
    ]
    assert status == 0
    assert done == made
    assert checks("apply", path) == (0, "", "")
    assert listed() == before


def test_only_what_differs_is_changed_and_no_output_shows_a_url(
    applied, checks, listed, file
):
    url = 'webhook_url = "https://me:SECRET@a.example:8443/SECRET"'
    full = f'{REST}{url}\nrepeat_seconds = "4h"'
    printed = [
        checks(
            "apply",
            file('name = "a"', 'name = "b"', 'name = "c"', defaults=full),
        )
    ]
    more = ('name = "b"\ngrace_seconds = 5', f'name = "c"\n{url[:-1]}2"')
    path = file('name = "a"', *more)
    changes = [
        ("changed", "b", "grace_seconds 0 -> 5"),
        ("changed", "c", "webhook_url changed"),
    ]
    assert applied(path) == (0, changes)
    assert each(listed().values(), "repeat_seconds") == [14400] * 3
    more = (
        ["list"],
        ["list", "--json"],
        ["apply", path, "--prune"],
        ["snooze", "a", "1h"],
    )
    for argv in more:
        printed.append(checks(*argv))
    assert "SECRET" not in str(printed)


def test_prune_lists_and_deletes_only_with_yes(
    applied, checks, listed, file
):
    checks("apply", file('name = "used"', 'name = "idle"'))
    checks("ping", "used")
    path = file('name = "new"')
    kept = "not deleted without --yes"
    would = [
        (kept, "used", "last pinged 2027-01-15 08:00:00"),
        (kept, "idle", "last pinged never"),
    ]
    status, done = applied("--prune", path)
    assert status == 1
    assert done[:2] == would
    assert done[2][:2] == ("created", "new")
    assert applied("--prune", path) == (1, would)
    deleted = [("deleted", "used", ""), ("deleted", "idle", "")]
    assert applied("--prune", "--yes", path) == (0, deleted)
    assert [*listed()] == ["new"]


def test_a_file_without_checks_prunes_nothing(checks, listed, file):
    """A template that came out empty must not delete everything."""
    checks("apply", file('name = "a"'))
    status, _, err = checks("apply", file(), "--prune", "--yes")
    assert status == 2
    assert "would delete all checks" in err
    assert [*listed()] == ["a"]


def test_a_renamed_check_keeps_its_ping_url(
    applied, checks, listed, file
):
    checks("apply", file('name = "old"'))
    before = listed()["old"]["ping_url"]
    path = file('name = "new"\nwas = "old"')
    assert applied("--prune", path) == (
        0,
        [("changed", "old", "name old -> new")],
    )
    assert listed()["new"]["ping_url"] == before
    assert applied("--prune", path) == (0, [])


def test_at_the_limit_of_the_tier_what_goes_makes_room_for_what_comes(
    checks, listed, file
):
    checks("apply", file(*numbered('name = "{}"', 50)))
    path = file(*numbered('name = "new {}"', 101))
    status, out, err = checks("apply", path, "--prune", "--yes")
    assert status == 2
    assert len(listed()) == 100
    assert out.count("created ") == 100
    assert out.count("deleted ") == 50
    assert err.startswith(
        "cardbeat: new 100: This key's tier allows 100 checks"
    )
    assert err.endswith(
        "; what is printed was done; run apply again for the rest\n"
    )


@pytest.mark.parametrize("names", ["aa", "ab"])
def test_names_that_are_not_clear_are_refused_before_anything_is_done(
    checks, app, listed, file, names
):
    key = os.environ["CARDBEAT_KEY"]
    for name in names:
        app("POST", "/checks", GOOD_CHECK | {"name": name}, key=key)
    wanted = {"aa": 'name = "a"', "ab": 'name = "b"\nwas = "a"'}[names]
    status, out, err = checks("apply", file(wanted, 'name = "c"'))
    told = f"the server has two checks named '{names[1]}', or as it was named before; "
    assert status == 2
    assert out == ""
    assert told in err
    assert "c" not in listed()


def test_a_check_is_pinged_and_snoozed_by_its_name_and_the_list_shows_it(
    checks, key, file
):
    checks("apply", file('name = "a b"', 'name = "b"'))
    told = "status: on_time\nrecovered: False\ndeadline_at: 2027-01-15 08:01:00\n"
    assert checks("ping", "a b") == (0, told, "")
    for time in ("604800", "7d"):
        status, out, _ = checks("snooze", "b", time)
        assert status == 0
        assert "snoozed_until: 2027-01-22 08:00:00\n" in out
    headings, first, second = checks("list")[1].splitlines()
    assert headings.startswith("NAME  STATUS")
    names = "LAST_PING_AT DEADLINE_AT FAILED_AT SNOOZED_UNTIL".split()
    assert headings.split()[2:6] == names
    now, later = "2027-01-15 08:00:00", "2027-01-22 08:00:00"
    for line, *shown in (
        (first, "a b", now, "-"),
        (second, "b", "-", later),
    ):
        row = re.split("  +", line)
        assert [row[0], row[2], row[5]] == shown
    ended = json.loads(checks("snooze", "b", "off", "--json")[1])
    assert ended["snoozed_until"] is None


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("", "ACTION"),
        ("list --prune", "--prune"),
        ("snooze a", "TIME"),
        ("snooze a x", "or a duration such as"),
        ("snooze a 0s", "from 60 to 7776000"),
        ("ping b", "there are 0 checks named 'b'; see: checks list"),
    ],
)
def test_other_arguments_are_one_line_and_status_2(
    checks, key, file, argv, says
):
    checks("apply", file('name = "a"'))
    status, out, err = checks(*argv.split())
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    "value", ["", " ", "sk_ä", "sk_\nX-Other: 1", "sk_unknown"]
)
def test_without_a_key_that_the_server_knows_one_line_says_so(
    checks, key, monkeypatch, value
):
    monkeypatch.setenv("CARDBEAT_KEY", value)
    told = "there is no key; set the variable"
    if value == "sk_unknown":
        told = "This API key is not known here"
    status, out, err = checks("list")
    assert status == 2
    assert out == ""
    assert err.startswith(f"cardbeat: {told}")
    assert err.count("\n") == 1


def test_a_read_only_key_lists_and_changes_nothing(
    app, key, checks, file, monkeypatch
):
    checks("apply", file('name = "mail"'))
    reader = app.json("POST", "/key/read-only", key=key)["key"]
    monkeypatch.setenv("CARDBEAT_KEY", reader)
    (mail,) = json.loads(checks("list", "--json")[1])
    assert mail["ping_url"] is None
    told = "cardbeat: This is a read-only key, which changes nothing; send the checks key.\n"
    assert (
        checks("snooze", "mail", "1h")
        == checks("test", "mail")
        == (2, "", told)
    )


@pytest.mark.parametrize(
    ("code", "status", "state", "error"),
    [
        (204, 0, "delivered", None),
        (404, 1, "pending", "The receiver answered 404."),
        (410, 1, "failed", "The receiver answered 410."),
    ],
)
def test_a_test_alert_is_told_with_what_the_receiver_answered(  # noqa: PLR0917
    customer, checks, monkeypatch, code, status, state, error
):
    monkeypatch.setenv("CARDBEAT_KEY", customer.key)
    with served(customer.app) as url, Receiver(answer(code)) as receiver:
        customer.check(receiver.url, "job")
        done, out, err = checks("test", " job ", "--url", url, "--json")
    told = json.loads(out)
    assert done == status
    assert err == ""
    assert told["state"] == state
    assert told["last_status"] == code
    assert told["last_error"] == error
    assert told["type"] == "check.test"
