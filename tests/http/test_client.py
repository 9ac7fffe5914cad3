"""The command `checks`: checks kept in a file, pings, tests and snoozes, over a server of ours."""

import json
import os
import re

import pytest

from cardbeat.client.api import Api
from tests.http.conftest import served
from tests.receiver import Receiver, answer, hang
from tests.support import GOOD_CHECK

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
    return lambda: {check["name"]: check for check in json.loads(checks("list", "--json")[1])}


def counts(created=0, changed=0, deleted=0, unchanged=0, kept=0):
    told = f"{created} created, {changed} changed, {deleted} deleted, {unchanged} unchanged"
    return f"{told}, {kept} not deleted, 0 conflicts\n"


def test_fifty_checks_are_created_once_and_then_nothing_changes(checks, listed, file):
    path = file(*(f'name = "job {n}"' for n in range(50)))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    status, out, _ = checks("apply", "--dry-run", path)
    assert (status, out.splitlines()[0]) == (0, "would be created job 0: a new ping URL")
    assert (out.endswith("\n" + counts(50)), listed()) == (True, {})
    status, out, err = checks("apply", path)
    assert (status, err) == (0, "")
    assert re.match(r"created job 0: https://cards\.example/ping/[0-9a-f]{32}\n", out)
    assert out.endswith("\n" + counts(50))
    before = listed()
    assert checks("apply", path) == (0, counts(unchanged=50), "")
    assert listed() == before


def test_only_what_differs_is_changed_and_no_output_shows_a_url(checks, listed, file):
    url = 'webhook_url = "https://me:SECRET@a.example:8443/SECRET"'
    full = f'{REST}{url}\nrepeat_seconds = "4h"'
    printed = [checks("apply", file('name = "a"', 'name = "b"', 'name = "c"', defaults=full))]
    more = ('name = "b"\ngrace_seconds = 5\nwebhook_url = ""', f'name = "c"\n{url[:-1]}2"')
    path = file('name = "a"', *more, defaults=REST)
    told = (
        "would be changed b: grace_seconds 0 -> 5, webhook_url https://a.example:8443/... -> None\n"
        "would be changed c: webhook_url (another URL at https://a.example:8443/...)\n"
    )
    counted = counts(changed=2, unchanged=1)
    assert checks("apply", path, "--dry-run") == (0, told + counted, "")
    printed.append(checks("apply", path))
    assert printed[1][1].endswith(counted)
    assert [check["repeat_seconds"] for check in listed().values()] == [14400] * 3
    printed += [
        checks("list"),
        checks("list", "--json"),
        checks("apply", path, "--json", "--prune"),
    ]
    assert "SECRET" not in str(printed)


def test_prune_lists_and_deletes_only_with_yes(checks, listed, file):
    checks("apply", file('name = "used"', 'name = "idle"'))
    checks("ping", "used")
    path = file('name = "new"')
    would = (
        "not deleted without --yes: used, last pinged 2027-01-15 08:00:00 (UTC)\n"
        "not deleted without --yes: idle, last pinged never (UTC)\n"
    )
    for more in (["--dry-run"], []):
        status, out, err = checks("apply", "--prune", path, *more)
        assert (status, err, out.endswith(would + counts(1, kept=2))) == (1, "", True)
    done = json.loads(checks("apply", "--prune", path, "--json")[1])
    assert [check["name"] for check in done["kept"]] == ["used", "idle"]
    told = "deleted used\ndeleted idle\n" + counts(deleted=2, unchanged=1)
    assert checks("apply", "--prune", "--yes", path) == (0, told, "")
    assert [*listed()] == ["new"]


def test_a_file_without_checks_prunes_nothing_unless_it_says_so(checks, listed, file):
    """A template that came out empty must not delete everything."""
    checks("apply", file('name = "a"'))
    path = file()
    status, _, err = checks("apply", path, "--prune", "--yes")
    assert (status, "to do so, say check = []" in err, [*listed()]) == (2, True, ["a"])
    path.write_text("check = []")
    assert checks("apply", path, "--prune", "--yes")[0] == 0
    assert listed() == {}


def test_a_renamed_check_keeps_its_ping_url(checks, listed, file):
    checks("apply", file('name = "old"'))
    before = listed()["old"]["ping_url"]
    path = file('name = "new"\nwas = "old"')
    told = "changed new: name old -> new\n" + counts(changed=1)
    assert checks("apply", "--prune", "--yes", path) == (0, told, "")
    assert listed()["new"]["ping_url"] == before
    assert checks("apply", "--prune", path) == (0, counts(unchanged=1), "")


def test_at_the_limit_of_the_tier_what_goes_makes_room_for_what_comes(checks, listed, file):
    checks("apply", file(*(f'name = "{n}"' for n in range(50))))
    path = file(*(f'name = "new {n}"' for n in range(101)))
    status, out, err = checks("apply", path, "--prune", "--yes")
    assert (status, len(listed()), out.endswith(counts(100, deleted=50))) == (2, 100, True)
    assert err.startswith("cardbeat: new 100: This key's tier allows 100 checks")
    assert err.endswith(
        "; what is printed above was done; run apply again, it looks first and does the rest\n"
    )


def test_what_others_changed_at_the_same_time_stays_as_they_made_it(
    checks, listed, file, monkeypatch
):
    checks("apply", file('name = "a"', 'name = "b"', 'name = "c"'))
    present = list(listed().values())
    checks("apply", file('name = "a"\ngrace_seconds = 9'))
    checks("apply", "--prune", "--yes", file('name = "a"\ngrace_seconds = 9', 'name = "c"'))
    monkeypatch.setattr(
        Api, "checks", lambda _: [{**check, "period_seconds": 1} for check in present]
    )
    path = file('name = "a"', 'name = "b"', 'name = "new"')
    status, out, _ = checks("apply", path, "--json", "--prune", "--yes")
    done = json.loads(out)
    stays = "at the same time, it stays so; run apply again"
    assert done["conflicts"] == [
        f"a: somebody else changed it {stays}",
        f"b: somebody else deleted it {stays}",
    ]
    assert (status, [check["name"] for check in done["created"]]) == (1, ["new"])
    monkeypatch.undo()


@pytest.mark.parametrize("names", ["aa", "ab"])
def test_names_that_are_not_clear_are_refused_before_anything_is_done(
    checks, app, listed, file, names
):
    key = os.environ["CARDBEAT_KEY"]
    for name in names:
        app("POST", "/checks", GOOD_CHECK | {"name": name}, key=key)
    wanted = ('name = "a"',) if names == "aa" else ('name = "b"\nwas = "a"',)
    status, out, err = checks("apply", file(*wanted, 'name = "c"'))
    told = {
        "aa": "the server has 2 checks named 'a'; rename",
        "ab": "has 'b' and also 'a', its old name; ",
    }
    assert (status, out, told[names] in err, "c" in listed()) == (2, "", True, False)


def test_a_check_is_pinged_and_snoozed_by_its_name_and_the_list_shows_states(
    checks, listed, file, app
):
    checks("apply", file('name = "a b"', 'name = "b"', 'name = "c"'))
    status, out, _ = checks("ping", "a b")
    assert (status, out.startswith("on time until 2027-01-15 ")) == (0, True)
    assert json.loads(checks("ping", " a b", "--json")[1])["recovered"] is False
    for time in ("604800", "7d"):
        told = "b: snoozed until 2027-01-22 08:00:00 (UTC)\n"
        assert checks("snooze", "b", time) == (0, told, "")
    for name in ("a b", "b"):
        app("GET", f"/ping/{listed()[name]['id']}/fail")
    states = [re.split("  +", line)[1] for line in checks("list")[1].splitlines()[1:]]
    assert states == ["overdue, failed", "on time, failed, snoozed", "on time"]
    assert checks("snooze", "c", "off")[1].startswith(
        "c: not snoozed, deadline 2027-01-15 08:01:00 (UTC)"
    )


def test_all_pages_are_listed(app, server, key):
    for name in "abcde":
        app("POST", "/checks", GOOD_CHECK | {"name": name}, key=key)
    listed = Api(server, key, page_checks=2).checks()
    assert listed == app.json("GET", "/checks", key=key)["checks"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        *(
            (words, "")
            for words in ("", "list more", "apply", "ping", "list --prune", "snooze a", "all")
        ),
        *((f"test a --wait {number}", "") for number in (0, 601)),
        *(("snooze a x", "or a duration such as"), ("snooze a 59s", "from 60 to 7776000")),
        *((f"snooze a {seconds}", "from 60 to 7776000") for seconds in ("59", "0", "0s")),
        *(("snooze a 91d", "from 60"), ("ping b", "there is no check named 'b'; see: checks list")),
    ],
)
def test_other_arguments_are_one_line_and_status_2(checks, key, file, argv, says):
    checks("apply", file('name = "a"'))
    status, out, err = checks(*argv.split())
    assert (status, out, err.count("\n"), says in err) == (2, "", 1, True)


@pytest.mark.parametrize("value", ["", " ", "sk_ä", "sk_\nX-Other: 1", "sk_unknown"])
def test_without_a_key_that_the_server_knows_one_line_says_so(checks, key, monkeypatch, value):
    monkeypatch.setenv("CARDBEAT_KEY", value)
    status, out, err = checks("list")
    told = (
        "This API key is not known here"
        if value == "sk_unknown"
        else "there is no key; set the variable"
    )
    assert (status, out, err.startswith(f"cardbeat: {told}"), err.count("\n")) == (2, "", True, 1)


def test_a_read_only_key_lists_and_shows_no_ping_url(app, key, checks, file, monkeypatch):
    checks("apply", file('name = "mail"\nwebhook_url = "https://a.example/secret"'))
    monkeypatch.setenv("CARDBEAT_KEY", app.json("POST", "/key/read-only", key=key)["key"])
    assert "not shown to this key" in checks("list")[1]
    (mail,) = json.loads(checks("list", "--json")[1])
    assert (mail["ping_url"], mail["webhook_url"]) == (None, "https://a.example/...")
    told = "this is a read-only key, which can't ping; set CARDBEAT_KEY to the checks key"
    assert checks("ping", "mail") == (2, "", f"cardbeat: {told}\n")
    told = "cardbeat: This is a read-only key, which changes nothing; send the checks key.\n"
    assert checks("snooze", "mail", "1h") == checks("test", "mail") == (2, "", told)


NEXT = r" Next try at [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} \(UTC\)\.\n"
TESTS = [
    (answer(204), 0, "delivered, the receiver answered 204\n"),
    (answer(404), 1, f"not delivered: The receiver answered 404\\.{NEXT}"),
    (answer(410), 1, r"not delivered: The receiver answered 410\. It is not tried again\.\n"),
    (hang, 1, f"not sent within 1 s\\.{NEXT}"),
]


@pytest.mark.parametrize(("behaviour", "status", "says"), TESTS)
def test_a_test_alert_is_told_with_what_the_receiver_answered(  # noqa: PLR0917
    customer, checks, monkeypatch, behaviour, status, says
):
    monkeypatch.setenv("CARDBEAT_KEY", customer.key)
    with served(customer.app) as url, Receiver(behaviour) as receiver:
        job = customer.check(f"{receiver.url}/SECRET", "job")
        wait = "1" if behaviour is hang else "60"
        done, out, err = checks("test", " job ", "--wait", wait, "--url", url)
        assert (done, err) == (status, "")
        assert re.fullmatch(f"http://127.0.0.1:{receiver.port}/\\.\\.\\.: {says}", out), out
        assert receiver.received[0].json["type"] == "check.test"
        if behaviour is hang:
            for _ in range(4):
                customer.test_alert(job)
            status, out, err = checks("test", "job", "--url", url)
            assert (status, out) == (2, "")
            assert err.startswith("cardbeat: 5 test alerts of this check wait")
