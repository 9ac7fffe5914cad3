"""The file of `checks apply`: what it says, and what is refused."""

import pytest

from cardbeat.client.apply import load
from cardbeat.errors import StartupError

REST = "period_seconds = 60\ngrace_seconds = 0\n"


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "c.toml"
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        return path

    return write


def test_a_file_gives_the_fields_of_each_check_that_it_names(
    file, monkeypatch
):
    monkeypatch.setenv("CHAT", " https://chat.example/SECRET\n")
    checks, renamed = load(
        file(f"""
            [defaults]\n{REST}webhook_url = "$NONE"\nrepeat_seconds = "4h"
            [[check]]\nname = " db1: backup "\nwebhook_url = "$CHAT"\nwas = " old "
            [[check]]\nname = "$CHAT"\nwebhook_url = "https://b.example"\ngrace_seconds = 5
            [[check]]\nname = "quiet"\nwebhook_url = ""\nrepeat_seconds = ""
        """)
    )
    chat, other = "https://chat.example/SECRET", "https://b.example"
    assert [tuple(check.values()) for check in checks.values()] == [
        ("db1: backup", 60, 0, chat, 14400),
        ("$CHAT", 60, 5, other, 14400),
        ("quiet", 60, 0, None, None),
    ]
    assert renamed == {"db1: backup": "old"}
    only = load(file("[[check]]\nname = 'a'\n" + REST))[0]["a"]
    assert only.keys() == {"name", "period_seconds", "grace_seconds"}


DURATIONS = {"1d": 86400, "1h30m": 5400, "1w2d3h4m5s": 788645, "90s": 90}


@pytest.mark.parametrize("text", DURATIONS)
def test_a_duration_is_seconds(file, text):
    content = f"[[check]]\nname = 'a'\nperiod_seconds = '{text}'\ngrace_seconds = '1m'"
    assert (
        load(file(content))[0]["a"]["period_seconds"] == DURATIONS[text]
    )


NO_DURATIONS = [
    "",
    "60",
    "1.5h",
    "30m1h",
    "1 d",
    "-1d",
    "1D",
    "d",
    "1d\\n",
    "٣d",
    "9" * 5000,
]


@pytest.mark.parametrize("text", [*NO_DURATIONS, "366d", "0s"])
def test_other_texts_are_no_durations(file, text):
    content = f'[[check]]\nname = "a"\nperiod_seconds = "{text}"\ngrace_seconds = 0'
    with pytest.raises(
        StartupError, match="check 1: The field period_seconds must be "
    ):
        load(file(content))


ONE = f"[[check]]\nname='a'\n{REST}"
NO_TABLES = [
    "checks = []",
    "[check]\nname = 'a'",
    "check = [1]",
    f"defaults = 1\n{ONE}",
]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        *(
            (
                f"{wrong}\n",
                "there must be tables [[check]] and [defaults]",
            )
            for wrong in NO_TABLES
        ),
        (
            f"{ONE}period = 1",
            'check 1: There is no field "period" here; the fields are: name, ',
        ),
        (
            "[[check]]\nname = 'a'\nperiod_seconds = 60",
            "check 1: The field grace_seconds is required",
        ),
        (
            f"{ONE}repeat_seconds = true",
            "check 1: The field repeat_seconds must be",
        ),
        (f"[[check]]\nname = ' '\n{REST}", "check 1: The field name"),
        (
            "[[check]]\nperiod_seconds = 60",
            "name is required and can't be null. The field grace",
        ),
        (ONE * 2, "'a' is already the name of a check"),
        ("[[check]", "is not valid TOML"),
        (b"\xff", "is not valid TOML"),
        ("a = " + "[" * 100_000, "is not valid TOML"),
        (f"{ONE}webhook_url='ftp://x'", "check 1: Give an absolute URL"),
        (
            f"{ONE}webhook_url='$CARDBEAT_TEST_NONE'",
            "has no variable CARDBEAT_TEST_NONE for",
        ),
        (f"{ONE}was=' '", "check 1: The field was must be the old name"),
        (f"{ONE}was=1", "check 1: The field was must be the old name"),
        (f"{ONE}was='a'", "'a' is already the name of a check"),
        (
            f"{ONE}was='c'\n[[check]]\nname='b'\n{REST}was='c '",
            "'c' is already the name of a check",
        ),
    ],
)
def test_a_file_that_says_something_else_is_refused_in_one_line(
    file, content, says
):
    path = file(content)
    with pytest.raises(StartupError) as refused:
        load(path)
    assert says in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_a_refused_webhook_is_not_shown(file, monkeypatch):
    monkeypatch.setenv("CHAT", "ftp://me:SECRET@chat.example/SECRET")
    with pytest.raises(StartupError) as refused:
        load(file(f"{ONE}webhook_url = '$CHAT'"))
    assert "SECRET" not in str(refused.value)
