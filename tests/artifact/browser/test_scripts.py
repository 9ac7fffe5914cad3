"""The scripts' pure parts, called in the browser as the pages call them."""

import json
import re
import sys

import pytest

from cardbeat.heartbeat.alerts.message import RECEIVERS
from cardbeat.heartbeat.alerts.target import parse
from tests.kit.artifact import ran
from tests.kit.documentation import blocks
from tests.kit.lists import each
from tests.rules.heartbeat.alerts.test_receivers import DOCUMENTED, URLS

OTHER_URLS = [
    url
    for receiver in DOCUMENTED.values()
    for url in receiver["other_urls"]
]
NOW = "Date.UTC(2026, 0, 31, 12)"
SILENT = "{last_status: null, last_error: 'The connection was refused.'}"


def from_now(time):
    return f"m.fromNow(m.parseTime('{time}'), {NOW})"


def schedule(seconds):
    check = f"{{period_seconds: {seconds}, ping_url: 'http://x'}}"
    return f"m.crontabLine({check}).split(' /path')[0]"


def explained(status):
    error = f"'The receiver answered {status}.'"
    return (
        f"m.explain({{last_status: {status}, last_error: {error}}}).short"
    )


SAID = {
    "shared/time.js": {
        from_now("2026-01-31 12:00:00"): "now",
        from_now("2026-01-31 11:59:15"): "45 seconds ago",
        from_now("2026-01-31 10:31:00"): "1 hour ago",
        from_now("2026-02-02 12:00:00"): "in 2 days",
        "m.durationText(0)": "0 seconds",
        "m.durationText(90)": "1 minute 30 seconds",
        "m.durationText(90_000)": "1 day 1 hour",
        "m.durationText(31_536_000)": "365 days",
        "m.durationText(93_784, 2)": "1 day 2 hours",
        "Object.values(m.inLargestUnit(0))": [0, 1],
        "Object.values(m.inLargestUnit(90))": [90, 1],
        "Object.values(m.inLargestUnit(3600))": [1, 3600],
        "Object.values(m.inLargestUnit(172_800))": [2, 86_400],
    },
    # The job runs as often as its check expects it.
    "dashboard/cron.js": {
        schedule(90): "* * * * *",
        schedule(420): "*/6 * * * *",
        schedule(3_600): "30 * * * *",
        schedule(86_399): "30 */12 * * *",
        schedule(86_400): "30 2 * * *",
        schedule(31_536_000): "30 2 1 * *",
    },
    # What stands before a colon and a space names a group.
    "dashboard/groups.js": {
        "Object.values(m.splitName('a: b: c'))": ["a", "b: c"],
        "Object.values(m.splitName('10:30 job'))": ["", "10:30 job"],
        "Object.values(m.splitName(': x'))": ["", ": x"],
    },
    "dashboard/answers.js": {
        explained(404): "no such webhook (404)",
        explained(302): "moved (302)",
        explained(503): "receiver failed (503)",
        f"m.explain({SILENT}).short": "no answer",
        "m.explain({last_status: 204, last_error: null})": None,
    },
}


@pytest.mark.parametrize("script", SAID)
def test_what_a_script_says(run, script):
    for expression, value in SAID[script].items():
        assert run(script, expression) == value, expression


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


REACH = {
    "localhost a.localhost 127.8.0.1 [::1] [::ffff:127.0.0.1]": [
        True,
        True,
    ],
    "10.0.0.1 172.31.255.1 192.168.1.1 100.64.0.1 0.0.0.0": [False, True],
    "[fd00::1] [fe80::1] [::] nas cards.local nas.home.arpa": [
        False,
        True,
    ],
    "a.example.com 172.32.0.1 8.8.8.8 10.a.com [2001:db8::1]": [
        False,
        False,
    ],
}


def test_it_is_known_who_can_fetch_from_a_host(run):
    for hosts, reach in REACH.items():
        for host in hosts.split():
            name = f"new URL('http://{host}/').hostname"
            asked = f"[m.isLoopback({name}), m.isPrivate({name})]"
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
        assert api.read(check, key)["ping_count"] == 1


def test_systemd_takes_its_lines_and_a_percent_sign_is_escaped(
    recipe, tmp_path
):
    assert recipe("crontab").endswith("/a\\%20b/ping/ID")
    assert recipe("systemd").endswith("/a%%20b/ping/ID")
    assert recipe("url") == PING_URL
    unit = tmp_path / "job.service"
    unit.write_text(recipe("systemd") + "\nExecStart=/bin/true\n")
    assert (
        "job.service:"
        not in ran("systemd-analyze", "verify", unit).stderr
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
        (
            {"status": "overdue", "failed_at": LATER},
            "failed",
            "attention",
        ),
        (
            {"snoozed_until": LATER, "failed_at": LATER},
            "snoozed",
            "snoozed",
        ),
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


def test_the_newest_outage_is_first_and_those_that_are_snoozed_are_last(
    run,
):
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
    (section,) = run(
        "dashboard/groups.js", f"m.arrange({shown}, {shown})"
    )
    names = " ".join(each(section["checks"], "name"))
    assert names == "newer failed old unheard untold snoozed"
    parts = run("dashboard/groups.js", f"m.summaryOf({shown})")
    assert [
        (part["text"], bool(part.get("isBad"))) for part in parts
    ] == [
        ("4 overdue", True),
        ("1 failed during a snooze", True),
        ("1 check's alerts don't arrive", True),
        ("1 snoozed", False),
        ("6 in all", False),
    ]


def test_the_last_failed_alert_is_the_newest_one_that_was_tried(run):
    untried, taken = (
        {"attempts": n, "last_status": None, "last_error": None}
        for n in (0, 1)
    )
    failed = {**taken, "last_error": "The connection was refused."}
    alerts = json.dumps([untried, taken, failed])
    assert (
        run("dashboard/answers.js", f"m.lastFailed({alerts})") == failed
    )


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
    assert shown not in each(RECEIVERS, "name")
