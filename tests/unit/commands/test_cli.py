"""Commands run as an operator runs them, with odd arguments and an odd place to print to."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.artifact import ROOT, clean_environment
from tests.support import full_disk, gone_reader
from tests.systems import ARGUMENTS, FULL_DISK, LINKS, PIPES, WINDOWS

VARIABLES = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "CARDBEAT_DATA": "cardbeat-data"}


@pytest.fixture
def run(tmp_path):
    """Runs a command in the test's folder, with data in a folder below it."""

    def run_command(*argv, environment=None, stdout=subprocess.PIPE):
        return subprocess.run(
            [sys.executable, "-m", "cardbeat", *argv],
            cwd=tmp_path,
            env={**clean_environment(), **VARIABLES, **(environment or {})},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )

    return run_command


@pytest.fixture(scope="module")
def folder_with_key(tmp_path_factory):
    """A data folder as the first key makes it."""
    folder = tmp_path_factory.mktemp("created") / "cardbeat-data"
    command = [sys.executable, "-m", "cardbeat", "keys", "create", "--data", folder]
    subprocess.run(command, env={**clean_environment(), **VARIABLES}, capture_output=True, check=True)
    return folder


@pytest.fixture
def with_key(folder_with_key, tmp_path):
    """Puts it into the test's folder."""
    shutil.copytree(folder_with_key, tmp_path / "cardbeat-data")


@pytest.fixture
def listed(run):
    """What `keys list` prints now."""
    return lambda: run("keys", "list").stdout


@pytest.mark.parametrize("key_id", ["key_none", pytest.param(b"\xff", marks=ARGUMENTS)])
@pytest.mark.parametrize("action", [("replace",), ("revoke",), ("tier", "free")])
@pytest.mark.usefixtures("with_key")
def test_an_id_of_no_key_is_one_line_and_status_2(run, action, key_id):
    ran = run("keys", action[0], key_id, *action[1:])
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "no key with the id" in ran.stderr


def test_keys_are_listed_in_any_encoding(run, listed):
    assert run("keys", "create", "--email", "zoë@example.com").returncode == 0
    ran = run("keys", "list", environment={"PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == listed().replace("ë", "\\xeb")


@pytest.mark.parametrize("command", [("keys", "list"), ("doctor",)])
@pytest.mark.usefixtures("with_key")
def test_a_reader_that_has_seen_enough_ends_a_command_quietly(run, command):
    with gone_reader() as stdout:
        ran = run(*command, stdout=stdout)
    assert (ran.returncode, ran.stderr) == (0, "")


@FULL_DISK
@pytest.mark.parametrize("command", [("keys", "list"), ("doctor",)])
@pytest.mark.usefixtures("with_key")
def test_what_cannot_be_printed_is_one_line_and_status_2(run, command):
    with full_disk() as stdout:
        ran = run(*command, stdout=stdout)
    assert (ran.returncode, ran.stderr) == (2, "cardbeat: can't print: No space left on device\n")


@pytest.mark.parametrize("nowhere", [pytest.param(full_disk, marks=FULL_DISK), gone_reader])
@pytest.mark.usefixtures("with_key")
def test_a_key_that_cannot_be_shown_is_not_left_behind(run, listed, nowhere):
    before = listed()
    with nowhere() as stdout:
        ran = run("keys", "create", "--email", "ops@example.com", stdout=stdout)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "can't print" in ran.stderr
    assert listed() == before


@pytest.mark.parametrize(
    "command",
    [
        ("keys", "list"),
        ("keys", "replace", "key_1"),
        ("keys", "revoke", "key_1"),
        ("keys", "tier", "key_1", "free"),
        ("backup", "copy.db"),
    ],
)
@pytest.mark.parametrize("data", ["none", "empty", "x" * 300])
def test_only_serving_and_creating_a_key_make_a_database(run, tmp_path, command, data):
    (tmp_path / "empty").mkdir()
    ran = run(*command, "--data", data)
    assert (ran.returncode, ran.stderr) == (2, none_at(tmp_path / data))
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def none_at(folder):
    advice = "name the server's data folder with --data, or start the server first, which makes it"
    return f"cardbeat: there is no database at {folder / 'cardbeat.db'}; {advice}\n"


def test_a_first_key_needs_a_folder_that_was_named_and_tells_where_it_made_a_database(run, tmp_path):
    ran = run("keys", "create", environment={"CARDBEAT_DATA": ""})
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", none_at(tmp_path / "cardbeat-data"))
    assert list(tmp_path.iterdir()) == []
    for folder, options in (("named", ["--data", "named"]), ("cardbeat-data", [])):
        ran = run("keys", "create", *options)
        told = f"there was no database at {tmp_path / folder / 'cardbeat.db'}, so a new one was made"
        assert (ran.returncode, ran.stderr) == (0, f"cardbeat: {told}\n")
        assert run("keys", "create", *options).stderr == ""


def test_systemds_folder_of_a_service_is_the_data_folder_where_no_other_is_named(run, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    service = {"CARDBEAT_DATA": "", "STATE_DIRECTORY": f"{first}:{second}"}
    assert str(first / "cardbeat.db") in run("keys", "create", environment=service).stderr
    others = (["--data", str(second)], service), ([], service | {"CARDBEAT_DATA": str(second)})
    for options, environment in others:
        assert run("keys", "list", *options, environment=environment).stderr == none_at(second)


def test_doctor_makes_nothing_either(run, tmp_path):
    ran = run("doctor", "--data", "none")
    assert ran.returncode == 0
    assert "no database in none yet" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_doctor_shows_the_accent(run):
    assert "accent: none, colours as designed" in run("doctor").stdout
    assert "accent: #16a34a, text keeps a contrast of 4.5 or more" in run("doctor", "--accent", "#16A34A").stdout


@pytest.mark.parametrize("option", ["--email", "--tier"])
@pytest.mark.parametrize("action", [("list",), ("revoke", "key_1"), ("tier", "key_1", "free")])
def test_an_option_of_a_key_to_create_is_refused_elsewhere(run, action, option):
    ran = run("keys", *action, option, "free")
    assert (ran.returncode, ran.stderr) == (2, f"cardbeat: keys {action[0]} takes no {option} (see --help)\n")


@ARGUMENTS
def test_an_address_that_is_no_text_is_one_line_and_status_2(run):
    ran = run("keys", "create", "--email", b"a\xff@b.c")
    assert (ran.returncode, ran.stderr) == (2, "cardbeat: The e-mail address must be text in UTF-8.\n")


@pytest.mark.parametrize("action", [("create", "--tier", ""), ("tier", "key_1", "")])
def test_a_tier_without_a_name_is_none(run, action):
    ran = run("keys", *action)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "no tier ''" in ran.stderr


def test_a_new_key_is_shown_with_what_each_part_of_it_is(run):
    lines = run("keys", "create", "--email", "ops@example.com").stdout.splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert list(shown) == ["key:", "webhook_secret:", "id:", "scope:", "tier:", "created_at:", "email:"]
    assert shown["key:"].startswith("sk_")
    assert shown["webhook_secret:"].startswith("whsec_")


def test_for_programs_a_new_key_and_the_list_are_json(run):
    cards = json.loads(run("keys", "create", "--json").stdout)
    assert cards.keys() == {"key", "id", "scope", "tier", "created_at"}
    checks = json.loads(run("keys", "create", "--json", "--email", "zoë@example.com", "--tier", "unlimited").stdout)
    assert checks.keys() == {"key", "webhook_secret", "id", "scope", "tier", "email", "created_at"}
    first, second = json.loads(run("keys", "list", "--json").stdout)
    assert first == {
        "id": cards["id"],
        "prefix": cards["key"][:8],
        "scope": "cards",
        "tier": "free",
        "created_at": cards["created_at"],
        "email": None,
        "checks": 0,
        "used_at": None,
        "removed_after": first["removed_after"],
    }
    created, ends = (datetime.fromisoformat(first[name]) for name in ("created_at", "removed_after"))
    assert (ends - created).days == 365
    assert (second["email"], second["tier"]) == ("zoë@example.com", "unlimited")


def test_the_list_has_headings_over_its_columns(run, listed, tmp_path):
    run("keys", "create", "--email", "ops@example.com")
    headings, row = listed().splitlines()
    assert headings.split() == [
        "ID",
        "KEY",
        "SCOPE",
        "TIER",
        "CREATED",
        "(UTC)",
        "CHECKS",
        "LAST",
        "USED",
        "(UTC)",
        "REMOVED",
        "AFTER",
        "E-MAIL",
    ]
    for heading, value in (
        ("LAST", "never"),
        ("REMOVED", "20"),
        ("KEY", "sk_"),
        ("SCOPE", "checks"),
        ("TIER", "free"),
        ("E-MAIL", "ops@example.com"),
    ):
        assert row[headings.index(heading) :].startswith(value)


def test_a_stored_address_can_not_rewrite_the_list(run, listed, tmp_path):
    """Registration refuses such addresses now, and did not always."""
    run("keys", "create", "--email", "ops@example.com")
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        email = "a\u202eb\u2066\u200b\u2028\x85\t\n\x1b[2K\x7f\u00ad@\u05d0"
        connection.execute("UPDATE keys SET email = ?", (email,))
        connection.commit()
    _, row = listed().splitlines()
    shown = "a\\u202eb\\u2066\\u200b\\u2028\\x85\\t\\n\\x1b[2K\\x7f\\xad@\u05d0"
    assert row.endswith(f"  {shown}")
    printed = run("keys", "list", "--json").stdout
    assert printed.isascii()
    assert printed.rstrip("\n").isprintable()
    assert json.loads(printed)[0]["email"] == email


@pytest.mark.parametrize("command", [("keys", "list"), ("doctor",)])
def test_no_text_of_a_tampered_file_reaches_the_terminal_raw(run, tmp_path, command):
    run("keys", "create", "--email", "ops@example.com")
    evil = "\x1b]0;x\x07\x9b2J\u202e\n"
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        connection.execute("UPDATE keys SET id = ?, prefix = ?, tier = ?, email = ?", [evil] * 4)
        connection.commit()
    ran = run(*command)
    shown = "\\x1b]0;x\\x07\\x9b2J\\u202e\\n"
    assert f"not defined ({shown}: 1)" in ran.stdout + ran.stderr
    assert all(line.isprintable() for line in (ran.stdout + ran.stderr).split("\n"))


def test_a_text_of_a_damaged_file_is_shown_escaped(run, tmp_path):
    run("keys", "create", "--email", "ops@example.com")
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        connection.execute("UPDATE keys SET email = CAST(x'1b5b324aff' AS TEXT)")
        connection.commit()
    ran = run("keys", "list")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("  \\x1b[2J\ufffd\n")


def test_a_tier_of_the_tiers_file_is_named_without_control_characters(run, tmp_path):
    (tmp_path / "tiers.toml").write_text('["a\\u001b[2J"]\nmax_checks = 5\n')
    ran = run("keys", "create", "--tiers", "tiers.toml")
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "\\x1b[2J" in ran.stderr


def age(tmp_path, days):
    """Let all keys be created so many days before, and watched since."""
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        connection.execute("UPDATE keys SET created_at = created_at - ?", (days * 86_400,))
        connection.execute("UPDATE monitor SET value = value - ? WHERE name = 'keys_watched_since'", (days * 86_400,))
        connection.commit()


def test_keys_that_are_not_used_are_pruned(run, listed, tmp_path):
    run("keys", "create", "--email", "ops@example.com")
    run("keys", "create")
    age(tmp_path, 91)
    ran = run("keys", "prune", "--unused-days", "100")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "give at most --unused-days 91; nothing was removed" in ran.stderr
    assert run("keys", "prune", "--dry-run").stdout == "would remove 2 keys\n"
    dry = run("keys", "prune", "--unused-days", "0", "--dry-run", "--json").stdout
    assert json.loads(dry) == {"dry_run": True, "would_remove": 2}
    run("keys", "create")
    assert json.loads(run("keys", "prune", "--json").stdout) == {"removed": 2}
    assert len(listed().splitlines()) == 2
    age(tmp_path, 1)
    assert run("keys", "prune", "--unused-days", "0").stdout == "removed 1 key\n"


@pytest.mark.parametrize(("days", "is_refused"), [(-8, True), (-6, False), (6, False), (8, True)])
@pytest.mark.usefixtures("with_key")
def test_by_a_clock_far_from_when_the_server_ran_nothing_is_pruned(run, tmp_path, days, is_refused):
    age(tmp_path, 91)
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        connection.execute("INSERT INTO monitor VALUES ('last_sweep_at', ?)", (int(time.time()) + days * 86_400,))
        connection.commit()
    for option in ("--dry-run", "--json"):
        ran = run("keys", "prune", option)
        if is_refused:
            assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
            assert "but the server last ran at 20" in ran.stderr
        else:
            assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("days", ["-1", "x", "1.5", "999999"])
def test_days_out_of_range_are_one_line(run, days):
    ran = run("keys", "prune", f"--unused-days={days}")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)


def test_an_empty_list_is_its_headings(run, listed):
    key_id = json.loads(run("keys", "create", "--json").stdout)["id"]
    run("keys", "revoke", key_id)
    assert len(listed().splitlines()) == 1
    assert json.loads(run("keys", "list", "--json").stdout) == []


def test_for_programs_a_change_says_what_it_did(run):
    key_id = json.loads(run("keys", "create", "--json").stdout)["id"]
    moved = run("keys", "tier", key_id, "unlimited", "--json")
    assert json.loads(moved.stdout) == {"id": key_id, "tier": "unlimited"}
    assert json.loads(run("keys", "revoke", key_id, "--json").stdout) == {"id": key_id, "revoked": True}
    again = run("keys", "revoke", key_id, "--json")
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("arguments", [("--email", "ops@example.com"), ()])
def test_a_lost_key_gets_a_new_value_and_stays_the_same_key(run, listed, arguments):
    lost = json.loads(run("keys", "create", "--json", *arguments).stdout)
    shown = dict(line.split(maxsplit=1) for line in run("keys", "replace", lost["id"]).stdout.splitlines())
    expected = {name: value for name, value in lost.items() if name not in ("key", "webhook_secret")}
    assert {name.rstrip(":"): value for name, value in shown.items()} == {**expected, "key": shown["key:"]}
    as_json = json.loads(run("keys", "replace", lost["id"], "--json").stdout)
    assert as_json == {**expected, "key": as_json["key"]}
    assert len({lost["key"], shown["key:"], as_json["key"]}) == 3
    assert listed().count("key_") == 1
    assert as_json["key"][:8] in listed()


@pytest.mark.parametrize("nowhere", [pytest.param(full_disk, marks=FULL_DISK), gone_reader])
def test_a_new_value_that_cannot_be_shown_is_told_as_such(run, nowhere):
    key_id = json.loads(run("keys", "create", "--json").stdout)["id"]
    with nowhere() as stdout:
        ran = run("keys", "replace", key_id, stdout=stdout)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.endswith("; the old value has ended, so replace the key again\n")


@pytest.fixture
def forgotten_tier(run, tmp_path):
    """Makes a key in a tier that only a file defines, which no later command is given."""
    (tmp_path / "tiers.toml").write_text("[plus]\nmax_checks = 5\n")
    assert run("keys", "create", "--tier", "plus", "--tiers", "tiers.toml").returncode == 0


@pytest.mark.usefixtures("forgotten_tier")
def test_a_tier_that_is_not_defined_any_more_is_told_beside_the_list(run):
    ran = run("keys", "list")
    assert "plus" in ran.stdout
    assert ran.stderr.startswith("cardbeat: 1 key is in tiers that are not defined (plus: 1)")
    assert run("keys", "list", "--tiers", "tiers.toml").stderr == ""


def findings(ran):
    return {finding["name"]: finding for finding in json.loads(ran.stdout)["findings"]}


@PIPES
@pytest.mark.parametrize("end", ["", "-wal", "-journal", "-shm"])
@pytest.mark.usefixtures("with_key")
def test_doctor_tells_of_a_pipe_in_place_of_a_file(run, tmp_path, end):
    path = tmp_path / "cardbeat-data" / f"cardbeat.db{end}"
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    ran = run("doctor")
    assert ran.returncode == 1
    assert f"cardbeat.db{end} is not a regular file; move it away" in ran.stdout


@pytest.mark.parametrize("name", ["writer.lock", "delivery.lock"])
@pytest.mark.parametrize("make", [Path.mkdir, pytest.param(lambda path: path.symlink_to("cardbeat.db"), marks=LINKS)])
@pytest.mark.usefixtures("with_key")
def test_doctor_tells_of_a_lock_file_that_is_none(run, tmp_path, name, make):
    path = tmp_path / "cardbeat-data" / name
    path.unlink(missing_ok=True)
    make(path)
    ran = run("doctor", "--json")
    assert ran.returncode == 1
    assert findings(ran)["database"]["found"].startswith(f"can't use {Path('cardbeat-data', name)}: ")


@pytest.mark.usefixtures("with_key")
def test_doctor_tells_of_a_file_in_the_place_of_the_cards(run, tmp_path):
    (tmp_path / "cardbeat-data" / "cards").touch()
    found = findings(run("doctor", "--json"))["folder"]
    assert (found["level"], found["advice"]) == ("warning", "move it away")


@pytest.mark.usefixtures("forgotten_tier")
def test_doctor_tells_what_is_likely_a_mistake(run, tmp_path):
    (tmp_path / "cardbeat-data").chmod(0o770)
    environment = {"CARDBEAT_HOST": "::", "CARDBEAT_STORE_MD": "5"}
    # On Windows the mode of a folder says nothing.
    told_of = ["tiers", "base_url", "variables", *([] if WINDOWS else ["folder"])]
    ran = run("doctor", "--json", environment=environment)
    assert ran.returncode == 0
    found = findings(ran)
    for name in told_of:
        assert (found[name]["ok"], found[name]["level"]) == (False, "warning")
        assert found[name]["advice"]
    assert "CARDBEAT_STORE_MB" in found["variables"]["advice"]
    told = run("doctor", environment=environment).stdout.splitlines()
    assert len([line for line in told if line.startswith("warning")]) == len(told_of) + (not found["raqm"]["ok"])
    (tmp_path / "cardbeat-data").chmod(0o700)
    public = ("doctor", "--json", "--base-url", "https://cards.example", "--tiers", "tiers.toml")
    assert "--registration closed" in findings(run(*public))["registration"]["advice"]
    quiet = findings(run(*public, "--registration", "closed"))
    assert quiet.keys() >= {"python", "pillow", "raqm", "fonts", "database", "disk", "clock"}
    assert not quiet.keys() & {"tiers", "base_url", "registration", "variables", "folder"}


@pytest.mark.usefixtures("with_key")
def test_a_backup_and_its_restore_tell_what_they_did_as_json(run, tmp_path):
    made = run("backup", "copy.db", "--json")
    size = (tmp_path / "copy.db").stat().st_size
    assert json.loads(made.stdout) == {"file": "copy.db", "bytes": size, "refused": None}
    first, again = (json.loads(run("restore", "copy.db", "--json", *data).stdout) for data in (("--data", "new"), ()))
    database = {"database": str(Path("new/cardbeat.db")), "keys": 1, "checks": 0, "last_served_at": None}
    assert first == {**database, "kept": None}
    assert (tmp_path / again["kept"]).is_file()


def test_a_backup_that_could_not_be_restored_is_kept_beside_the_one_before_and_told(run, tmp_path):
    run("keys", "create", "--email", "ops@example.com")
    run("backup", "copy.db")
    before = (tmp_path / "copy.db").read_bytes()
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        connection.execute("UPDATE keys SET email = CAST(x'6f70ff' AS TEXT)")
        connection.commit()
    made, examined = run("backup", "copy.db", "--json"), run("doctor")
    reason = "holds what cardbeat never writes, in keys.email of row 1"
    told = f"copy.db.refused {reason}, so restore would refuse it; copy.db was not written; "
    advice = "keep the backups before it, and mend the database as docs/backup.md says"
    assert made.stderr == f"cardbeat: {told}{advice}\n"
    assert made.returncode == examined.returncode == 1
    size, refused = (tmp_path / "copy.db.refused").stat().st_size, f"copy.db.refused {reason}"
    assert json.loads(made.stdout) == {"file": "copy.db.refused", "bytes": size, "refused": refused}
    assert (tmp_path / "copy.db").read_bytes() == before
    assert f"cardbeat.db {reason}, so restore would refuse a backup of it; " in examined.stdout
    ran = run("restore", "copy.db.refused", "--data", "new")
    assert ran.stderr == f"cardbeat: copy.db.refused {reason}; nothing was restored\n"
    with contextlib.closing(sqlite3.connect(tmp_path / "cardbeat-data" / "cardbeat.db")) as connection:
        connection.execute("UPDATE keys SET email = 'ops@example.com' WHERE seq = 1")
        connection.commit()
    mended = run("backup", "copy.db")
    assert (mended.returncode, mended.stdout, mended.stderr) == (0, "", "")
    assert "sound" in run("doctor").stdout
    assert run("restore", "copy.db", "--data", "new").returncode == 0


@pytest.mark.parametrize(
    "argv", [("backup", "-"), ("restore", "-"), ("keys", "create", "--data", "-"), ("cards", "site", "--output", "-")]
)
def test_standard_input_or_output_is_no_file(run, tmp_path, argv):
    run("keys", "create")
    ran = run(*argv)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ": must name a file or folder, not standard input or output; one named - is ./-" in ran.stderr
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("by_flag", [False, True])
def test_a_backup_of_postgresql_is_refused_with_what_to_use(run, tmp_path, by_flag):
    url = "postgresql://me@127.0.0.1:1/db"
    run("keys", "create")
    ran = run("backup", "copy.db", *["--database", url][: 2 * by_flag], environment={"CARDBEAT_DATABASE": url})
    told = "backup copies the file of a data folder only; back up a PostgreSQL database with pg_dump"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"cardbeat: {told}\n")
    assert not (tmp_path / "copy.db").exists()


def test_doctors_json_says_what_its_status_says(run, tmp_path):
    healthy = json.loads(run("doctor", "--json").stdout)
    assert healthy["ok"] is True
    assert all(finding.keys() == {"name", "ok", "level", "found", "advice"} for finding in healthy["findings"])
    (tmp_path / "cardbeat-data").mkdir(0o700)
    (tmp_path / "cardbeat-data" / "cardbeat.db").write_bytes(b"")
    ill = run("doctor", "--json")
    assert ill.returncode == 1
    assert json.loads(ill.stdout)["ok"] is False
    database = findings(ill)["database"]
    assert (database["ok"], database["level"]) == (False, "problem")
    assert database["advice"] == "restore a backup or move it away"


@pytest.mark.usefixtures("forgotten_tier")
def test_the_start_tells_in_one_line_each_what_is_likely_a_mistake(tmp_path):
    command = [sys.executable, "-c", STOPS_WHEN_IT_WOULD_SERVE, "--port", "0", "--host", "0.0.0.0"]
    environment = {**clean_environment(), "PYTHONPATH": str(ROOT), "CARDBEAT_SWEEP_SECOND": "5"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True)
    warnings = [line.split(" WARNING ")[1] for line in ran.stderr.splitlines() if " WARNING " in line]
    assert [warning.split("; ")[0] for warning in warnings] == [
        "the variable CARDBEAT_SWEEP_SECOND is unknown and has no effect",
        "ping URLs will hold the address 0.0.0.0, which no client can reach",
        "1 key is in tiers that are not defined (plus: 1): a server without these tiers gives free's limits",
    ]


STOPS_WHEN_IT_WOULD_SERVE = """
import sys
from cardbeat import cli, service

service.Service.run = lambda service, stops: service.close()
sys.exit(cli.main())
"""


FAILS_TO_START = """
import signal, sys
from cardbeat import cli

print(cli.main(["serve", "--port", "0", "--data", sys.argv[1]]), signal.set_wakeup_fd(-1))
"""


def test_a_start_that_fails_leaves_nothing_that_would_end_the_process_at_a_signal(tmp_path):
    """As a stop that takes too long is ended."""
    (tmp_path / "data").write_text("no folder")
    command = [sys.executable, "-c", FAILS_TO_START, str(tmp_path / "data")]
    ran = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=False)
    assert ran.stdout == "2 -1\n", ran.stderr


SIGTERM_IN_A_CALLBACK = """
import signal, sys
from cardbeat import cli, service

class Service(service.Service):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        Thing()

class Thing:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

service.Service = Service
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_stop_during_the_start_is_not_lost(tmp_path):
    command = [sys.executable, "-c", SIGTERM_IN_A_CALLBACK, "--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(" INFO stopped\n")


STOPPED_BEFORE_IT_FAILS = """
import os, signal, sys
from cardbeat import cli, service
from cardbeat.errors import StartupError

def fails(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    raise StartupError("it can't start")

service.Service = fails
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_start_that_fails_after_a_stop_ends_with_status_0(tmp_path):
    command = [sys.executable, "-c", STOPPED_BEFORE_IT_FAILS, "--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
