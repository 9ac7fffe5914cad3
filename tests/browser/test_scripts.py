"""The scripts' pure parts, called in the browser as the pages call them."""

import json
import subprocess
import sys

import pytest

from cardbeat.heartbeat.webhooks.receivers import RECEIVERS
from cardbeat.heartbeat.webhooks.target import parse
from tests.documentation import blocks

NOW = "Date.UTC(2026, 0, 31, 12)"


@pytest.fixture(scope="module")
def run(browser, server):
    """Evaluates an expression with one of the scripts at hand as `m`."""
    page = browser.new_page()
    page.goto(server.url)
    yield lambda script, expression: page.evaluate(f"import('./pages/{script}').then((m) => {expression})")
    page.close()


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-01-31 12:00:00", "now"),
        ("2026-01-31 12:05:00", "in 5 minutes"),
        ("2026-01-31 11:59:15", "45 seconds ago"),
        ("2026-01-31 10:31:00", "1 hour ago"),
        ("2026-02-02 12:00:00", "in 2 days"),
    ],
)
def test_a_time_is_told_from_now(run, time, words):
    assert run("shared/time.js", f"m.fromNow(m.parseTime('{time}'), {NOW})") == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "1 minute 30 seconds"),
        (90_000, "1 day 1 hour"),
        (31_536_000, "365 days"),
    ],
)
def test_a_duration_is_told_in_words(run, seconds, words):
    assert run("shared/time.js", f"m.durationText({seconds})") == words


def test_a_duration_is_told_in_as_many_units_as_are_asked_for(run):
    assert run("shared/time.js", "[1, 2, 4].map((units) => m.durationText(93_784, units))") == [
        "1 day",
        "1 day 2 hours",
        "1 day 2 hours 3 minutes 4 seconds",
    ]


@pytest.mark.parametrize(("seconds", "amount"), [(0, [0, 1]), (90, [90, 1]), (3600, [1, 3600]), (172_800, [2, 86_400])])
def test_an_amount_is_edited_in_its_largest_unit(run, seconds, amount):
    assert list(run("shared/time.js", f"m.inLargestUnit({seconds})").values()) == amount


@pytest.mark.parametrize(
    ("seconds", "schedule"),
    [
        (1, "* * * * *"),
        (90, "* * * * *"),
        (300, "*/5 * * * *"),
        (420, "*/6 * * * *"),
        (2_700, "*/30 * * * *"),
        (3_600, "30 * * * *"),
        (18_000, "30 */4 * * *"),
        (43_200, "30 */12 * * *"),
        (86_399, "30 */12 * * *"),
        (86_400, "30 2 * * *"),
        (604_800, "30 2 * * 0"),
        (2_678_400, "30 2 1 * *"),
        (31_536_000, "30 2 1 * *"),
    ],
)
def test_a_crontab_line_runs_the_job_as_often_as_its_check_expects_it(run, seconds, schedule):
    line = run("dashboard/cron.js", f"m.crontabLine({{period_seconds: {seconds}, ping_url: 'http://x'}})")
    assert line == f"{schedule} /path/to/job && curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null http://x"


def test_the_documentation_shows_the_crontab_line_of_a_nightly_job(run):
    shown = [blocks(page, "crontab")[0].rstrip() for page in ("README", "checks")]
    line = run(
        "dashboard/cron.js", "m.crontabLine({period_seconds: 86_400, ping_url: 'http://127.0.0.1:8080/ping/ID'})"
    )
    assert [line.replace("/path/to/job", "/usr/local/bin/backup")] * 2 == shown


@pytest.mark.parametrize(
    ("host", "reach"),
    [
        *((host, "loopback") for host in ("localhost", "cards.localhost", "127.0.0.1", "127.8.0.1", "0x7f.1", "[::1]")),
        *((host, "loopback") for host in ("[::ffff:127.0.0.1]", "localhost.")),
        *((host, "private") for host in ("10.0.0.1", "172.16.0.1", "172.31.255.1", "192.168.1.1", "169.254.0.1")),
        *((host, "private") for host in ("100.64.0.1", "0.0.0.0", "[fd00::1]", "[fe80::1]", "[::]")),
        *((host, "private") for host in ("nas", "cards.local", "cards.internal", "nas.home.arpa")),
        *((host, "public") for host in ("cards.example.com", "172.32.0.1", "100.128.0.1", "8.8.8.8", "[2001:db8::1]")),
        *((host, "public") for host in ("10.example.com", "127.example.com", "fd.example.com", "[::ffff:8.8.8.8]")),
    ],
)
def test_it_is_known_who_can_fetch_from_a_host(run, host, reach):
    asked = f"(({{hostname}}) => [m.isLoopback(hostname), m.isPrivate(hostname)])(new URL('http://{host}/'))"
    assert (
        run("shared/reach.js", asked)
        == {"loopback": [True, True], "private": [False, True], "public": [False, False]}[reach]
    )


PING_URL = "https://cards.example.com/a%20b/ping/ID"


@pytest.fixture
def recipe(run):
    """The text of a recipe, by its id."""
    return lambda id, url=PING_URL: run(
        "dashboard/pings.js",
        f"m.RECIPES.find((recipe) => recipe.id === {id!r}).text({{period_seconds: 86_400, ping_url: {url!r}}})",
    )


def test_a_python_job_pings(api, recipe):
    key = api.checks_key()
    check = api.check(key)
    script = recipe("python", check["ping_url"])
    subprocess.run([sys.executable, "-c", f"job = dict\n{script}"], check=True, timeout=30)
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["ping_count"] == 1
    command = [sys.executable, "-c", f"job = [].pop\n{script}"]
    failing = subprocess.run(command, check=False, capture_output=True, timeout=30)
    assert failing.returncode == 1
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["ping_count"] == 1


def test_a_job_in_an_image_tries_its_ping_again_until_it_is_taken(recipe, tmp_path):
    (tmp_path / "wget").write_text('#!/bin/sh\necho "$@" >> asked\n[ $(wc -l < asked) = 3 ]\n')
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    [_, line] = recipe("docker").rsplit("CMD ", 1)
    command = json.loads(line)
    command[2] = command[2].replace("/path/to/job", "true")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=30)
    assert (tmp_path / "asked").read_text().splitlines() == [f"-q -T 10 -O /dev/null {PING_URL}"] * 3


def test_a_percent_sign_is_escaped_where_it_means_something_else(recipe):
    assert recipe("crontab").endswith("/a\\%20b/ping/ID")
    assert recipe("systemd").endswith("/a%%20b/ping/ID")
    assert recipe("url") == PING_URL


def test_a_systemd_service_takes_its_lines(recipe, tmp_path):
    unit = tmp_path / "job.service"
    unit.write_text(recipe("systemd") + "\nExecStart=/bin/true\n")
    command = ["systemd-analyze", "verify", unit]
    verified = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert "job.service:" not in verified.stderr


def test_only_a_url_of_this_host_alone_is_told_to_be_one(run):
    hosts = ["localhost:8080", "127.0.0.1", "[::1]", "127.example.com", "cards.example.com"]
    told = run(
        "dashboard/pings.js", f"{hosts}.map((host) => m.reachText({{ping_url: 'http://' + host + '/ping/ID'}}) !== '')"
    )
    assert told == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("db1: backup", ["db1", "backup"]),
        ("a: b: c", ["a", "b: c"]),
        ("10:30 job", ["", "10:30 job"]),
        (": x", ["", ": x"]),
    ],
)
def test_what_stands_before_a_colon_and_a_space_names_a_group(run, name, group):
    assert list(run("dashboard/groups.js", f"m.splitName({name!r})").values()) == group


PINGED = {"status": "on_time", "last_ping_at": "2026-01-01 00:00:00", "failed_at": None, "snoozed_until": None}
LATER = "2026-01-02 00:00:00"


@pytest.mark.parametrize(
    ("changes", "state", "kind"),
    [
        ({}, "on_time", "on_time"),
        ({"last_ping_at": None}, "waiting", "waiting"),
        ({"status": "overdue"}, "overdue", "attention"),
        ({"status": "overdue", "failed_at": LATER}, "failed", "attention"),
        ({"status": "overdue", "snoozed_until": LATER}, "overdue", "attention"),
        ({"snoozed_until": LATER}, "snoozed", "on_time"),
        # It failed while it was snoozed.
        ({"snoozed_until": LATER, "failed_at": LATER}, "snoozed", "on_time"),
        ({"failed_at": LATER}, "on_time", "attention"),
        ({"snoozed_until": LATER, "last_ping_at": None}, "snoozed", "waiting"),
        ({"delivery": "failing"}, "on_time", "attention"),
    ],
)
def test_a_check_has_a_look_and_a_place_in_the_filter(run, changes, state, kind):
    check = json.dumps({**PINGED, **changes})
    assert run("dashboard/groups.js", f"[m.stateOf({check}), m.kindOf({check})]") == [state, kind]


def test_the_newest_outage_is_first_and_those_that_are_snoozed_are_last(run):
    times = [f"2026-01-0{day} 00:00:00" for day in range(1, 6)]
    overdue = {**PINGED, "status": "overdue", "deadline_at": times[0]}
    checks = [
        {**overdue, "name": "snoozed", "snoozed_until": times[4], "deadline_at": times[4]},
        {**PINGED, "name": "unheard", "delivery": "failing", "deadline_at": times[4]},
        {**overdue, "name": "old"},
        {**overdue, "name": "failed", "failed_at": times[1], "deadline_at": times[4]},
        {**overdue, "name": "newer", "deadline_at": times[2]},
        {**PINGED, "name": "untold", "failed_at": times[1]},
    ]
    (section,) = run("dashboard/groups.js", f"m.arrange({json.dumps(checks)}, {json.dumps(checks)})")
    assert [check["name"] for check in section["checks"]] == ["newer", "failed", "old", "unheard", "untold", "snoozed"]
    assert run("dashboard/groups.js", f"m.summaryText({json.dumps(checks)})") == (
        "4 of 6 overdue · 1 failed during a snooze · 1 check's alerts don't arrive · 1 snoozed"
    )


@pytest.mark.parametrize(
    ("status", "error", "short"),
    [
        (404, "The receiver answered 404.", "no such webhook (404)"),
        (302, "The receiver answered 302; redirects are not followed.", "moved (302)"),
        (418, "The receiver answered 418.", "refused (418)"),
        (503, "The receiver answered 503.", "receiver failed (503)"),
        (503, "The connection was refused.", "no answer"),
        (None, "The connection was refused.", "no answer"),
    ],
)
def test_a_receivers_answer_is_told_in_words(run, status, error, short):
    alert = json.dumps({"last_status": status, "last_error": error})
    assert run("dashboard/answers.js", f"m.explain({alert}).short") == short


def test_an_alert_that_was_taken_needs_no_explanation(run):
    assert run("dashboard/answers.js", "m.explain({last_status: 204, last_error: null})") is None


def test_a_failure_is_told_though_a_later_test_was_taken(run):
    untried, taken = ({"attempts": n, "last_status": None, "last_error": None} for n in (0, 1))
    failed = {"attempts": 3, "last_status": None, "last_error": "The connection was refused."}
    assert run("dashboard/answers.js", f"m.lastFailed({json.dumps([untried, taken, failed])})") == failed


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", "Slack"),
        ("https://ptb.discord.com/api/v10/webhooks/1/x-y?wait=true", "Discord"),
        ("https://chat.example.com/team/hooks/abcdefghijklmnopqrstuvwxyz", "Mattermost"),
        ("http://ntfy.example.com:8080/alerts?priority=high", "ntfy"),
        ("https://push.example.com/gotify/message?priority=3&token=x", "Gotify"),
        ("https://api.telegram.org/bot1:x/sendMessage?chat_id=1", "Telegram"),
        ("https://chat.googleapis.com/v1/spaces/A/messages?key=x&token=y", "Google Chat"),
        ("https://prod.logic.azure.com/workflows/6a/triggers/manual/paths/invoke?sig=x", "Microsoft Teams"),
        ("http://homeassistant.local:8123/api/webhook/x", "Home Assistant"),
        ("http://apprise.example.com:8000/notify/KEY?tag=admin", "Apprise API"),
        ("http://ntfy/alerts", "ntfy"),
        ("http://bots.example.com:8081/bot1%3Ax/sendmessage", "Telegram"),
        ("https://ntfy.sh/alerts?message=x&priority=3", "ntfy"),
        ("https://ntfy.sh/alerts?template=yes&message=x", "ntfy.sh"),
        ("https://ntfy.sh/alerts?priority=3&tpl=yes", "ntfy.sh"),
        ("https://api.telegram.org/bot1:x/test/SENDMESSAGE?chat_id=1", "Telegram"),
        ("https://api.telegram.org/BOT1:x/sendMessage?chat_id=1", "api.telegram.org"),
        ("https://api.telegram.org/bot1:x/Test/sendMessage", "api.telegram.org"),
        ("https://discord.com.example.org/api/webhooks/1/x", "discord.com.example.org"),
        ("https://hooks.slack.com/triggers/T1/2/x", "hooks.slack.com"),
        ("https://ntfy.sh/topic/publish", "ntfy.sh"),
        ("https://push.example.com/message", "push.example.com"),
        ("https://hooks.example.com/x?next=/notify/KEY", "hooks.example.com"),
        ("http://127.0.0.1:9/hook", "127.0.0.1:9"),
    ],
)
def test_a_receiver_is_known_by_the_shape_of_its_url_as_the_server_knows_it(run, url, name):
    assert run("editor/receivers.js", f"m.receiverName({url!r})") == name
    target = parse(url)
    known = [receiver.name for receiver in RECEIVERS if receiver.shape.fullmatch(f"{target.host}{target.path}")]
    assert known[:1] == ([name] if name in {receiver.name for receiver in RECEIVERS} else [])


def test_the_editor_shows_every_receiver_that_the_server_knows(run):
    assert {receiver.name for receiver in RECEIVERS} <= set(
        run("editor/receivers.js", "m.RECEIVERS.map(({name}) => name)")
    )


def test_deadlines_follow_the_servers_clock(run):
    assert (
        run("shared/time.js", "(m.setServerTime('Thu, 01 Jan 2026 00:00:00 GMT'), m.serverNow())") < 1_767_225_700_000
    )
    assert run("shared/time.js", "(m.setServerTime('nonsense'), m.serverNow())") < 1_767_225_700_000


def test_a_field_that_only_one_side_changed_needs_no_choice_of_mine(run):
    opened = "{name: 'a', period_seconds: 1, grace_seconds: 0, webhook_url: null}"
    rows = run("editor/merge.js", f"m.compare({opened}, {{...{opened}, name: 'b'}}, {{...{opened}, grace_seconds: 9}})")
    assert [(row["field"], row["take"]) for row in rows if row["differs"]] == [
        ("name", "theirs"),
        ("grace_seconds", "mine"),
    ]
    assert run("editor/merge.js", f"m.changes({opened}, {{...{opened}, name: 'c'}})") == {"name": "c"}


def test_a_cards_address_leaves_out_what_is_empty_or_the_default(run):
    card = "{title: 'A & B+C', description: '', author: \"O'Hara\", template: 'default', theme: 'light'}"
    url = run("builder/card.js", f"m.cardUrl('https://example.com/x/', {card}, 'sk_1')")
    assert url == "https://example.com/x/og?title=A%20%26%20B%2BC&author=O%27Hara&theme=light&key=sk_1"
