"""Commands as an operator runs them on a data folder, with odd arguments and odd places to print to."""

import contextlib
import json
import os
import shutil
import sqlite3
from datetime import datetime

import pytest

from cardbeat.cli import main
from tests.kit.lists import each
from tests.kit.support import full_disk, gone_reader
from tests.kit.systems import ARGUMENTS, FULL_DISK, WINDOWS
from tests.rules.commands.conftest import in_a_process

TIERS = ("--tiers", "tiers.toml")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A data folder with a cards key, a checks key, and one in a tier that only a file defines."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "tiers.toml").write_text("[plus]\nmax_checks = 5\n")
    tiers = (
        "--tiers",
        str(folder / "tiers.toml"),
        "--data",
        str(folder / "cardbeat-data"),
    )
    for more in ([], ["--email", "zoë@example.com"], ["--tier", "plus"]):
        assert main(["keys", "create", *tiers, *more]) == 0
    return folder


@pytest.fixture
def data(made, tmp_path):
    """A copy of it in the test's folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "cardbeat-data"


@pytest.fixture
def listed(run):
    return lambda: json.loads(run("keys", "list", "--json").out)


def change(data, sql, *values):
    with contextlib.closing(
        sqlite3.connect(data / "cardbeat.db")
    ) as connection:
        connection.execute(sql, values)
        connection.commit()


def test_a_new_key_is_shown_once_and_listed_without_its_value(
    run, data, listed
):
    shown = json.loads(
        run("keys", "create", "--email", "a@b.c", "--json").out
    )
    value = shown.pop("key")
    assert shown.pop("webhook_secret").startswith("whsec_")
    *_, plus, new = listed()
    assert plus["tier"] == "plus"
    assert plus["scope"] == "cards"
    assert plus["email"] is None
    created = datetime.fromisoformat(new["created_at"])
    assert (
        datetime.fromisoformat(new.pop("removed_after")) - created
    ).days == 90
    assert new == shown | {
        "prefix": value[:8],
        "checks": 0,
        "used_at": None,
    }
    printed = run("keys", "list").out
    assert new["id"] in printed
    assert value not in printed


@pytest.mark.parametrize("number", [0, 1])
def test_a_key_is_replaced_moved_and_revoked(run, data, listed, number):
    before = listed()[number]
    value = json.loads(
        run("keys", "replace", before["id"], "--json").out
    )["key"]
    after = listed()[number]
    assert value.startswith(after["prefix"])
    assert before == after | {"prefix": before["prefix"]} != after
    assert (
        "counts: now, on every server\n"
        in run("keys", "tier", before["id"], "unlimited").out
    )
    assert listed()[number]["tier"] == "unlimited"
    assert "revoked: True\n" in run("keys", "revoke", before["id"]).out
    assert before["id"] not in str(listed())
    for action in (["revoke"], ["replace"], ["tier", "free"]):
        words = [action[0], before["id"], *action[1:]]
        assert "no key with the id" in run("keys", *words).refused()


@ARGUMENTS
def test_an_argument_that_can_not_be_is_one_line_and_makes_no_key(
    run, data, listed
):
    before = listed()
    for argv, told in {
        ("create", "--email", os.fsdecode(b"a\xff@b.c")): "no key has ",
        ("create", "--tier", "plus"): "; the tiers are free, unlimited",
    }.items():
        assert told in run("keys", *argv).refused()
    assert listed() == before


@pytest.mark.parametrize(
    "command", ["keys list", "keys tier key_1 free", "backup copy.db"]
)
def test_only_serving_and_creating_a_key_make_a_database(
    run, tmp_path, command
):
    told = run(*command.split(), "--data", "none").refused()
    path = tmp_path / "none" / "cardbeat.db"
    assert told.startswith(
        f"there is no database at {path}; name the server's data folder"
    )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "keys create",
        "backup a --data {}",
        "card --title A --output a.png",
        "cards {} --output a",
    ],
)
def test_a_current_folder_that_is_gone_is_told(
    run, data, monkeypatch, command
):
    gone = data / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    told = run(*command.format(data).split()).refused()
    assert told.endswith("No such file or directory")


def test_a_first_key_makes_the_database_and_tells_where(
    run, tmp_path, monkeypatch
):
    monkeypatch.setenv(
        "STATE_DIRECTORY", f"{tmp_path / 'state'}:{tmp_path / 'second'}"
    )
    for folder, options in {
        "named": ["--data", "named"],
        "state": [],
    }.items():
        path = tmp_path / folder / "cardbeat.db"
        told = f"cardbeat: there was no database at {path}, so a new one was made\n"
        assert [
            run("keys", "create", *options).err for _ in range(2)
        ] == [
            told,
            "",
        ]


@FULL_DISK
@pytest.mark.parametrize(
    "command", ["keys list", "--help", "card --title A --output -"]
)
def test_a_reader_that_has_seen_enough_is_no_error_and_a_full_disk_is(
    data, command
):
    for place, told in (
        (gone_reader, (0, "")),
        (
            full_disk,
            (2, "cardbeat: can't print: No space left on device\n"),
        ),
    ):
        with place() as stdout:
            argv = (*command.split(), *TIERS * (command == "keys list"))
            ran = in_a_process(data.parent, *argv, stdout=stdout)
        assert (ran.returncode, ran.stderr) == told


EVIL = "\x1b]0;x\x07\x9b2J\u202e\u2066\u200b\u2028\x85\t\n\xad@א"
SHOWN = (
    "\\x1b]0;x\\x07\\x9b2J\\u202e\\u2066\\u200b\\u2028\\x85\\t\\n\\xad@א"
)


def test_no_text_of_a_tampered_file_reaches_the_terminal_raw(run, data):
    change(
        data,
        "UPDATE keys SET id = ? || id, prefix = ?, tier = ?, email = ?",
        *[EVIL] * 4,
    )
    ran = run("keys", "list")
    assert ran.out.count(SHOWN) == 12
    assert all(line.isprintable() for line in ran.out.split("\n"))
    change(data, "UPDATE keys SET email = CAST(x'1b5b324aff' AS TEXT)")
    ran = in_a_process(
        data.parent,
        "keys",
        "list",
        variables={"PYTHONIOENCODING": "ascii"},
    )
    assert "  \\x1b[2J\\ufffd  " in ran.stdout


def examined(run, *argv):
    """The status of `doctor`, and its findings that are not fine, by their names."""
    ran = run("doctor", "--json", *argv)
    told = json.loads(ran.out)
    bad = {
        it["name"]: it
        for it in told
        if it["level"] != "ok" and it["name"] != "raqm"
    }
    problems = [it for it in bad.values() if it["level"] == "problem"]
    assert (ran.status == 0) == (not problems)
    rows = [
        line.split()[:2] for line in run("doctor", *argv).out.splitlines()
    ]
    assert rows == [
        ["LEVEL", "NAME"],
        *([it["level"], it["name"]] for it in told),
    ]
    known = {
        "python",
        "pillow",
        "raqm",
        "fonts",
        "database",
        "disk",
        "certificates",
        "clock",
    }
    assert known <= set(each(told, "name"))
    return ran.status, bad


def test_doctor_finds_a_sound_setup_fine_and_makes_nothing(run, data):
    assert examined(run) == (0, {})
    assert examined(run, "--data", "none") == (0, {})
    assert not (data.parent / "none").exists()


def test_doctor_tells_what_is_likely_a_mistake(run, data):
    data.chmod(0o707)
    status, bad = examined(run, "--base-url", "https://cards.example")
    # On Windows the mode of a folder says nothing.
    assert status == 0
    assert {*bad} == ({"setup"} if WINDOWS else {"setup", "folder"})
    assert all("; " in it["found"] for it in bad.values())


def test_a_backup_and_its_restore_tell_what_they_did(run, data, tmp_path):
    for name in ("copy.db", os.path.join("none", "..", "copy.db")):
        made = json.loads(run("backup", name, "--json").out)
        assert made == {
            "file": name,
            "bytes": (tmp_path / "copy.db").stat().st_size,
        }
    told = json.loads(run("restore", "copy.db", "--json").out)
    assert (tmp_path / told.pop("kept")).is_file()
    place = {"database": os.path.join(data.name, "cardbeat.db")}
    assert told == place | {
        "keys": 3,
        "checks": 0,
        "last_served_at": None,
    }


def test_a_backup_that_could_not_be_restored_does_not_replace_the_one_before(
    run, data, tmp_path
):
    run("backup", "copy.db")
    before = (tmp_path / "copy.db").read_bytes()
    row = "(check_id, key_id, outage, began_at, noticed_at, reason) VALUES ('a', 'a', 1, 1, 1, 'late')"
    change(data, f"INSERT INTO outages {row}")
    found = f"{os.path.join(data.name, 'cardbeat.db')} has a row of outages that refers to no row"
    assert (
        run("backup", "copy.db")
        .refused()
        .startswith(f"{found}; restore a backup, or do as")
    )
    assert (tmp_path / "copy.db").read_bytes() == before
    status, bad = examined(run)
    assert status == 1
    assert bad["database"]["found"].startswith(found)
    told = run(
        "restore", str(data / "cardbeat.db"), "--data", "new"
    ).refused()
    assert told.endswith(
        "has a row of outages that refers to no row; nothing was restored"
    )


def test_a_backup_of_postgresql_is_refused_with_what_to_use(
    run, monkeypatch
):
    monkeypatch.setenv(
        "CARDBEAT_DATABASE", "postgresql://me@127.0.0.1:1/db"
    )
    assert "pg_dump" in run("backup", "copy.db").refused()


SERVE = ("--port", "0", "--data")
STOPS_AT_ONCE = "service.Service.run = lambda service: service.close()"
STOPPED_BEFORE_IT_FAILS = """
import os, signal
def fails(*arguments, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    raise cli.StartupError("it can't start")

service.Service = fails
"""


def test_the_start_tells_in_one_line_each_what_is_likely_a_mistake(data):
    variables = {
        "CARDBEAT_PORT": "tcp://10.96.7.1:80",
        "CARDBEAT_BASE_URL": "https://cards.example",
    }
    argv = ("serve", "--port", "0", "--data", data)
    ran = in_a_process(
        data.parent, *argv, code=STOPS_AT_ONCE, variables=variables
    )
    lines = ran.stderr.splitlines()
    warnings = [
        line.split(" WARNING ")[1]
        for line in lines
        if " WARNING " in line
    ]
    assert [warning.split("; ")[0] for warning in warnings] == [
        "CARDBEAT_PORT is ignored, because Kubernetes set it for a Service",
        "everyone who reaches https://cards.example can get keys there",
        "if a proxy serves https://cards.example, the limits take all its clients for one",
    ]


def test_a_stop_during_the_start_is_not_lost(tmp_path):
    ran = in_a_process(
        tmp_path, *SERVE, "data", code=STOPPED_BEFORE_IT_FAILS
    )
    assert ran.returncode == 0
    assert ran.stderr == ""
