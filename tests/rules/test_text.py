"""Invisible characters, and what a message repeats of a URL that was refused."""

import unicodedata

import pytest

from cardbeat import cli
from cardbeat.text import (
    first_control_of_direction,
    first_seen,
    seen,
    without_urls,
)

ALL = [*map(chr, range(0x33480)), *map(chr, range(0xE0000, 0xE1000))]
"""Every character that Unicode gives a meaning."""


def test_every_character_that_controls_direction_is_found():
    controlling = {
        "LRE",
        "RLE",
        "LRO",
        "RLO",
        "PDF",
        "LRI",
        "RLI",
        "FSI",
        "PDI",
    }
    expected = [
        one
        for one in ALL
        if unicodedata.bidirectional(one) in controlling
    ]
    expected += ["\u200e", "\u200f", "\u061c"]
    found = [one for one in ALL if first_control_of_direction(f"a{one}b")]
    assert sorted(found) == sorted(expected)


def test_spaces_controls_formats_fillers_and_selectors_show_nothing():
    categories = ("Zs", "Zl", "Zp", "Cc", "Cf")
    unseen = [
        one for one in ALL if unicodedata.category(one) in categories
    ]
    for character in ALL:
        name = unicodedata.name(character, "")
        if "VARIATION SELECTOR" in name or (
            "HANGUL" in name and "FILLER" in name
        ):
            unseen.append(character)
    assert not [one for one in unseen if first_seen(one)]


def test_letters_digits_marks_signs_and_private_characters_are_seen():
    for text in (
        "a",
        "\u05d0",
        "7",
        "\u0301",
        "\u4e2d",
        "\U0001f600",
        "\ue000",
        "-",
        "\u200dx",
    ):
        assert first_seen(text)
    assert seen("a\u200b \u3164b\ufe0f") == ["a", "b"]


PLAIN = r"""
http://127.0.0.1:8080
C:/data/a:b@c
C:\data\a:b@c
me@example.com
8O
""".split()
SHOWN = {one: one for one in PLAIN} | {
    "https://cards.example/a/b": "https://cards.example/...",
    "https://[::1]:8080/a": "https://[::1]:8080/...",
    "https://me@cards.example/a": "...",
    "postgresql://host/db": "...",
    "host=a password=b": "...",
    "": "",
}


@pytest.mark.parametrize(("value", "shown"), SHOWN.items())
def test_the_scheme_and_the_host_of_a_plain_url_stay_and_all_that_is_no_url(
    value, shown
):
    told = without_urls(f"not {value!r}; see {value} (--help)", [value])
    assert told == f"not {shown!r}; see {shown} (--help)"


SECRETS = """
postgresql://s3cret@host/db
postgresql://me@host/db?%70assword=s3cret
postgresql:/me:s3cret@host/db
postgresql//me:s3cret@host/db
 postgresql://me:s3cret@host/db
postgresql://[s3cret
http://me:s3cret@host:80/
https://host/x?token=s3cret
//me:s3cret@host/
"""
SECRETS = [
    *SECRETS[1:-1].split("\n"),
    "postgresql://me:a\ns3cret@host/db",
]
COMMANDS = """{}
--databas={}
--host {}
--port={}
--tiers {}
--trusted-proxy {}
--base-url {}
doctor {}
backup copy.db {}
restore {}
keys tier key_1 {}
checks list --url {}
checks apply {}
card --title a --output a.png --template {}""".splitlines()
VARIABLES = "DATABASE HOST PORT TIERS SWEEP_SECONDS TRUSTED_PROXY BASE_URL".split()


@pytest.mark.parametrize("variable", [None, *VARIABLES])
@pytest.mark.parametrize("url", SECRETS)
def test_no_message_repeats_a_password(
    capsys, tmp_path, monkeypatch, url, variable
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARDBEAT_KEY", "sk_a")
    if (variable, url.strip().partition("://")[0]) == (
        "DATABASE",
        "postgresql",
    ):
        return
    if variable:
        monkeypatch.setenv(f"CARDBEAT_{variable}", url)
    for command in [""] if variable else COMMANDS:
        assert (
            cli.main(
                [word.replace("{}", url) for word in command.split()]
            )
            == 2
        ), command
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n"), "cret" in told.err) == (
            "",
            1,
            False,
        ), command
    assert list(tmp_path.iterdir()) == []
