"""The scripts' pure parts, called in the browser as the pages call them."""

import json
import re
import sys

import pytest

from cardbeat.heartbeat.alerts.receivers import RECEIVERS
from cardbeat.heartbeat.alerts.target import parse
from tests.kit.artifact import ran
from tests.kit.documentation import blocks
from tests.rules.heartbeat.alerts.test_receivers import DOCUMENTED, URLS

OTHER_URLS = [
    url for receiver in DOCUMENTED.values() for url in receiver["other_urls"]
]
NOW = "Date.UTC(2026, 0, 31, 12)"


def test_times_and_durations_are_told_in_words(run):
    times = {
        "2026-01-31 12:00:00": "now",
        "2026-01-31 11:59:15": "45 seconds ago",
        "2026-01-31 10:31:00": "1 hour ago",
        "2026-02-02 12:00:00": "in 2 days",
    }
    for time, words in times.items():
        assert (
            run("shared/time.js", f"m.fromNow(m.parseTime('{time}'), {NOW})")
            == words
        )
    seconds = {
        0: "0 seconds",
        90: "1 minute 30 seconds",
        90_000: "1 day 1 hour",
        31_536_000: "365 days",
    }
    for count, words in seconds.items():
        assert run("shared/time.js", f"m.durationText({count})") == words
    assert (
        run("shared/time.js", "m.durationText(93_784, 2)") == "1 day 2 hours"
    )
    for count, amount in {
        0: [0, 1],
        90: [90, 1],
        3600: [1, 3600],
        172_800: [2, 86_400],
    }.items():
        assert (
            list(run("shared/time.js", f"m.inLargestUnit({count})").values())
            == amount
        )


@pytest.mark.parametrize(
    ("seconds", "schedule"),
    [
        (90, "* * * * *"),
        (420, "*/6 * * * *"),
        (3_600, "30 * * * *"),
        (86_399, "30 */12 * * *"),
        (86_400, "30 2 * * *"),
        (31_536_000, "30 2 1 * *"),
    ],
)
def test_a_crontab_line_runs_the_job_as_often_as_its_check_expects_it(
    run, seconds, schedule
):
    line = run(
        "dashboard/cron.js",
        f"m.crontabLine({{period_seconds: {seconds}, ping_url: 'http://x'}})",
    )
    assert (
        line
        == f"{schedule} /path/to/job && curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null http://x"
    )


def test_the_documentation_shows_the_crontab_line_of_a_nightly_job(run):
    for page, url in (
        ("README", "https://cards.example.com"),
        ("checks", "http://127.0.0.1:8080"),
    ):
        line = run(
            "dashboard/cron.js",
            f"m.crontabLine({{period_seconds: 86_400, ping_url: '{url}/ping/ID'}})",
        )
        assert (
            line.replace("/path/to/job", "/usr/local/bin/backup")
            == blocks(page, "crontab")[0].rstrip()
        )


@pytest.mark.parametrize(
    ("hosts", "reach"),
    [
        (
            "localhost cards.localhost 127.8.0.1 [::1] [::ffff:127.0.0.1]",
            [True, True],
        ),
        (
            "10.0.0.1 172.31.255.1 192.168.1.1 100.64.0.1 0.0.0.0",
            [False, True],
        ),
        (
            "[fd00::1] [fe80::1] [::] nas cards.local nas.home.arpa",
            [False, True],
        ),
        (
            "cards.example.com 172.32.0.1 8.8.8.8 10.example.com [2001:db8::1]",
            [False, False],
        ),
    ],
)
def test_it_is_known_who_can_fetch_from_a_host(run, hosts, reach):
    for host in hosts.split():
        asked = f"(({{hostname}}) => [m.isLoopback(hostname), m.isPrivate(hostname)])(new URL('http://{host}/'))"
        assert run("shared/reach.js", asked) == reach, host


PING_URL = "https://cards.example.com/a%20b/ping/ID"


@pytest.fixture
def recipe(run):
    """The text of a recipe, by its id."""
    return lambda id, url=PING_URL: run(
        "dashboard/pings.js",
        f"m.RECIPES.find((recipe) => recipe.id === {id!r}).text({{period_seconds: 86_400, ping_url: {url!r}}})",
    )


def test_a_python_job_pings_unless_it_fails(api, recipe):
    key = api.checks_key()
    check = api.check(key)
    script = recipe("python", check["ping_url"])
    for job, status in (("dict", 0), ("[].pop", 1)):
        assert (
            ran(sys.executable, "-c", f"job = {job}\n{script}").returncode
            == status
        )
        assert (
            api("GET", f"checks/{check['id']}", key=key)["check"]["ping_count"]
            == 1
        )


def test_systemd_takes_its_lines_and_a_percent_sign_is_escaped(
    recipe, tmp_path
):
    assert recipe("crontab").endswith("/a\\%20b/ping/ID")
    assert recipe("systemd").endswith("/a%%20b/ping/ID")
    assert recipe("url") == PING_URL
    unit = tmp_path / "job.service"
    unit.write_text(recipe("systemd") + "\nExecStart=/bin/true\n")
    assert "job.service:" not in ran("systemd-analyze", "verify", unit).stderr


def test_what_stands_before_a_colon_and_a_space_names_a_group(run):
    names = {
        "a: b: c": ["a", "b: c"],
        "10:30 job": ["", "10:30 job"],
        ": x": ["", ": x"],
    }
    for name, group in names.items():
        assert (
            list(run("dashboard/groups.js", f"m.splitName({name!r})").values())
            == group
        )


PINGED = {
    "status": "on_time",
    "last_ping_at": "2026-01-01 00:00:00",
    "failed_at": None,
    "snoozed_until": None,
}
LATER = "2026-01-02 00:00:00"


@pytest.mark.parametrize(
    ("changes", "state", "kind"),
    [
        ({}, "on_time", "on_time"),
        ({"last_ping_at": None}, "waiting", "waiting"),
        ({"status": "overdue", "failed_at": LATER}, "failed", "attention"),
        ({"snoozed_until": LATER, "failed_at": LATER}, "snoozed", "snoozed"),
        ({"failed_at": LATER}, "on_time", "attention"),
        ({"delivery": "failing"}, "on_time", "attention"),
    ],
)
def test_a_check_has_a_look_and_a_place_in_the_filter(
    run, changes, state, kind
):
    check = json.dumps({**PINGED, **changes})
    assert run(
        "dashboard/groups.js", f"[m.stateOf({check}), m.kindOf({check})]"
    ) == [state, kind]


def test_the_newest_outage_is_first_and_those_that_are_snoozed_are_last(run):
    times = [f"2026-01-0{day} 00:00:00" for day in range(1, 6)]
    overdue = {**PINGED, "status": "overdue", "deadline_at": times[0]}
    checks = [
        {
            **overdue,
            "name": "snoozed",
            "snoozed_until": times[4],
            "deadline_at": times[4],
        },
        {
            **PINGED,
            "name": "unheard",
            "delivery": "failing",
            "deadline_at": times[4],
        },
        {**overdue, "name": "old"},
        {
            **overdue,
            "name": "failed",
            "failed_at": times[1],
            "deadline_at": times[4],
        },
        {**overdue, "name": "newer", "deadline_at": times[2]},
        {**PINGED, "name": "untold", "failed_at": times[1]},
    ]
    shown = json.dumps(checks)
    (section,) = run("dashboard/groups.js", f"m.arrange({shown}, {shown})")
    names = " ".join(check["name"] for check in section["checks"])
    assert names == "newer failed old unheard untold snoozed"
    parts = run("dashboard/groups.js", f"m.summaryOf({shown})")
    assert [(part["text"], bool(part.get("isBad"))) for part in parts] == [
        ("4 overdue", True),
        ("1 failed during a snooze", True),
        ("1 check's alerts don't arrive", True),
        ("1 snoozed", False),
        ("6 in all", False),
    ]


def test_a_receivers_answer_is_told_in_words(run):
    refused, silent = (
        "The receiver answered {}.",
        "The connection was refused.",
    )
    for status, error, short in (
        (404, refused, "no such webhook (404)"),
        (302, refused, "moved (302)"),
        (503, refused, "receiver failed (503)"),
        (None, silent, "no answer"),
    ):
        alert = json.dumps(
            {"last_status": status, "last_error": error.format(status)}
        )
        assert (
            run("dashboard/answers.js", f"m.explain({alert}).short") == short
        )
    assert (
        run(
            "dashboard/answers.js",
            "m.explain({last_status: 204, last_error: null})",
        )
        is None
    )
    untried, taken = (
        {"attempts": n, "last_status": None, "last_error": None}
        for n in (0, 1)
    )
    failed = {"attempts": 3, "last_status": None, "last_error": silent}
    alerts = json.dumps([untried, taken, failed])
    assert run("dashboard/answers.js", f"m.lastFailed({alerts})") == failed


@pytest.mark.parametrize(
    "url", [*URLS, *(url for url in OTHER_URLS if "//" in url)]
)
def test_a_receiver_is_known_by_the_shape_of_its_url_as_the_server_knows_it(
    run, url
):
    target = parse(url)
    shown = run("editor/receivers.js", f"m.receiverName({url!r})")
    for receiver in RECEIVERS:
        if re.fullmatch(receiver["shape"], f"{target.host}{target.path}"):
            assert shown == receiver["name"]
            return
    assert shown not in [receiver["name"] for receiver in RECEIVERS]
