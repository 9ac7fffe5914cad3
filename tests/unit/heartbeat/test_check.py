import pytest

from cardbeat.errors import Invalid
from cardbeat.heartbeat.check import Check, Settings, validated

GOOD = {"name": "nightly backup", "period_seconds": 86_400, "grace_seconds": 600, "webhook_url": None}
YEAR = 31_536_000


def refuse_ftp(url):
    return "Use http or https." if url.startswith("ftp") else None


def settings(**values):
    return validated(GOOD | values, 1, refuse_ftp)


def test_the_fields_come_out_as_they_went_in():
    url = "https://x.example/"
    assert settings(webhook_url=url) == Settings("nightly backup", 86_400, 600, url, None)
    assert settings(webhook_url=url, repeat_seconds=300) == Settings("nightly backup", 86_400, 600, url, 300)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("  a  ", "a"),
        ("x" * 100, "x" * 100),
        (" " + "x" * 100, "x" * 100),
        ("夜間 💾 👩‍👩‍👧", "夜間 💾 👩‍👩‍👧"),
        ("0", "0"),
        ("a\n", "a"),
        ("\u05d2\u05d9\u05d1\u05d5\u05d9 3", "\u05d2\u05d9\u05d1\u05d5\u05d9 3"),
        (
            "\u0646\u0633\u062e\u0647\u200c\u0628\u0631\u062f\u0627\u0631\u06cc",
            "\u0646\u0633\u062e\u0647\u200c\u0628\u0631\u062f\u0627\u0631\u06cc",
        ),
        (
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        ),
    ],
)
def test_a_name_is_trimmed(name, stored):
    assert settings(name=name).name == stored


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "x" * 101,
        "a\nb",
        "a\x00b",
        "a\x7fb",
        "a\u0085b",
        "a\u2028b",
        "a\u2029b",
        "\x1b[31m",
        "a\u202eb",
        "\u2066a",
        "\u05d0\u200f",
        "a\u061c",
        "\ud800x",
        "x\udcff",
        5,
        True,
        None,
        1.5,
    ],
)
def test_a_name_of_another_form_is_refused(name):
    with pytest.raises(Invalid) as refusal:
        settings(name=name)
    assert refusal.value.field == "name"


@pytest.mark.parametrize(
    "name", ["\u200b", "\u2060\u00ad", "\u3164", " \u115f ", "\ufe0f", "\u180b", "\U000e0041", "\u200d"]
)
def test_a_name_that_shows_nothing_is_refused(name):
    with pytest.raises(Invalid, match="must hold a visible character") as refusal:
        settings(name=name)
    assert refusal.value.field == "name"
    assert settings(name=f"{name}a").name == f"{name}a".strip()


@pytest.mark.parametrize("field", ["period_seconds", "grace_seconds"])
@pytest.mark.parametrize("value", [True, False, 60.0, "60", 1e3, None, -1, YEAR + 1, 10**30, -(10**30), float("inf")])
def test_only_integers_within_bounds_are_taken(field, value):
    with pytest.raises(Invalid) as refusal:
        settings(**{field: value})
    assert (refusal.value.status, refusal.value.field) == (400, field)


def test_the_bounds_themselves_are_taken():
    assert settings(period_seconds=1, grace_seconds=0).period_seconds == 1
    assert settings(period_seconds=YEAR, grace_seconds=YEAR).grace_seconds == YEAR
    with pytest.raises(Invalid):
        settings(period_seconds=0)


def test_the_tier_gives_the_least_period():
    assert validated(GOOD | {"period_seconds": 300}, 300, refuse_ftp).period_seconds == 300
    with pytest.raises(Invalid, match="from 300 to"):
        validated(GOOD | {"period_seconds": 299}, 300, refuse_ftp)


@pytest.mark.parametrize("field", ["name", "period_seconds", "grace_seconds"])
def test_a_missing_field_is_named(field):
    with pytest.raises(Invalid) as refusal:
        validated({name: value for name, value in GOOD.items() if name != field}, 1, refuse_ftp)
    assert (refusal.value.code, refusal.value.field) == ("missing_field", field)


def test_a_webhook_url_may_be_absent_or_null():
    assert settings(webhook_url=None).webhook_url is None
    assert validated({name: GOOD[name] for name in list(GOOD)[:3]}, 1, refuse_ftp).webhook_url is None


@pytest.mark.parametrize("url", ["ftp://x.example/", 5, True, ["https://x.example/"]])
def test_a_refused_webhook_url_is_named(url):
    with pytest.raises(Invalid) as refusal:
        settings(webhook_url=url)
    assert refusal.value.field == "webhook_url"


def test_a_check_is_shown_with_all_its_members_in_order():
    check = Check(1, "id", "key", "n", 60, 5, None, "on_time", 0, 0, 65, None, 0, 0, 0, 1)
    assert list(check.as_json("https://b.example").items()) == [
        ("id", "id"),
        ("api_key_id", "key"),
        ("name", "n"),
        ("period_seconds", 60),
        ("grace_seconds", 5),
        ("webhook_url", None),
        ("status", "on_time"),
        ("last_ping_at", None),
        ("deadline_at", "1970-01-01 00:01:05"),
        ("ping_count", 0),
        ("created_at", "1970-01-01 00:00:00"),
        ("updated_at", "1970-01-01 00:00:00"),
        ("version", 1),
        ("ping_url", "https://b.example/ping/id"),
        ("delivery", None),
        ("failed_at", None),
        ("snoozed_until", None),
        ("repeat_seconds", None),
    ]
