"""Checks of Healthchecks, by the answer that its documentation shows, imported beside a server that runs."""

import copy
import json
import uuid
from pathlib import Path

import pytest

from cardbeat import cli
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import GOOD_CHECK

SIMPLE = json.loads(
    Path(__file__).with_name("healthchecks.json").read_text()
)
"""The check that its documentation shows."""
ID = "31365bce8da947298ff3aaa71d56b712"
OF_UUID = ("ping_url", "update_url", "pause_url", "resume_url")


def other(number=0, **members):
    """The check as another one."""
    made = copy.deepcopy(SIMPLE)
    for name in OF_UUID:
        made[name] = made[name].replace("31365bce", f"{number:08x}")
    return made | members


@pytest.fixture
def owner(app, key):
    """The id of the key, as `keys list` shows it."""
    return app.json("POST", "/checks", GOOD_CHECK, key=key)["check"][
        "api_key_id"
    ]


@pytest.fixture
def run(config, owner, tmp_path, capsys, monkeypatch):
    """Imports a file; the exit status, stdout and stderr."""
    if config.database:
        monkeypatch.setenv("CARDBEAT_DATABASE", config.database)

    def run(content, *argv, key=owner):
        file = tmp_path / "healthchecks.json"
        file.write_text(content)
        status = cli.main(
            [
                "import",
                str(file),
                "--key",
                key,
                "--data",
                str(config.data),
                *argv,
            ]
        )
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def imported(run):
    """Imports checks; the exit status, and what was done with each."""

    def imported(checks, *argv, **options):
        status, out, err = run(
            json.dumps({"checks": checks}), "--json", *argv, **options
        )
        assert not err
        return status, [tuple(row.values()) for row in json.loads(out)]

    return imported


@pytest.fixture
def held(app, key):
    """The checks of the key but its first one, by name."""
    return lambda: {
        it["name"]: it
        for it in app.json("GET", "/checks?limit=1000", key=key)[
            "checks"
        ][1:]
    }


FILESYSTEM = ("imported", "Filesystem Backup", "")


@BOTH_ENGINES
def test_the_documented_answer_is_imported_and_its_ids_ping(
    imported, held, app
):
    assert imported([SIMPLE]) == (0, [FILESYSTEM])
    (check,) = held().values()
    wanted = {
        "id": ID,
        "name": "Filesystem Backup",
        "period_seconds": 3600,
        "grace_seconds": 600,
    }
    new = {
        "webhook_url": None,
        "status": "on_time",
        "last_ping_at": None,
        "version": 1,
    }
    assert check == check | wanted | new
    assert app("GET", f"/ping/{ID}").status == 200


@BOTH_ENGINES
def test_what_is_here_already_is_left_as_it_is(imported, held, app, key):
    imported([SIMPLE])
    app(
        "PATCH",
        f"/checks/{ID}",
        {"name": "Mine", "grace_seconds": 1},
        key=key,
    )
    before = held()
    second = other(2, name="Second")
    done = [
        ("here already", "Filesystem Backup", ""),
        ("imported", "Second", ""),
    ]
    assert imported([SIMPLE, second]) == (0, done)
    assert held() == before | {"Second": held()["Second"]}


def test_a_check_of_another_key_is_named_and_left_to_it(
    imported, app, owner
):
    imported([SIMPLE])
    stranger = app.checks_key()
    theirs = app.json("POST", "/checks", GOOD_CHECK, key=stranger)[
        "check"
    ]["api_key_id"]
    why = f"its id is here already, in the key {owner}"
    assert imported([SIMPLE], key=theirs) == (
        1,
        [("not imported", "Filesystem Backup", why)],
    )
    assert len(app.json("GET", "/checks", key=stranger)["checks"]) == 1


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {"filter_body": True, "failure_kw": "ERROR"},
            "pings by their text (filter_body)",
        ),
        (
            {"subject": "OK", "subject_fail": "x"},
            "pings by their text (subject, subject_fail)",
        ),
        ({"status": "paused"}, "it is paused"),
        (
            {"schedule": "15 5 * * *"},
            "it has a schedule; put timeout, a period, in its place",
        ),
        (
            {"timeout": "3600"},
            "The field period_seconds must be an integer",
        ),
        (
            {"name": "\x1b[2J"},
            "The field name must not hold control characters",
        ),
        (
            dict.fromkeys(OF_UUID, "https://hc-ping.com/x"),
            "it has no UUID",
        ),
    ],
)
def test_what_can_not_be_watched_as_it_was_is_named_and_not_imported(
    imported, held, members, says
):
    status, (line, fine, twin) = imported(
        [other(3, **members), SIMPLE, SIMPLE]
    )
    assert status == 1
    assert fine == FILESYSTEM
    assert twin[0] == "here already"
    assert [*held()] == [FILESYSTEM[1]]
    assert line[0] == "not imported"
    assert says in line[2]


@pytest.mark.parametrize(
    "urls",
    [
        {
            "uuid": str(uuid.UUID(ID)),
            "ping_url": "https://hc.example/ping/key/slug",
        },
        {"ping_url": f"https://hc.example:8000/ping/{uuid.UUID(ID)}"},
        {"ping_url": f"https://hc.example/{str(uuid.UUID(ID)).upper()}/"},
    ],
)
def test_the_uuid_is_found_wherever_it_stands_and_a_name_too(
    imported, held, urls
):
    without = dict(SIMPLE)
    for name in OF_UUID:
        without.pop(name, None)
    assert imported([without | urls | {"name": ""}])[0] == 0
    assert held()["filesystem-backup"]["id"] == ID


def test_all_alert_one_webhook_that_is_not_shown(run, held, monkeypatch):
    monkeypatch.setenv("CHAT", "https://chat.example/SECRET")
    content = json.dumps({"checks": [SIMPLE, other(2, name="\x1b[2J")]})
    printed = [run(content, "--webhook-url", "$CHAT")]
    assert (
        held()["Filesystem Backup"]["webhook_url"]
        == "https://chat.example/SECRET"
    )
    content = json.dumps({"checks": [other(3)]})
    printed.append(
        run(
            content,
            "--webhook-url",
            "ftp://me:SECRET@chat.example/SECRET",
        )
    )
    printed.append(run(content, "--webhook-url", "$CARDBEAT_TEST_NONE"))
    assert [status for status, *_ in printed] == [1, 1, 2]
    assert "Give an absolute URL" in printed[1][1]
    text = "".join(out + err for _, out, err in printed)
    assert "SECRET" not in text
    assert text.replace("\n", "").isprintable()


@BOTH_ENGINES
def test_over_the_limits_of_the_tier_nothing_is_imported(
    run, held, tmp_path
):
    def content(*numbers, **members):
        return json.dumps(
            {"checks": [other(n, **members) for n in numbers]}
        )

    told = "the key would have 101 checks, and its tier free allows 100; nothing was imported; see: keys tier"
    assert run(content(*range(100))) == (2, "", f"cardbeat: {told}\n")
    assert held() == {}
    assert run(content(*range(99)))[0] == 0
    (tmp_path / "tiers.toml").write_text(
        "[free]\nmin_period_seconds = 3601\nmax_checks = 1\n"
    )
    few = ("--tiers", str(tmp_path / "tiers.toml"))
    assert run(content(1, timeout=3601), *few)[0] == 0  # nothing is new
    assert "must be an integer from 3601" in run(content(1), *few)[1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "holds no list of checks; save what GET /api/v3/checks/"),
        ("[" * 100_000, "holds no list of checks"),
        (" " * (16 * 2**20 + 1), "is larger than 16 MiB"),
    ],
)
def test_another_file_is_one_line_and_status_2(run, content, says):
    status, out, err = run(content)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert says in err


def test_a_key_that_holds_no_checks_is_refused(run, app):
    content = json.dumps({"checks": [SIMPLE]})
    told = "cardbeat: there is no key with the id 'key_none'; see: keys list\n"
    assert run(content, key="key_none") == (2, "", told)
    app.cards_key()
    with app.service.database.read() as connection:
        (cards,) = connection.execute(
            "SELECT id FROM keys WHERE scope = 'cards'"
        ).fetchone()
    status, _, err = run(content, key=cards)
    assert status == 2
    assert err.count("\n") == 1
    assert "cards key" in err
