"""Checks that are kept in a file: what is read from it, what there is to do, and what is done beside others."""

import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import urllib.request
from functools import partial

import pytest

from cardbeat.client.api import Api, Refused
from cardbeat.client.apply import Plan, plan
from cardbeat.client.declared import Declarations, load
from cardbeat.errors import StartupError
from tests.artifact import ROOT, clean_environment


@pytest.fixture
def server(app):
    server = app.service.server
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.url
    server.stop()
    thread.join()


@pytest.fixture
def api(app, server):
    return Api(server, app.checks_key(), sleep=lambda _: None)


@pytest.fixture
def key(app, server, monkeypatch):
    """A checks key, which the command uses from here on."""
    key = app.checks_key()
    monkeypatch.setenv("CARDBEAT_URL", server)
    monkeypatch.setenv("CARDBEAT_KEY", key)
    return key


def settings(name, period=60, grace=0, url=None, repeat=None):
    fields = {"name": name, "period_seconds": period, "grace_seconds": grace, "webhook_url": url}
    return {**fields, "repeat_seconds": repeat}


BASE = "https://cards.example"
REST = "period_seconds=60\ngrace_seconds=0\n"


def write(path, *tables, defaults=""):
    path.write_text(f"[defaults]\n{defaults}\n" + "".join(f"[[check]]\n{table}\n" for table in tables))
    return path


def fifty(path, period=3600):
    return write(path, *(f'name = "job {n}"' for n in range(50)), defaults=f"period_seconds={period}\ngrace_seconds=60")


def test_a_file_gives_the_whole_settings_of_each_check(tmp_path):
    file = write(
        tmp_path / "c.toml",
        'name = " db1: backup "',
        'name = "mail"\ngrace_seconds = 5\nwebhook_url = "https://b.example"',
        'name = "quiet"\nwebhook_url = ""\nrepeat_seconds = ""',
        defaults='period_seconds = 86400\ngrace_seconds = 600\nwebhook_url = "https://a.example"\n'
        'repeat_seconds = "4h"',
    )
    assert load(file).checks == {
        "db1: backup": settings("db1: backup", 86400, 600, "https://a.example", 14400),
        "mail": settings("mail", 86400, 5, "https://b.example", 14400),
        "quiet": settings("quiet", 86400, 600, None),
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("checks = []", "there is no 'checks'; there are [[check]] and [defaults]"),
        ("[check]\nname = 'a'", "double brackets"),
        ("check = [1]", "check 1: this must be a table"),
        ("defaults = 1", "[defaults]: this must be a table"),
        ("[defaults]\nname = 'a'", "[defaults]: each check has its own name"),
        ("[[check]]\nname = 'a'\nperiod = 1", "check 1: there is no field 'period'; there are name, period_seconds"),
        ("[[check]]\nname = 'a'\nperiod_seconds = 60", "check 1: The field grace_seconds is required"),
        (
            "[[check]]\nname = 'a'\nperiod_seconds = true\ngrace_seconds = 0",
            "check 1: The field period_seconds must be",
        ),
        ("[[check]]\nname = ' '\nperiod_seconds = 60\ngrace_seconds = 0", "check 1: The field name"),
        ("[defaults]\nperiod_seconds=60\ngrace_seconds=0\n" + "[[check]]\nname='a'\n" * 2, "two checks are named 'a'"),
        ("[[check]", "is not valid TOML"),
        (b"\xff", "is not valid TOML"),
        (
            "[[check]]\nname='a'\nperiod_seconds=60\ngrace_seconds=0\nwebhook_url='ftp://x'",
            "check 1: Give an absolute URL",
        ),
        ("a = " + "[" * 100_000, "is not valid TOML"),
        (f"[[check]]\nname='a'\n{REST}was=' '", "check 1: The field was must be the old name"),
        (f"[[check]]\nname='a'\n{REST}was=1", "check 1: The field was must be the old name"),
        ("[defaults]\nwas = 'a'", "[defaults]: each check has its own name"),
        (f"[[check]]\nname='a'\n{REST}was='a'", "was = 'a' must name a check that no other line"),
        (f"[[check]]\nname='a'\n{REST}was='c'\n[[check]]\nname='b'\n{REST}was='c '", "was = 'c' must name a check"),
        (f"[[check]]\nname='a'\n{REST}webhook_url='$CARDBEAT_TEST_NONE'", "has no variable CARDBEAT_TEST_NONE for"),
    ],
)
def test_a_file_that_says_something_else_is_refused_in_one_line(tmp_path, content, says):
    file = tmp_path / "c.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(StartupError) as refused:
        load(file)
    assert says in str(refused.value)
    assert str(refused.value).startswith(str(file))


@pytest.mark.parametrize("content", ["", "# no checks\n", "[defaults]\nperiod_seconds = 60\n"])
def test_a_file_without_checks_prunes_nothing(checks, key, tmp_path, content):
    """A template that came out empty must not delete everything."""
    file = tmp_path / "c.toml"
    file.write_text(content)
    checks("apply", write(tmp_path / "one.toml", 'name = "a"\nperiod_seconds = 60\ngrace_seconds = 0'))
    before = checks("list", "--json")
    refused = f"cardbeat: {file}: without any [[check]], --prune would delete all checks; to do so, say check = []\n"
    assert checks("apply", file, "--prune") == (2, "", refused)
    assert checks("apply", file, "--prune", "--dry-run") == (2, "", refused)
    assert checks("apply", file) == (0, "0 created, 0 changed, 0 deleted, 0 unchanged\n", "")
    assert checks("list", "--json") == before


def test_a_file_that_says_that_there_are_no_checks_prunes_all(checks, key, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("check = []\n[defaults]\nperiod_seconds = 60\n")
    checks("apply", write(tmp_path / "one.toml", 'name = "a"\nperiod_seconds = 60\ngrace_seconds = 0'))
    assert checks("apply", file, "--prune") == (0, "deleted a\n0 created, 0 changed, 1 deleted, 0 unchanged\n", "")
    assert checks("list", "--json")[1] == "[]\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1d", 86400), ("15m", 900), ("1h30m", 5400), ("1w2d3h4m5s", 788645), ("90s", 90), ("000000001d", 86400)],
)
def test_a_duration_is_seconds(tmp_path, text, seconds):
    file = write(tmp_path / "c.toml", 'name = "a"', defaults=f'period_seconds = "{text}"\ngrace_seconds = "1m"')
    assert load(file).checks == {"a": {"name": "a", "period_seconds": seconds, "grace_seconds": 60}}


@pytest.mark.parametrize(
    "text", ["", " ", "60", "1.5h", "30m1h", "1 d", "-1d", "1D", "d", "1d\\n", "1e3s", "٣d", "9" * 5000]
)
def test_other_texts_are_no_durations(tmp_path, text):
    file = write(tmp_path / "c.toml", 'name = "a"', defaults=f'period_seconds = "{text}"\ngrace_seconds = 0')
    with pytest.raises(StartupError, match="check 1: The field period_seconds must be seconds, or a duration such as"):
        load(file)


def test_a_duration_is_held_to_the_limits_of_seconds(tmp_path):
    file = write(tmp_path / "c.toml", 'name = "a"', defaults='period_seconds = "366d"\ngrace_seconds = 0')
    with pytest.raises(StartupError, match="check 1: The field period_seconds must be an integer from 1 to 31536000"):
        load(file)


def test_a_webhook_comes_from_the_environment_and_only_where_it_is_used(checks, key, tmp_path, monkeypatch):
    monkeypatch.setenv("CHAT", " https://chat.example/SECRET\n")
    monkeypatch.delenv("NONE", raising=False)
    other, quiet = ('name = "a"\nwebhook_url = "$CHAT"', 'name = "b"\nwebhook_url = ""')
    file = write(tmp_path / "c.toml", other, quiet, defaults=f'{REST}webhook_url = "$NONE"')
    assert load(file).checks["a"]["webhook_url"] == "https://chat.example/SECRET"
    printed = [checks("apply", file, "--dry-run"), checks("apply", file), checks("apply", file, "--json")]
    assert [status for status, *_ in printed] == [0, 0, 0]
    assert "SECRET" not in str(printed)
    listed = [check["webhook_url"] for check in json.loads(checks("list", "--json")[1])]
    assert listed == ["https://chat.example/...", None]


@pytest.mark.parametrize("value", [None, "", " "])
def test_without_the_variable_nothing_is_changed(checks, key, tmp_path, monkeypatch, value):
    monkeypatch.delenv("NONE", raising=False) if value is None else monkeypatch.setenv("NONE", value)
    file = write(tmp_path / "c.toml", 'name = "a"', 'name = "b"\nwebhook_url = "$NONE"', defaults=REST)
    told = f"cardbeat: {file}, check 2: The environment has no variable NONE for webhook_url.\n"
    assert checks("apply", file) == (2, "", told)
    assert checks("list", "--json")[1] == "[]\n"


def test_a_refused_webhook_of_the_environment_is_not_shown(checks, key, tmp_path, monkeypatch):
    monkeypatch.setenv("CHAT", "https://me:SECRET@chat.example/SECRET")
    file = write(tmp_path / "c.toml", 'name = "a"\nwebhook_url = "$CHAT"', defaults=REST)
    status, out, err = checks("apply", file)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "SECRET" not in err


def test_a_renamed_check_keeps_its_ping_url(checks, key, tmp_path):
    checks("apply", write(tmp_path / "c.toml", 'name = "old"', defaults=REST))
    [before] = json.loads(checks("list", "--json")[1])
    file = write(tmp_path / "c.toml", 'name = "new"\nwas = "old"', defaults=REST)
    would = "would change old: name old -> new\n0 to create, 1 to change, 0 to delete, 0 unchanged\n"
    assert checks("apply", "--prune", "--dry-run", file) == (0, would, "")
    done = "changed new: name old -> new\n0 created, 1 changed, 0 deleted, 0 unchanged\n"
    assert checks("apply", "--prune", file) == (0, done, "")
    [after] = json.loads(checks("list", "--json")[1])
    assert (after["name"], after["ping_url"]) == ("new", before["ping_url"])
    assert checks("apply", "--prune", file) == (0, "0 created, 0 changed, 0 deleted, 1 unchanged\n", "")


@pytest.fixture
def used(checks, key, tmp_path):
    """A file without the two checks that the server has, of which `used` was pinged; and when."""
    checks("apply", write(tmp_path / "c.toml", 'name = "used"', 'name = "idle"', defaults=REST))
    checks("ping", "used")
    return write(tmp_path / "c.toml", 'name = "new"', defaults=REST)


def names(checks):
    return [check["name"] for check in json.loads(checks("list", "--json")[1])]


USED = "used was pinged at 2027-01-15 08:00:00 (UTC), so its job still runs"


def test_without_a_terminal_what_is_still_pinged_is_not_pruned(checks, used):
    would = checks("apply", "--prune", used, "--dry-run")
    asks = f"would create new\nwould delete idle\nwould ask: {USED}\n"
    assert would == (0, f"{asks}1 to create, 0 to change, 1 to delete, 0 unchanged, 1 to ask about\n", "")
    status, out, err = checks("apply", "--prune", used)
    assert (status, err) == (1, "")
    kept = f"deleted idle\nkept: {USED}; --yes deletes it\n1 created, 0 changed, 1 deleted, 0 unchanged, 1 kept\n"
    assert out.partition("\n")[2] == kept
    assert names(checks) == ["used", "new"]
    status, out, _ = checks("apply", "--prune", used, "--json")
    done = json.loads(out)
    assert (status, [check["name"] for check in done["kept"]], done["deleted"]) == (1, ["used"], [])
    assert checks("apply", used) == (0, "0 created, 0 changed, 0 deleted, 1 unchanged\n", "")


def test_a_job_that_fails_still_runs(checks, used, server):
    [idle] = (check for check in json.loads(checks("list", "--json")[1]) if check["name"] == "idle")
    urllib.request.urlopen(f"{server}/ping/{idle['id']}/1").close()
    told = "idle got a failure signal at 2027-01-15 08:00:00 (UTC), so its job still runs"
    status, out, err = checks("apply", "--prune", used)
    assert (status, f"kept: {told}; --yes deletes it" in out.splitlines(), err) == (1, True, "")
    assert names(checks) == ["used", "idle", "new"]


def test_with_yes_it_is_pruned(checks, used):
    assert "would delete used" in checks("apply", "--prune", "--yes", used, "--dry-run")[1]
    status, out, err = checks("apply", "--prune", "--yes", used)
    assert (status, out.splitlines()[1:3], err) == (0, ["deleted used", "deleted idle"], "")
    assert names(checks) == ["new"]


@pytest.mark.parametrize(
    ("typed", "left"), [("y\n", ["new"]), ("n\n", ["used", "new"]), ("\n", ["used", "new"]), ("\x04", ["used", "new"])]
)
def test_at_a_terminal_it_is_asked_before_anything_is_done(checks, used, server, typed, left):
    pty = pytest.importorskip("pty")
    terminal, own = pty.openpty()
    environment = {name: os.environ[name] for name in ("CARDBEAT_URL", "CARDBEAT_KEY")}
    process = subprocess.Popen(
        [sys.executable, "-m", "cardbeat", "checks", "apply", "--prune", used],
        cwd=ROOT,
        env={**clean_environment(), **environment},
        stdin=own,
        stderr=own,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(own)
    shown = ""
    while not shown.endswith("[y/N] "):
        assert select.select([terminal], [], [], 60)[0], shown
        shown += os.read(terminal, 4096).decode()
    assert shown == f"cardbeat: {USED}. Delete it? [y/N] "
    assert names(checks) == ["used", "idle"]
    os.write(terminal, typed.encode())
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert (process.returncode, names(checks)) == (int("used" in left), left)
    assert ("kept: " in out) is ("used" in left)


def test_a_plan_touches_what_differs_and_deletes_only_when_told():
    present = [settings("same"), settings("other", 60), settings("else")]
    declared = {check["name"]: check for check in (settings("same"), settings("other", 61), settings("new"))}
    assert plan(present, Declarations(declared, {}), prune=False) == Plan(
        [declared["new"]], [(present[1], declared["other"])], [], [present[0]]
    )
    assert plan(present, Declarations(declared, {}), prune=True).delete == [present[2]]


def test_a_name_of_several_checks_is_refused_only_where_it_is_declared():
    present = [settings("twice"), settings("twice")]
    with pytest.raises(StartupError, match="2 checks named 'twice'"):
        plan(present, Declarations({"twice": settings("twice")}, {}), prune=False)
    assert plan(present, Declarations({}, {}), prune=False) == Plan([], [], [], [])


def test_fifty_checks_are_created_once_and_then_nothing_changes(checks, key, tmp_path):
    file = fifty(tmp_path / "c.toml")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(json.loads(checks("apply", "--dry-run", file, "--json")[1])["created"]) == 50
    assert checks("apply", "--dry-run", file)[1].endswith("\n50 to create, 0 to change, 0 to delete, 0 unchanged\n")
    assert checks("list", "--json")[1] == "[]\n"
    status, out, err = checks("apply", file)
    assert (status, err) == (0, "")
    assert re.match(r"created job 0: https://cards\.example/ping/[0-9a-f]{32}\n", out)
    assert out.endswith("\n50 created, 0 changed, 0 deleted, 0 unchanged\n")
    before = checks("list", "--json")[1]
    assert checks("apply", file) == (0, "0 created, 0 changed, 0 deleted, 50 unchanged\n", "")
    assert checks("list", "--json")[1] == before


def test_only_what_differs_is_changed_and_only_prune_deletes(checks, key, tmp_path):
    checks("apply", fifty(tmp_path / "c.toml"))
    less = write(tmp_path / "less.toml", 'name = "job 0"\nperiod_seconds = 3600\ngrace_seconds = 61')
    change = "job 0: grace_seconds 60 -> 61\n"
    would = f"would change {change}0 to create, 1 to change, 0 to delete, 0 unchanged\n"
    assert checks("apply", less, "--dry-run")[1] == would
    assert checks("apply", less)[1] == f"changed {change}0 created, 1 changed, 0 deleted, 0 unchanged\n"
    done = json.loads(checks("apply", less, "--prune", "--json")[1])
    planned = json.loads(checks("apply", less, "--prune", "--json", "--dry-run")[1])
    assert list(planned) == list(done)
    assert {deed: len(found) for deed, found in done.items() if found} == {"deleted": 49, "unchanged": 1}
    [left] = json.loads(checks("list", "--json")[1])
    assert (left["grace_seconds"], left["version"]) == (61, 2)


def test_what_the_file_does_not_name_stays(checks, key, server, tmp_path):
    api = Api(server, key)
    api.create(settings("a", url="https://a.example/SECRET", repeat=3600))
    file = write(tmp_path / "c.toml", 'name = "a"', 'name = "new"', defaults=REST)
    created = checks("apply", file)[1].splitlines()[-1]
    assert created == "1 created, 0 changed, 0 deleted, 1 unchanged"
    found = [(check["webhook_url"], check["repeat_seconds"]) for check in api.checks()]
    assert found == [("https://a.example/SECRET", 3600), (None, None)]
    file = write(tmp_path / "c.toml", 'name = "a"\nwebhook_url = ""', defaults=f'{REST}repeat_seconds = ""')
    changes = "a: webhook_url https://a.example/... -> None, repeat_seconds 3600 -> None"
    assert checks("apply", file)[1].splitlines()[0] == f"changed {changes}"
    assert api.checks()[0]["webhook_url"] is api.checks()[0]["repeat_seconds"] is None


def test_of_a_webhook_url_no_more_than_the_host_is_shown(checks, key, tmp_path):
    def file(*urls):
        common = "period_seconds = 60\ngrace_seconds = 0"
        return write(
            tmp_path / "c.toml", *(f'name = "{n}"\nwebhook_url = "{u}"' for n, u in enumerate(urls)), defaults=common
        )

    old = file("https://a.example:8443/SECRET", "https://a.example?SECRET", "http://a.example/SECRET", "")
    shown = [
        checks("apply", old, "--dry-run", "--json"),
        checks("apply", old, "--json"),
        checks("apply", old, "--json"),
    ]
    shown += [checks("list"), checks("list", "--json")]
    new = file("https://a.example:8443/SECRET2", "https://b.example#SECRET", "", "http://a.example/SECRET")
    would = checks("apply", new, "--dry-run")
    assert would[1].splitlines()[:4] == [
        "would change 0: webhook_url (another URL at https://a.example:8443/...)",
        "would change 1: webhook_url https://a.example/... -> https://b.example/...",
        "would change 2: webhook_url http://a.example/... -> None",
        "would change 3: webhook_url None -> http://a.example/...",
    ]
    shown += [would, checks("apply", new, "--dry-run", "--json"), checks("apply", new, "--json", "--prune")]
    shown += [checks("apply", file(), "--dry-run", "--json", "--prune")]
    assert not [printed for printed in shown if "SECRET" in "".join(printed[1:])]
    listed = json.loads(shown[4][1])
    assert [check["webhook_url"] for check in listed][:2] == ["https://a.example:8443/...", "https://a.example/..."]
    assert listed[3]["webhook_url"] is None


def test_at_the_limit_of_the_tier_what_goes_makes_room_for_what_comes(checks, key, tmp_path):
    assert checks("apply", fifty(tmp_path / "c.toml"))[0] == 0
    other = "period_seconds = 60\ngrace_seconds = 0"
    file = write(tmp_path / "d.toml", *(f'name = "new {n}"' for n in range(100)), defaults=other)
    status, out, err = checks("apply", file, "--prune")
    assert (status, err) == (0, "")
    assert out.endswith("\n100 created, 0 changed, 50 deleted, 0 unchanged\n")


def test_a_conflict_is_status_1_and_in_the_json(checks, key, tmp_path, monkeypatch):
    file = write(tmp_path / "c.toml", 'name = "a"\nperiod_seconds = 60\ngrace_seconds = 0')
    checks("apply", file)
    present = json.loads(checks("list", "--json")[1])
    monkeypatch.setattr(Api, "checks", lambda _: [{**check, "period_seconds": 1, "version": 0} for check in present])
    told = "a: somebody else changed it at the same time, it stays so; run apply again"
    out = f"conflict: {told}\n0 created, 0 changed, 0 deleted, 0 unchanged, 1 conflicts\n"
    assert checks("apply", file) == (1, out, "")
    status, out, _ = checks("apply", file, "--json")
    assert (status, json.loads(out)["conflicts"]) == (1, [told])


def test_a_name_of_several_checks_is_refused_before_anything_is_done(checks, key, server, tmp_path):
    api = Api(server, key)
    for _ in range(2):
        api.create(settings("a"))
    file = write(tmp_path / "c.toml", 'name = "a"', 'name = "b"', defaults="period_seconds = 60\ngrace_seconds = 0")
    told = "cardbeat: the server has 2 checks named 'a'; rename or delete all of them but one\n"
    assert checks("apply", file) == checks("apply", file, "--dry-run") == (2, "", told)
    assert [check["name"] for check in api.checks()] == ["a", "a"]


def test_a_server_that_stays_busy_is_told(checks, key, tmp_path, monkeypatch):
    slept = []
    monkeypatch.setattr("cardbeat.commands.checks.Api", partial(Api, sleep=slept.append))
    file = write(tmp_path / "c.toml", 'name = "a"\nperiod_seconds = 60\ngrace_seconds = 0')
    listed, busy = response("200 OK", b'{"checks": [], "next": null}'), response("503 x", b'{"error": "Busy."}')
    with Scripted(listed, *[busy] * 6) as server:
        answer = checks("apply", file, "--url", server.url)
    assert answer == (
        2,
        "0 created, 0 changed, 0 deleted, 0 unchanged\n",
        "cardbeat: a: Busy. (what is printed above was done, the rest was not)\n",
    )
    assert slept == [1, 2, 4, 8, 16]


def test_what_the_server_refuses_ends_it_and_says_what_was_done(checks, key, tmp_path):
    good, bad = ('name = "a"', 'name = "b"\nwebhook_url = "http://127.0.0.1/"')
    file = write(tmp_path / "c.toml", good, bad, 'name = "c"', defaults="period_seconds = 60\ngrace_seconds = 0")
    status, out, err = checks("apply", file)
    assert (status, re.sub("/ping/.*", "", out)) == (
        2,
        f"created a: {BASE}\n1 created, 0 changed, 0 deleted, 0 unchanged\n",
    )
    assert err.startswith("cardbeat: b: The URL's host is a private or reserved address")
    assert err.count("\n") == 1
    assert [check["name"] for check in json.loads(checks("list", "--json")[1])] == ["a"]


def test_what_was_done_is_told_though_the_server_goes_away(checks, key, tmp_path):
    created = {
        **settings("a"),
        "id": "x",
        "status": "on_time",
        "deadline_at": "2026-01-01 00:00:00",
        "ping_url": "x",
        "version": 1,
    }
    answers = ({"checks": [], "next": None}, {"check": created})
    file = write(tmp_path / "c.toml", 'name = "a"', 'name = "b"', defaults="period_seconds = 60\ngrace_seconds = 0")
    with Scripted(*(response("200 OK", json.dumps(answer).encode()) for answer in answers)) as server:
        status, out, err = checks("apply", file, "--url", server.url)
    assert (status, out) == (2, "created a: x\n1 created, 0 changed, 0 deleted, 0 unchanged\n")
    assert err.startswith("cardbeat: b: can't use the server")
    assert err.endswith(" (what is printed above was done, the rest was not)\n")


def test_programs_get_every_member_that_the_server_gives(checks, key, app, tmp_path):
    checks("apply", write(tmp_path / "c.toml", 'name = "a"\nperiod_seconds = 60\ngrace_seconds = 0'))
    pinged = json.loads(checks("ping", "a", "--json")[1])
    (listed,) = json.loads(checks("list", "--json")[1])
    assert listed == app.json("GET", "/checks", key=key)["checks"][0]
    assert pinged == {**app.json("GET", f"/ping/{listed['id']}"), "deadline_at": listed["deadline_at"]}


def test_a_check_is_pinged_by_its_name(checks, key, app, tmp_path):
    checks("apply", write(tmp_path / "c.toml", 'name = "a b"\nperiod_seconds = 60\ngrace_seconds = 0'))
    status, out, _ = checks("ping", "a b")
    assert (status, out.startswith("on time until 2027-01-15 ")) == (0, True)
    assert json.loads(checks("ping", "a b", "--json")[1])["recovered"] is False
    assert json.loads(checks("list", "--json")[1])[0]["ping_count"] == 2
    assert checks("list")[1].splitlines()[1].startswith("a b   on time  2027-01-15 08:00:00  ")
    status, _, err = checks("ping", "b")
    assert (status, err) == (2, "cardbeat: there is no check named 'b'; see: checks list\n")


@pytest.fixture
def three(checks, key, tmp_path):
    """The checks a, b and c."""
    checks("apply", write(tmp_path / "c.toml", *(f"name = '{name}'\n{REST}" for name in "abc")))


@pytest.mark.usefixtures("three")
def test_a_check_is_snoozed_by_its_name(checks):
    assert checks("snooze", "b", "7d") == (0, "b: snoozed until 2027-01-22 08:00:00 (UTC)\n", "")
    listed = checks("list")[1].splitlines()[1:]
    assert [re.split("  +", line)[1] for line in listed] == ["on time", "on time, snoozed", "on time"]
    snoozed = json.loads(checks("snooze", "b", "1h30m", "--json")[1])
    assert snoozed["snoozed_until"] == "2027-01-15 09:30:00"
    assert checks("snooze", "b", "off") == (0, "b: not snoozed, deadline 2027-01-15 08:01:00 (UTC)\n", "")


@pytest.mark.usefixtures("three")
def test_the_list_names_jobs_that_failed_and_snoozed_ones_too(checks, app):
    a, b, _ = json.loads(checks("list", "--json")[1])
    checks("snooze", "b", "7d")
    for check in (a, b):
        app("GET", f"/ping/{check['id']}/fail")
    listed = checks("list")[1].splitlines()[1:]
    wanted = ["overdue, failed", "on time, failed, snoozed", "on time"]
    assert [re.split("  +", line)[1] for line in listed] == wanted


@pytest.mark.usefixtures("three")
def test_all_checks_are_snoozed_at_once(checks):
    status, out, _ = checks("snooze", "--all", "2h")
    assert (status, out) == (0, "".join(f"{name}: snoozed until 2027-01-15 10:00:00 (UTC)\n" for name in "abc"))
    ended = json.loads(checks("snooze", "off", "--all", "--json")[1])
    assert [(check["name"], check["snoozed_until"]) for check in ended] == [("a", None), ("b", None), ("c", None)]


@pytest.mark.usefixtures("three")
def test_a_check_that_is_deleted_since_it_was_listed_keeps_no_other_from_a_snooze(checks, app, key, monkeypatch):
    list_all = Api.checks

    def list_and_delete(api):
        listed = list_all(api)
        app("DELETE", f"/checks/{listed[1]['id']}", key=key)
        return listed

    monkeypatch.setattr(Api, "checks", list_and_delete)
    until = "snoozed until 2027-01-15 10:00:00 (UTC)"
    assert checks("snooze", "--all", "2h") == (0, f"a: {until}\nb: no longer exists\nc: {until}\n", "")
    assert [check["name"] for check in json.loads(checks("snooze", "--all", "2h", "--json")[1])] == ["a"]


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("a", "x"), "must be a duration such as 7d or 2h30m, or off, not 'x'"),
        (("a", "0s"), "must be a duration"),
        (("a", "3600"), "must be a duration"),
        (("a", "59s"), "The field seconds must be an integer from 60 to 7776000 (seconds)."),
        (("a", "91d"), "The field seconds must be an integer from 60 to 7776000 (seconds)."),
        (("a",), "checks snooze takes NAME and TIME"),
        (("--all",), "checks snooze takes TIME"),
        (("a", "7d", "--all"), "checks snooze takes TIME"),
        (("d", "7d"), "there is no check named 'd'"),
    ],
)
def test_another_snooze_is_refused_in_one_line(checks, argv, says):
    status, out, err = checks("snooze", *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert "snoozed" not in checks("list")[1]


def test_all_pages_are_listed(server, key, monkeypatch):
    monkeypatch.setattr("cardbeat.client.api.PAGE", "/checks?limit=2")
    api = Api(server, key)
    names = [api.create(settings(f"job {n}"))["name"] for n in range(5)]
    assert [check["name"] for check in api.checks()] == names


@pytest.mark.parametrize(
    "argv",
    [(), ("list", "more"), ("apply",), ("ping",), ("list", "--prune"), ("ping", "--all"), ("all",)],
)
def test_other_arguments_are_one_line_and_status_2(checks, key, argv):
    status, out, err = checks(*argv)
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("value", ["", " ", "sk_ä", "sk_\nX-Other: 1"])
def test_without_a_key_that_can_be_sent_nothing_is_asked(checks, key, monkeypatch, value):
    monkeypatch.setenv("CARDBEAT_KEY", value)
    assert checks("list")[::2] == (
        2,
        "cardbeat: there is no key; set the variable CARDBEAT_KEY to your checks key (sk_...)\n",
    )


def test_a_key_that_the_server_does_not_know_is_refused_in_its_words(checks, key, monkeypatch):
    monkeypatch.setenv("CARDBEAT_KEY", "sk_unknown")
    status, _, err = checks("list")
    assert (status, err) == (
        2,
        "cardbeat: This API key is not known here, or was revoked; POST /register issues a new one.\n",
    )


def test_no_server_is_one_line_at_once_for_all_but_a_ping():
    slept = []
    with pytest.raises(StartupError, match=r"can't use the server at http://127\.0\.0\.1:1: it takes no connections"):
        Api("http://127.0.0.1:1", "sk_a", sleep=slept.append).checks()
    assert slept == []
    with pytest.raises(StartupError):
        Api("http://127.0.0.1:1", "sk_a", keeps_trying=True, sleep=slept.append).checks()
    assert slept == [1, 2, 4, 8, 16]


class Scripted:
    """Answers each request with the next of some responses, as bytes, and keeps what was asked; then it is gone."""

    def __init__(self, *answers):
        self.asked = []
        self._answers = list(answers)

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(10)
        self._listener.close()

    def _serve(self):
        for number, answer in enumerate(self._answers, 1):
            client, _ = self._listener.accept()
            if number == len(self._answers):
                self._listener.close()
            with client:
                self.asked.append(client.recv(65536))
                client.sendall(answer)


def response(status, body=b"{}", headers=""):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


UNCONFIRMED = b'{"error": "It may be done.", "code": "unconfirmed"}'


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", response("500 x"), response("502 x"), response("503 x", UNCONFIRMED)),
        response("200 OK", b'{"check": 1}'),
    ],
)
def test_what_was_asked_without_an_answer_is_told_as_not_known(checks, tmp_path, monkeypatch, answer):
    monkeypatch.setenv("CARDBEAT_KEY", "sk_a")
    file = write(tmp_path / "c.toml", 'name = "a"', 'name = "b"', defaults="period_seconds = 60\ngrace_seconds = 0")
    with Scripted(response("200 OK", b'{"checks": [], "next": null}'), answer) as server:
        status, out, err = checks("apply", file, "--url", server.url)
    assert (status, out) == (2, "0 created, 0 changed, 0 deleted, 0 unchanged\n")
    assert err.startswith("cardbeat: a: ")
    assert err.endswith(
        " (what is printed above was done, a may be; run apply again: it looks first, and does the rest)\n"
    )


def test_a_server_that_is_busy_is_asked_again():
    slept = []
    with Scripted(response("503 x"), response("429 x"), response("200 OK", b'{"checks": [], "next": null}')) as server:
        assert Api(server.url, "sk_a", sleep=slept.append).checks() == []
    assert slept == [1, 2]
    with Scripted(*[response("503 x", b'{"error": "Busy."}')] * 6) as server, pytest.raises(Refused, match=r"Busy\."):
        Api(server.url, "sk_a", sleep=lambda _: None).checks()


def test_a_ping_waits_for_a_server_behind_a_proxy_and_as_long_as_it_is_asked_to():
    slept = []
    taken = response("200 OK", b'{"status": "on_time", "recovered": false, "deadline_at": "2026-01-01 00:00:00"}')
    with Scripted(response("502 x"), response("503 x", headers="Retry-After: 7\r\n"), taken) as server:
        Api(server.url, "sk_a", keeps_trying=True, sleep=slept.append).ping("id")
    assert slept == [1, 7]
    with Scripted(response("502 x")) as server, pytest.raises(Refused, match="the server answered 502"):
        Api(server.url, "sk_a", sleep=slept.append).checks()


def test_what_a_server_says_can_not_steer_the_terminal():
    with Scripted(response("400 x", b'{"error": "\\u001b[2J\\nboo"}')) as server, pytest.raises(Refused) as refused:
        Api(server.url, "sk_a").checks()
    assert str(refused.value) == "\\x1b[2J\\nboo"


def test_a_url_with_a_path_that_leads_nowhere_is_told(checks, key, server):
    told = f"can't use the server at {server}/...: it has nothing at /checks; CARDBEAT_URL or --url says where it is"
    assert checks("list", "--url", f"{server}/x") == (2, "", f"cardbeat: {told}\n")


def test_a_server_without_tls_is_told_in_plain_words():
    told = "it does not answer with TLS, try http:// in place of https://"
    with Scripted(response("400 Bad Request")) as server, pytest.raises(StartupError, match=told):
        Api(server.url.replace("http", "https"), "sk_a").checks()


def test_the_key_does_not_follow_a_redirect():
    redirect = response("301 x", headers="Location: https://other.example/\r\n")
    with Scripted(redirect) as server, pytest.raises(Refused, match=r"answered 301, see https://other\.example/"):
        Api(server.url, "sk_a").checks()
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n",
        response("200 OK", b"<html>"),
        response("200 OK", b"[]"),
        response("200 OK", b'{"status": "ok"}'),
        response("200 OK", b'{"checks": 5, "next": null}'),
        response("200 OK", b'{"checks": [{"id": "x"}], "next": null}'),
        response("200 OK", b"[" * 100_000),
    ],
)
def test_what_is_no_cardbeat_is_one_line(answer):
    with Scripted(answer) as server, pytest.raises(StartupError, match="can't use the server at"):
        Api(server.url, "sk_a").checks()


def test_a_read_only_key_lists_the_checks_and_shows_no_ping_url(app, key, checks, monkeypatch):
    check = app.json("POST", "/checks", settings("mail", url="https://a.example/secret"), key=key)["check"]
    monkeypatch.setenv("CARDBEAT_KEY", app.json("POST", "/key/read-only", key=key)["key"])
    status, out, err = checks("list")
    assert (status, err) == (0, "")
    assert out.splitlines()[1].split("  ")[0] == "mail"
    assert "not shown to this key" in out
    told = "cardbeat: this is a read-only key, which can't ping; set CARDBEAT_KEY to the checks key\n"
    assert checks("ping", "mail") == (2, "", told)
    told = "cardbeat: This is a read-only key, which changes nothing; send the checks key.\n"
    assert checks("snooze", "mail", "1h") == checks("test", "mail") == (2, "", told)
    (listed,) = json.loads(checks("list", "--json")[1])
    assert (listed["id"], listed["ping_url"], listed["webhook_url"]) == (
        check["id"][:12],
        None,
        "https://a.example/...",
    )
