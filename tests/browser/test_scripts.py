"""The scripts' pure parts, called in the browser as the pages call them."""

import re

import pytest

from tests.artifact import ROOT

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
    assert run("time.js", f"m.fromNow(m.parseTime('{time}'), {NOW})") == words


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
    assert run("time.js", f"m.durationText({seconds})") == words


@pytest.mark.parametrize(("seconds", "amount"), [(0, [0, 1]), (90, [90, 1]), (3600, [1, 3600]), (172_800, [2, 86_400])])
def test_an_amount_is_edited_in_its_largest_unit(run, seconds, amount):
    assert list(run("time.js", f"m.inLargestUnit({seconds})").values()) == amount


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
    line = run("cron.js", f"m.crontabLine({{period_seconds: {seconds}, ping_url: 'http://x'}})")
    assert line == f"{schedule} /path/to/job && curl -fsS -m 10 --retry 5 --retry-connrefused -o /dev/null http://x"


def test_the_readme_shows_the_crontab_line_of_a_nightly_job(run):
    [shown] = re.findall(r"```crontab\n(.*)\n```", (ROOT / "README.md").read_text())
    line = run("cron.js", "m.crontabLine({period_seconds: 86_400, ping_url: 'http://127.0.0.1:8080/ping/ID'})")
    assert line.replace("/path/to/job", "/usr/local/bin/backup") == shown


@pytest.mark.parametrize(
    ("host", "reach"),
    [
        *((host, "loopback") for host in ("localhost", "cards.localhost", "127.0.0.1", "127.8.0.1", "0x7f.1", "[::1]")),
        *((host, "loopback") for host in ("[::ffff:127.0.0.1]", "localhost.")),
        *((host, "private") for host in ("10.0.0.1", "172.16.0.1", "172.31.255.1", "192.168.1.1", "169.254.0.1")),
        *((host, "private") for host in ("100.64.0.1", "0.0.0.0", "[fd00::1]", "[fe80::1]", "[::]")),
        *((host, "private") for host in ("nas", "cards.local", "cards.internal", "nas.home.arpa")),
        *((host, "public") for host in ("cards.example.com", "172.32.0.1", "100.128.0.1", "8.8.8.8", "[2001:db8::1]")),
        *((host, "public") for host in ("10.example.com", "local.example.com", "fd.example.com", "[::ffff:8.8.8.8]")),
    ],
)
def test_it_is_known_who_can_fetch_from_a_host(run, host, reach):
    asked = f"(({{hostname}}) => [m.isLoopback(hostname), m.isPrivate(hostname)])(new URL('http://{host}/'))"
    assert (
        run("reach.js", asked) == {"loopback": [True, True], "private": [False, True], "public": [False, False]}[reach]
    )


def test_deadlines_follow_the_servers_clock(run):
    assert run("time.js", "(m.setServerTime('Thu, 01 Jan 2026 00:00:00 GMT'), m.serverNow())") < 1_767_225_700_000
    assert run("time.js", "(m.setServerTime('nonsense'), m.serverNow())") < 1_767_225_700_000


def test_a_field_that_only_one_side_changed_needs_no_choice_of_mine(run):
    opened = "{name: 'a', period_seconds: 1, grace_seconds: 0, webhook_url: null}"
    rows = run("merge.js", f"m.compare({opened}, {{...{opened}, name: 'b'}}, {{...{opened}, grace_seconds: 9}})")
    assert [(row["field"], row["take"]) for row in rows if row["differs"]] == [
        ("name", "theirs"),
        ("grace_seconds", "mine"),
    ]
    assert run("merge.js", f"m.changes({opened}, {{...{opened}, name: 'c'}})") == {"name": "c"}


def test_a_cards_address_leaves_out_what_is_empty_or_the_default(run):
    card = "{title: 'A & B+C', description: '', author: \"O'Hara\", template: 'default', theme: 'light'}"
    url = run("card.js", f"m.cardUrl('https://example.com/x/', {card}, 'sk_1')")
    assert url == "https://example.com/x/og?title=A%20%26%20B%2BC&author=O%27Hara&theme=light&key=sk_1"
