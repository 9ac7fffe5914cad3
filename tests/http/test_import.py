"""Checks of Healthchecks, by the answer that its documentation shows, imported beside a server that runs."""

import copy
import json
import os
import uuid

import pytest

from cardbeat import cli
from cardbeat.commands import import_
from tests.postgresql import BOTH_ENGINES
from tests.support import GOOD_CHECK

SIMPLE = {
    "name": "Filesystem Backup",
    "slug": "filesystem-backup",
    "tags": "backup fs",
    "desc": "Runs incremental backup every hour",
    "grace": 600,
    "n_pings": 1,
    "status": "up",
    "started": False,
    "last_ping": "2020-03-24T14:02:03+00:00",
    "next_ping": "2020-03-24T15:02:03+00:00",
    "manual_resume": False,
    "methods": "",
    "subject": "",
    "subject_fail": "",
    "start_kw": "",
    "success_kw": "",
    "failure_kw": "",
    "filter_subject": False,
    "filter_body": False,
    "ping_url": "https://hc-ping.com/31365bce-8da9-4729-8ff3-aaa71d56b712",
    "update_url": "https://healthchecks.io/api/v3/checks/31365bce-8da9-4729-8ff3-aaa71d56b712",
    "pause_url": "https://healthchecks.io/api/v3/checks/31365bce-8da9-4729-8ff3-aaa71d56b712/pause",
    "resume_url": "https://healthchecks.io/api/v3/checks/31365bce-8da9-4729-8ff3-aaa71d56b712/resume",
    "channels": "1bdea468-03bf-47b8-ab27-29a9dd0e4b94,51c6eb2b-2ae1-456b-99fe-6f1e0a36cd3c",
    "timeout": 3600,
}
ID = "31365bce8da947298ff3aaa71d56b712"
OF_UUID = ("ping_url", "update_url", "pause_url", "resume_url")


def other(number=0, **members):
    """The check as another one."""
    made = copy.deepcopy(SIMPLE)
    for name in OF_UUID:
        made[name] = made[name].replace("31365bce", f"{number:08x}")
    return made | members


CRON = {
    name: value
    for name, value in other(1, name="Database Backup", schedule="15 5 * * *", tz="UTC").items()
    if name != "timeout"
}


@pytest.fixture
def owner(app, key):
    """The id of the key, as `keys list` shows it."""
    return app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]["api_key_id"]


@pytest.fixture
def imported(config, owner, tmp_path, capsys, monkeypatch):
    """Imports checks; the exit status, the lines on stdout, and stderr."""

    if config.database:
        monkeypatch.setenv("CARDBEAT_DATABASE", config.database)

    def run(checks, *argv, key=owner):
        file = tmp_path / "healthchecks.json"
        file.write_text(checks if isinstance(checks, str) else json.dumps({"checks": checks}))
        status = cli.main(["import", str(file), "--key", key, "--data", str(config.data), *argv])
        printed = capsys.readouterr()
        return status, printed.out.splitlines(), printed.err

    return run


@pytest.fixture
def held(app, key):
    """The checks of the key but its first one, by name."""
    return lambda: {it["name"]: it for it in app.json("GET", "/checks?limit=1000", key=key)["checks"][1:]}


@BOTH_ENGINES
def test_the_documented_answer_is_imported_and_its_ids_ping(imported, held, app):
    status, out, err = imported([SIMPLE, CRON])
    assert (status, err) == (1, "")
    assert out == [
        "imported Filesystem Backup, without its channels, tags, desc",
        "not imported: Database Backup: it has a schedule (15 5 * * * UTC), and here a check has a period; in the file,"
        " put timeout, the longest time between two runs in seconds, in the place of schedule and tz",
        "1 imported, 0 left as they are, 1 not imported",
        "1 of them send no alert yet: they have no webhook_url",
    ]
    (check,) = held().values()
    wanted = {"id": ID, "name": "Filesystem Backup", "period_seconds": 3600, "grace_seconds": 600, "webhook_url": None}
    assert wanted.items() <= check.items()
    new = {"status": "on_time", "last_ping_at": None, "ping_count": 0, "version": 1, "created_at": check["updated_at"]}
    assert new.items() <= check.items()
    assert app("GET", f"/ping/{ID}").status == 200
    assert held()["Filesystem Backup"]["ping_count"] == 1


@BOTH_ENGINES
def test_a_dry_run_says_the_same_and_does_nothing(imported, held):
    status, out, _ = imported([SIMPLE, CRON], "--dry-run")
    assert (status, out[0]) == (1, "would import Filesystem Backup, without its channels, tags, desc")
    assert out[2] == "1 to import, 0 left as they are, 1 not to import"
    assert held() == {}
    dry = json.loads(imported([SIMPLE, CRON], "--dry-run", "--json")[1][0])
    done = json.loads(imported([SIMPLE, CRON], "--json")[1][0])
    assert dry | {"dry_run": False} == done
    assert done["imported"] == [{"id": ID, "name": "Filesystem Backup", "lost": ["channels", "tags", "desc"]}]
    assert [it["name"] for it in done["not_imported"]] == ["Database Backup"]


@BOTH_ENGINES
def test_what_exists_is_named_and_left_alone(imported, held, app, key):
    imported([SIMPLE])
    app("PATCH", f"/checks/{ID}", {"name": "Mine", "grace_seconds": 1}, key=key)
    before = held()
    status, out, _ = imported([SIMPLE, other(2, name="Second")])
    assert status == 0
    assert "left as it is: Filesystem Backup, whose id is here already" in out
    assert out[-2] == "1 imported, 1 left as they are, 0 not imported"
    assert {name: check for name, check in held().items() if name != "Second"} == before


def test_a_check_of_another_key_is_named_and_left_to_it(imported, held, app, owner):
    imported([SIMPLE])
    stranger = app.checks_key()
    theirs = app.json("POST", "/checks", GOOD_CHECK, key=stranger)["check"]["api_key_id"]
    status, (told, counts), err = imported([SIMPLE], key=theirs)
    assert (status, err, counts) == (1, "", "0 imported, 0 left as they are, 1 not imported")
    assert told.startswith(f"not imported: Filesystem Backup: its id is here already, in the key {owner}; ")
    assert len(app.json("GET", "/checks", key=stranger)["checks"]) == 1
    assert list(held()) == ["Filesystem Backup"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"filter_subject": True}, "it judges pings by their text (filter_subject), and here each ping counts"),
        ({"filter_body": True, "failure_kw": "ERROR"}, "it judges pings by their text (filter_body)"),
        ({"filter_http_body": True}, "it judges pings by their text (filter_http_body)"),
        ({"subject": "OK"}, "it judges pings by their text (subject)"),
        ({"status": "paused"}, "it is paused, and here a check is always watched"),
        ({"schedule": "0 * * * *"}, "it has a schedule (0 * * * *)"),
        ({"schedule": ["\x1b"]}, "it has a schedule"),
        ({"timeout": None}, "The field period_seconds is required"),
        ({"timeout": "3600"}, "The field period_seconds must be an integer"),
        ({"timeout": True}, "The field period_seconds must be an integer"),
        ({"grace": -1}, "The field grace_seconds must be an integer"),
        ({"name": 5}, "The field name must be a string"),
        ({"name": "\x1b[2J"}, "The field name must not hold control characters"),
        ({"name": "\u202eevil"}, "The field name must not hold characters that control the direction"),
        (dict.fromkeys(OF_UUID, "https://hc-ping.com/x"), "it has no UUID"),
        (dict.fromkeys(OF_UUID), "it has no UUID"),
    ],
)
def test_what_can_not_be_watched_as_it_was_is_named_and_not_imported(imported, held, members, says):
    status, out, err = imported([other(3, **members), SIMPLE])
    assert (status, err, list(held())) == (1, "", ["Filesystem Backup"])
    (line,) = [line for line in out if line.startswith("not imported: ")]
    assert says in line
    assert line.isprintable()


def test_what_an_imported_check_loses_is_named(imported, held):
    by_slug = "https://hc-ping.com/fqOOd6-F4MMNuCEnzTU01w/db-backup"
    status, out, _ = imported(
        [
            other(1, name="posts", methods="POST", manual_resume=True, tags="", desc="", channels=""),
            other(2, name="slug", ping_url=by_slug, tags="", desc=""),
            other(3, name="none", tags="", desc="", channels=""),
        ]
    )
    assert status == 0
    assert out[:3] == [
        "imported posts, without its manual_resume, methods",
        "imported slug, without its channels, slug",
        "imported none",
    ]
    assert held()["slug"]["id"] == "000000028da947298ff3aaa71d56b712"


@pytest.mark.parametrize(
    "urls",
    [
        {"uuid": str(uuid.UUID(ID)), "ping_url": "https://hc.example/ping/key/slug"},
        {"ping_url": f"https://hc.example:8000/ping/{uuid.UUID(ID)}"},
        {"ping_url": f"https://hc.example/{str(uuid.UUID(ID)).upper()}/"},
    ],
)
def test_the_uuid_is_found_wherever_it_stands(imported, held, urls):
    without = {name: value for name, value in SIMPLE.items() if name not in OF_UUID}
    assert imported([without | urls])[0] == 0
    assert held()["Filesystem Backup"]["id"] == ID


def test_a_check_without_a_name_gets_its_slug_or_the_begin_of_its_uuid(imported, held):
    imported([other(1, name=""), other(2, name="", slug="")])
    assert list(held()) == ["filesystem-backup", "00000002"]


def test_all_alert_one_webhook_that_is_not_shown(imported, held, monkeypatch):
    monkeypatch.setenv("CHAT", "https://chat.example/SECRET")
    printed = [
        imported([SIMPLE, other(2)], "--webhook-url", "$CHAT", *more) for more in (["--dry-run"], ["--json"], [])
    ]
    assert "SECRET" not in str(printed)
    assert "no alert yet" not in str(printed)
    assert held()["Filesystem Backup"]["webhook_url"] == "https://chat.example/SECRET"


@pytest.mark.parametrize(
    "given", ["$CARDBEAT_TEST_NONE", "ftp://chat.example/SECRET", "https://me:SECRET@chat.example"]
)
def test_a_webhook_that_can_not_be_is_one_line_and_nothing_is_imported(imported, held, given):
    status, out, err = imported([SIMPLE], "--webhook-url", given)
    assert (status, out, err.count("\n"), held()) == (2, [], 1, {})
    assert "SECRET" not in err


@BOTH_ENGINES
def test_over_the_limit_of_the_tier_nothing_is_imported(imported, held, app):
    status, out, err = imported([other(n, name=f"job {n}") for n in range(100)])
    told = "the key would have 101 checks, and its tier free allows 100; nothing was imported; see: keys tier"
    assert (status, out, err, held()) == (2, [], f"cardbeat: {told}\n", {})
    assert imported([other(n) for n in range(100)], "--dry-run")[0] == 2
    assert imported([other(n) for n in range(99)])[0] == 0
    assert imported([other(n) for n in range(99)])[0] == 0
    assert imported([other(99)])[0] == 2


@BOTH_ENGINES
def test_pings_are_noted_while_many_are_imported(imported, held, app, monkeypatch):
    pinged = []
    monkeypatch.setattr(import_, "AT_ONCE", 2)
    monkeypatch.setattr(import_, "sleep", lambda _: pinged.append(app("GET", f"/ping/{ID}").status))
    status, out, _ = imported([SIMPLE, *(other(n, name=f"job {n}") for n in range(1, 5))])
    assert (status, out[-2]) == (0, "5 imported, 0 left as they are, 0 not imported")
    assert (pinged, len(held())) == ([200] * 3, 5)


def test_where_nothing_is_new_it_needs_no_room(imported, tmp_path):
    imported([other(1), other(2)])
    (tmp_path / "tiers.toml").write_text("[free]\nmax_checks = 1\n")
    assert imported([other(1)], "--tiers", str(tmp_path / "tiers.toml"))[0] == 0


def test_the_limits_of_the_tier_hold_for_each_check(imported, held, tmp_path):
    (tmp_path / "tiers.toml").write_text("[free]\nmin_period_seconds = 3600\nmax_checks = 2\n")
    checks = [other(1, timeout=3599), SIMPLE]
    status, out, _ = imported(checks, "--tiers", str(tmp_path / "tiers.toml"))
    assert (status, list(held())) == (1, ["Filesystem Backup"])
    assert "The field period_seconds must be an integer from 3600" in out[1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no list of checks; save what GET /api/v3/checks/"),
        ('{"error": "wrong api key"}', "holds no list of checks"),
        ('{"checks": [1]}', "holds no list of checks"),
        ('{"checks": [' + "{}," * 100_000 + "{}]}", "holds more than 100000 checks"),
        ("[" * 100_000, "holds no list of checks"),
        ('{"checks": [{"name": "a", "unique_key": "a6c7", "timeout": 60, "grace": 60}]}', "made with a read-only key"),
    ],
)
def test_another_file_is_one_line_and_status_2(imported, held, content, says):
    status, out, err = imported(content)
    assert (status, out, err.count("\n"), held()) == (2, [], 1, {})
    assert says in err


def test_a_key_that_holds_no_checks_is_refused(imported, app, config, capsys):
    for key in ("key_none", "\ud800"):
        assert imported([SIMPLE], key=key)[::2] == (
            2,
            f"cardbeat: there is no key with the id {key!r}; see: keys list\n",
        )
    app.cards_key()
    cli.main(["keys", "list", "--json", "--data", str(config.data)])
    (cards,) = [key["id"] for key in json.loads(capsys.readouterr().out) if key["scope"] == "cards"]
    status, _, err = imported([SIMPLE], key=cards)
    assert (status, err.count("\n"), "cards key" in err) == (2, 1, True)


@BOTH_ENGINES
def test_of_two_checks_with_one_short_id_the_second_is_named_and_not_imported(imported, held):
    """Else the pages of a read-only key, whose `next` is a short id, would never end."""
    uuids = [f"aaaaaaaa-bbbb-4ccc-8ddd-00000000000{number}" for number in (1, 2, 1)]
    twins = [{"name": name, "uuid": it, "timeout": 60, "grace": 0} for name, it in zip("abc", uuids, strict=True)]
    named = {
        "not imported: c: it has the UUID of a, which stands before it in the file",
        "not imported: b: the first 12 digits of its UUID are those of a; a read-only key could not tell them apart",
    }
    status, out, _ = imported(twins)
    assert (status, list(held())) == (1, ["a"])
    assert (set(out[1:3]), out[3]) == (named, "1 imported, 0 left as they are, 2 not imported")
    # The same again, and from another file: what is not imported does not look as if it were there.
    status, out, _ = imported(twins)
    assert (status, set(out[1:3]), out[3]) == (1, named, "0 imported, 1 left as they are, 2 not imported")
    assert imported(twins[1:2])[:2] == (1, [*sorted(named)[:1], "0 imported, 0 left as they are, 1 not imported"])
    assert list(held()) == ["a"]


@BOTH_ENGINES
def test_a_check_like_that_of_another_key_is_imported(imported, held, app):
    imported([SIMPLE])
    theirs = app.json("POST", "/checks", GOOD_CHECK, key=app.checks_key())["check"]["api_key_id"]
    almost = SIMPLE | {"ping_url": f"https://hc-ping.com/{uuid.UUID(ID[:-1] + '3')}"}
    assert imported([almost], key=theirs)[1][1] == "1 imported, 0 left as they are, 0 not imported"


def test_a_name_that_is_no_text_is_named_and_not_imported(imported, held):
    status, out, err = imported([SIMPLE, other(1, name="\ud800x")])
    assert (status, err, list(held())) == (1, "", ["Filesystem Backup"])
    assert out[1].endswith("The field name must not hold half a surrogate pair.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_no_file_or_a_huge_one_is_refused_before_it_is_read(owner, config, capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(2**30)
    for name, says in (("pipe", "is not a regular file"), ("huge", "is larger than 16 MiB")):
        assert cli.main(["import", str(tmp_path / name), "--key", owner, "--data", str(config.data)]) == 2
        assert capsys.readouterr().err == f"cardbeat: {tmp_path / name} {says}\n"


def test_a_file_that_is_not_there_is_one_line(config, owner, capsys):
    assert cli.main(["import", "none.json", "--key", owner, "--data", str(config.data)]) == 2
    assert capsys.readouterr().err == "cardbeat: can't read none.json: No such file or directory\n"
