"""The option `--time-zone`: the zone's time first, then UTC."""

import zoneinfo

import pytest

from cardbeat import cli
from cardbeat.clock import minute_text
from cardbeat.heartbeat.alerts.message import OVERDUE, Facts, body_of
from cardbeat.heartbeat.check import Check

WINTER = 1_769_825_520
"""2026-01-31 02:12 UTC."""


@pytest.mark.parametrize(
    ("zone", "seconds", "text"),
    [
        (None, WINTER, "2026-01-31 02:12 UTC"),
        ("UTC", WINTER, "2026-01-31 02:12 UTC"),
        ("Europe/Berlin", WINTER, "2026-01-31 03:12 CET (02:12 UTC)"),
        (
            "Europe/Berlin",
            WINTER + 180 * 86_400,
            "2026-07-30 04:12 CEST (02:12 UTC)",
        ),
        (
            "America/New_York",
            WINTER,
            "2026-01-30 21:12 EST (2026-01-31 02:12 UTC)",
        ),
        ("Asia/Kathmandu", WINTER, "2026-01-31 07:57 +0545 (02:12 UTC)"),
    ],
)
def test_a_minute_is_told_in_the_zone_and_in_utc(zone, seconds, text):
    assert minute_text(seconds, zone and zoneinfo.ZoneInfo(zone)) == text


def test_alerts_tell_it():
    check = Check(
        1,
        "id",
        "key",
        "job",
        60,
        0,
        None,
        "overdue",
        1,
        0,
        WINTER,
        None,
        0,
        0,
        0,
        1,
    )
    told = Facts(OVERDUE, WINTER + 60, 1, "late", 60, 0)
    body = body_of(
        told,
        check,
        "https://b.example",
        zoneinfo.ZoneInfo("Europe/Berlin"),
    ).decode()
    assert (
        "1 minute late since 2026-01-31 03:12 CET (02:12 UTC); no ping yet."
        in body
    )


@pytest.mark.parametrize(
    "name", ["Mars/Base", "", "../x", "/etc/passwd", "Europe", "CEST"]
)
@pytest.mark.parametrize("zones", [{"UTC"}, set()])
def test_a_zone_that_the_host_does_not_know_is_one_line(
    monkeypatch, capsys, name, zones
):
    monkeypatch.setattr(zoneinfo, "available_timezones", lambda: zones)
    assert cli.main(["serve", "--time-zone", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--time-zone" in line
    assert ("pip install tzdata" in line) == (not zones)
