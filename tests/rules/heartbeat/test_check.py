import pytest

from cardbeat.errors import Invalid
from cardbeat.heartbeat.check import Settings, validated
from tests.kit.lists import each, numbered

GOOD = {
    "name": "nightly backup",
    "period_seconds": 86_400,
    "grace_seconds": 600,
    "webhook_url": None,
}
YEAR = 31_536_000


def refuse_ftp(url):
    return (
        "The field webhook_url must be http or https."
        if url.startswith("ftp")
        else None
    )


def settings(**values):
    return validated(GOOD | values, 1, refuse_ftp)


def test_the_fields_come_out_as_they_went_in_and_two_may_be_absent():
    url = "https://x.example/"
    assert settings(webhook_url=url, repeat_seconds=300) == Settings(
        "nightly backup", 86_400, 600, url, 300
    )
    required = {name: GOOD[name] for name in list(GOOD)[:3]}
    assert (
        validated(required, 1, refuse_ftp)
        == settings()
        == Settings("nightly backup", 86_400, 600, None, None)
    )


SAME = [
    *(
        "0",
        "x" * 100,
        "夜間 💾 👩‍👩‍👧",
        "\u05d2\u05d9 3",
        "\u0646\u0647\u200c\u0628",
    ),
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
]
BAD = [
    *(
        "",
        "   ",
        "x" * 101,
        "a\nb",
        "a\x00b",
        "a\x7fb",
        "a\u0085b",
        "a\u2028b",
        "\x1b[31m",
        "a\u202eb",
    ),
    *("\u2066a", "\u05d0\u200f", "a\u061c", "x\udcff", 5, None),
]
UNSEEN = [
    "\u200b",
    "\u2060\u00ad",
    "\u3164",
    " \u115f ",
    "\ufe0f",
    "\u180b",
    "\U000e0041",
    "\u200d",
]


@pytest.mark.parametrize("name", SAME)
def test_a_name_is_trimmed(name):
    for given in (name, f"  {name}\n"):
        assert settings(name=given).name == name


@pytest.mark.parametrize("name", BAD + UNSEEN)
def test_a_name_of_another_form_or_that_shows_nothing_is_refused(name):
    with pytest.raises(Invalid) as refusal:
        settings(name=name)
    assert refusal.value.field == "name"
    assert (
        name not in UNSEEN
        or "must hold a visible character" in refusal.value.sentence
    )


@pytest.mark.parametrize("field", ["period_seconds", "grace_seconds"])
@pytest.mark.parametrize(
    "value", [True, 60.0, "60", None, -1, YEAR + 1, 10**30, float("inf")]
)
def test_only_integers_within_bounds_are_taken(field, value):
    with pytest.raises(Invalid) as refusal:
        settings(**{field: value})
    assert refusal.value.status == 400
    assert refusal.value.field == field


def test_the_tier_gives_the_least_period():
    for least in (1, 300):
        assert validated(
            GOOD | {"period_seconds": least, "grace_seconds": 0},
            least,
            refuse_ftp,
        )
        with pytest.raises(Invalid, match=f"from {least} to"):
            validated(
                GOOD | {"period_seconds": least - 1}, least, refuse_ftp
            )


@pytest.mark.parametrize(
    ("values", "code", "fields"),
    [
        (
            {"name": "a"},
            "missing_field",
            ["period_seconds", "grace_seconds"],
        ),
        (
            GOOD | {"name": "", "repeat_seconds": 299},
            "invalid_field",
            ["name", "repeat_seconds"],
        ),
        (
            GOOD
            | {"webhook_url": "ftp://x", "repeat_seconds": 2_592_001},
            "invalid_field",
            ["webhook_url", "repeat_seconds"],
        ),
        (
            {"name": "a", "webhook_url": []},
            "invalid_field",
            ["period_seconds", "grace_seconds", "webhook_url"],
        ),
        (
            GOOD | {"grace_seconds": "60", "url": ""},
            "invalid_field",
            ["grace_seconds", "url"],
        ),
        (
            GOOD | {f"x{number}": 1 for number in range(9999)},
            "unknown_field",
            numbered("x{}", 10),
        ),
    ],
)
def test_all_wrong_fields_are_named_each_with_what_to_do(
    values, code, fields
):
    with pytest.raises(Invalid) as refusal:
        validated(values, 1, refuse_ftp)
    body = refusal.value.body()
    assert sorted(body) == ["code", "error", "fields"]
    assert body["code"] == code
    assert each(body["fields"], "field") == fields
    assert body["error"].startswith(f"{len(fields)} fields are wrong")
    for one in body["fields"]:
        assert one["field"] in one["error"]
