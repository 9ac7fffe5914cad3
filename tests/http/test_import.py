"""Checks of Healthchecks, by the answer that its documentation shows, imported beside a server that runs."""

import copy
import json
import uuid
from pathlib import Path

import pytest

from cardbeat import cli
from tests.postgresql import BOTH_ENGINES
from tests.support import GOOD_CHECK

SIMPLE = json.loads(Path(__file__).with_name("healthchecks.json").read_text())
"""The check that its documentation shows."""
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
    return lambda: {
        it["name"]: it for it in app.json("GET", "/checks?limit=1000", key=key)["checks"][1:]
    }


FILESYSTEM = (
    "Filesystem Backup, without its channels, tags, desc; it sends no alert: it has no webhook_url"
)
CRON_PROBLEM = (
    "it has a schedule (15 5 * * * UTC), and here a check has a period; in the file, put timeout, the longest time"
    " between two runs in seconds, in the place of schedule and tz"
)


@BOTH_ENGINES
def test_the_documented_answer_is_imported_and_its_ids_ping(imported, held, app):
    would = [
        f"would import {FILESYSTEM}",
        f"not imported: Database Backup: {CRON_PROBLEM}",
        "would import 1, left 0 as they are, not imported 1",
    ]
    assert imported([SIMPLE, CRON], "--dry-run") == (1, would, "")
    dry = json.loads(imported([SIMPLE, CRON], "--dry-run", "--json")[1][0])
    lost = {"id": ID, "name": "Filesystem Backup", "lost": ["channels", "tags", "desc"]}
    assert (dry["imported"], held()) == ([lost], {})
    assert dry["not_imported"] == [{"name": "Database Backup", "problem": CRON_PROBLEM}]
    done = [line.replace("would import", "imported") for line in would]
    assert imported([SIMPLE, CRON]) == (1, done, "")
    (check,) = held().values()
    wanted = {"id": ID, "name": "Filesystem Backup", "period_seconds": 3600, "grace_seconds": 600}
    new = {"webhook_url": None, "status": "on_time", "last_ping_at": None, "version": 1}
    assert check == check | wanted | new
    assert app("GET", f"/ping/{ID}").status == 200


@BOTH_ENGINES
def test_what_is_here_already_is_left_as_it_is(imported, held, app, key):
    imported([SIMPLE])
    app("PATCH", f"/checks/{ID}", {"name": "Mine", "grace_seconds": 1}, key=key)
    before = held()
    status, out, _ = imported([SIMPLE, other(2, name="Second")])
    assert (status, out[1]) == (0, "left as it is: Filesystem Backup, whose id is here already")
    assert out[-1] == "imported 1, left 1 as they are, not imported 0"
    assert held() == before | {"Second": held()["Second"]}


def test_a_check_of_another_key_is_named_and_left_to_it(imported, held, app, owner):
    imported([SIMPLE])
    stranger = app.checks_key()
    theirs = app.json("POST", "/checks", GOOD_CHECK, key=stranger)["check"]["api_key_id"]
    status, (told, _), err = imported([SIMPLE], key=theirs)
    assert (status, err) == (1, "")
    assert told.startswith(
        f"not imported: Filesystem Backup: its id is here already, in the key {owner}; "
    )
    assert len(app.json("GET", "/checks", key=stranger)["checks"]) == 1


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {"filter_body": True, "failure_kw": "ERROR"},
            "it judges pings by their text (filter_body), and here each",
        ),
        (
            {"subject": "OK", "subject_fail": "x"},
            "it judges pings by their text (subject, subject_fail)",
        ),
        ({"status": "paused"}, "it is paused, and here a check is always watched"),
        ({"schedule": ["\x1b"]}, "it has a schedule"),
        ({"timeout": "3600"}, "The field period_seconds must be an integer"),
        ({"name": "\x1b[2J"}, "The field name must not hold control characters"),
        (dict.fromkeys(OF_UUID, "https://hc-ping.com/x"), "it has no UUID"),
    ],
)
def test_what_can_not_be_watched_as_it_was_is_named_and_not_imported(imported, held, members, says):
    status, out, err = imported([other(3, **members), SIMPLE, SIMPLE | {"name": "twin"}])
    assert (status, err, list(held())) == (1, "", ["Filesystem Backup"])
    line, twin = [line for line in out if line.startswith("not imported: ")]
    assert says in line
    assert line.isprintable()
    assert twin == "not imported: twin: its UUID is that of a check before it in the file"


def test_of_an_imported_check_what_is_lost_is_named_and_a_name_is_found(imported, held):
    slug = {"name": "", "ping_url": "https://hc-ping.com/fqOOd6/db-backup", "tags": "", "desc": ""}
    status, out, _ = imported([other(2, **slug), other(3, name="", slug="", methods="POST")])
    assert (status, out[0]) == (
        0,
        "imported filesystem-backup, without its channels, slug; " + SILENT,
    )
    assert out[1].startswith("imported 00000003, without its channels, methods")


SILENT = "it sends no alert: it has no webhook_url"


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


def test_all_alert_one_webhook_that_is_not_shown(imported, held, monkeypatch):
    monkeypatch.setenv("CHAT", "https://chat.example/SECRET")
    argv = ([SIMPLE, other(2)], "--webhook-url", "$CHAT")
    printed = [imported(*argv, *more) for more in (["--dry-run"], ["--json"], [])]
    assert not [word for word in ("SECRET", "no alert") if word in str(printed)]
    assert held()["Filesystem Backup"]["webhook_url"] == "https://chat.example/SECRET"
    for given in ("$CARDBEAT_TEST_NONE", "ftp://me:SECRET@chat.example/SECRET"):
        status, out, err = imported([other(5)], "--webhook-url", given)
        assert (status, out, err.count("\n"), "SECRET" in err) == (2, [], 1, False)


@BOTH_ENGINES
def test_over_the_limits_of_the_tier_nothing_is_imported(imported, held, tmp_path):
    status, out, err = imported([other(n, name=f"job {n}") for n in range(100)])
    told = "the key would have 101 checks, and its tier free allows 100; nothing was imported; see: keys tier"
    assert (status, out, err, held()) == (2, [], f"cardbeat: {told}\n", {})
    assert imported([other(n) for n in range(99)])[0] == 0
    assert imported([other(99)])[0] == 2
    (tmp_path / "tiers.toml").write_text("[free]\nmin_period_seconds = 3601\nmax_checks = 1\n")
    few = ("--tiers", str(tmp_path / "tiers.toml"))
    assert imported([other(1, timeout=3601)], *few)[0] == 0  # nothing is new
    assert "must be an integer from 3601" in imported([other(1)], *few)[1][0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no list of checks; save what GET /api/v3/checks/"),
        ("[" * 100_000, "holds no list of checks"),
        (
            '{"checks": [{"name": "a", "unique_key": "a6c7", "timeout": 60, "grace": 60}]}',
            "made with a read-only key",
        ),
        (" " * (16 * 2**20 + 1), "is larger than 16 MiB"),
    ],
)
def test_another_file_is_one_line_and_status_2(imported, held, content, says):
    status, out, err = imported(content)
    assert (status, out, err.count("\n"), held()) == (2, [], 1, {})
    assert says in err


def test_a_key_that_holds_no_checks_is_refused_and_a_file_that_is_not_there(imported, app, config):
    for key in ("key_none", "\ud800"):
        told = f"cardbeat: there is no key with the id {key!r}; see: keys list\n"
        assert imported([SIMPLE], key=key)[::2] == (2, told)
    app.cards_key()
    with app.service.database.read() as connection:
        (cards,) = connection.execute("SELECT id FROM keys WHERE scope = 'cards'").fetchone()
    status, _, err = imported([SIMPLE], key=cards)
    assert (status, err.count("\n"), "cards key" in err) == (2, 1, True)
    assert cli.main(["import", "none.json", "--key", "key_1", "--data", str(config.data)]) == 2
