"""The options of `serve`: one table for flags, variables, `--help` and the documentation."""

import re

import pytest

from cardbeat import cli
from cardbeat.commands import serve
from cardbeat.commands.options import SERVE_OPTIONS
from cardbeat.commands.serve import config_of
from cardbeat.config import Config
from cardbeat.errors import StartupError
from tests.kit.documentation import DOCS
from tests.kit.lists import each

RIGHT = {
    "--host": {"::1": "::1"},
    "--port": {"9000": 9000, "00000000000000080": 80, "0": 0},
    "--base-url": {
        "https://cards.example/x/": "https://cards.example/x",
        "http://[::1]:80": "http://[::1]:80",
    },
    "--sweep-seconds": {"60": 60, "0.5": 0.5},
    "--registration": {"closed": False, "open": True},
    "--store-mb": {"1": 2**20},
    "--report-to": {
        "http://host/me@example.org": "http://host/me@example.org"
    },
    "--webhook-proxy": {
        "http://me:s%40fe@proxy:3128": "http://me:s%40fe@proxy:3128"
    },
    "--trusted-proxy": {"10.0.0.1, fd00::/8": "10.0.0.1/32 fd00::/8"},
}
MEMBERS = {
    "registration": "registration_open",
    "store_mb": "store_bytes",
    "trusted_proxy": "trusted_proxies",
}
WRONG = {
    "--port": [
        "65536",
        "-1",
        "8O",
        "٨",
        "9" * 5000,
        "8080\n",
        "8_080",
        "",
    ],
    "--host": ["", "a b", "ä"],
    "--sweep-seconds": ["0", "nan", "3600.1"],
    "--register-per-minute": ["0", "199999999"],
    "--registration": ["maybe"],
    "--base-url": [
        "cards.example",
        "https://cards.example/?a",
        "http://user:s3cret@host/",
        "https://cards.example:65536",
    ],
    "--report-to": [
        "ftp://example.com/",
        "http://exa mple/",
        "http://s3cret@host/",
        "http://example.com:0/",
    ],
    "--webhook-proxy": [
        "",
        "https://me:s3cret@proxy/",
        "http://me:s3cret@proxy/x",
        "http://me:s3cret@proxy:65536",
    ],
    "--trusted-proxy": ["10.0.0.1/8", "", "s3cret"],
    "--tiers": ["", "-", "postgresql://me:s3cret@host/"],
    "--accent": ["", "red", "#2563eb\n", "#２563eb"],
    "--time-zone": ["Mars/s3cret", ""],
    "--por": ["1"],
}


def config(*argv):
    return config_of(serve.parser().read(argv))


def value(name, *argv):
    found = getattr(config(*argv), MEMBERS.get(name, name))
    return (
        " ".join(map(str, found)) if isinstance(found, tuple) else found
    )


@pytest.fixture(autouse=True)
def _no_variables(run):
    """Those of this process are gone."""


def test_without_options_all_is_as_usual():
    assert config() == Config()


@pytest.mark.parametrize("flag", RIGHT)
def test_an_option_is_a_flag_or_a_variable_and_the_flag_wins(
    flag, monkeypatch
):
    name = flag[2:].replace("-", "_")
    variable = f"CARDBEAT_{name.upper()}"
    for text, expected in RIGHT[flag].items():
        monkeypatch.setenv(variable, text)
        assert value(name) == expected
        monkeypatch.setenv(variable, "\x1b")
        assert value(name, flag, text) == expected
    with pytest.raises(StartupError, match=f"{variable}: must "):
        config()


def test_a_switch_is_a_flag_or_a_variable_and_a_list_may_be_repeated(
    monkeypatch,
):
    assert config("--allow-private-webhooks").allow_private_webhooks
    for text, expected in (
        ("yes", True),
        ("1", True),
        ("Off", False),
        ("0", False),
    ):
        monkeypatch.setenv("CARDBEAT_QUIET_HEALTH", text)
        assert config().quiet_health is expected
    proxies = ("--trusted-proxy", "::1", "--trusted-proxy", "10.1.1.1")
    assert value("trusted_proxy", *proxies) == "::1/128 10.1.1.1/32"


@pytest.mark.parametrize("flag", WRONG)
def test_an_option_out_of_range_is_one_line_that_names_it_and_not_its_value(
    flag,
):
    for text in WRONG[flag]:
        with pytest.raises(StartupError) as caught:
            config(flag, text)
        told = str(caught.value)
        assert flag in told
        assert "\n" not in told
        assert "s3cret" not in told


def test_a_port_that_kubernetes_sets_is_ignored(monkeypatch):
    monkeypatch.setenv("CARDBEAT_PORT", "tcp://10.96.7.1:8080")
    assert config().port == 8080
    assert config("--port", "9000").port == 9000


GOOD_URLS = [
    "postgresql://me:s3%40cret@one,two:5433/db?target_session_attrs=read-write",
    "postgresql://[fe80::1%25eth0]:5433,%2Frun/db?options=-c%20a[b",
]
BAD_URLS = [
    *(
        "s3cret",
        "mysql://me:s3cret@host/db",
        "postgresql://[s3cret/db",
        "postgresql://me:s3cret/db",
    ),
    *(f"postgresql://me:s3{sign}cret@host/db" for sign in "/@:#?% "),
]


def test_a_database_is_named_by_a_variable_alone_and_no_refusal_shows_a_password(
    monkeypatch,
):
    for url in GOOD_URLS:
        monkeypatch.setenv("CARDBEAT_DATABASE", f"{url}\n")
        assert config().database == url
        assert "cret" not in repr(config())
    with pytest.raises(
        StartupError, match="unrecognized arguments: --database"
    ):
        config("--database", GOOD_URLS[0])
    for url in BAD_URLS:
        monkeypatch.setenv("CARDBEAT_DATABASE", url)
        with pytest.raises(
            StartupError, match="CARDBEAT_DATABASE: must be a URL such as"
        ) as refused:
            config()
        assert "cret" not in str(refused.value)


@pytest.fixture
def help_of(capsys):
    def told(*command):
        with pytest.raises(SystemExit):
            cli.main([*command, "--help"])
        return capsys.readouterr().out

    return told


WORDS = {
    "http://HOST:PORT",
    "free and unlimited",
    "off",
    "none",
    "as designed",
    "UTC",
}
"""Defaults that are no values of their options."""
ACTIONS = [
    "checks apply",
    "checks test",
    "checks snooze",
    "keys create",
    "keys tier",
]


@pytest.mark.parametrize("command", [*cli.COMMANDS, *ACTIONS])
def test_help_fits_two_screens(help_of, command):
    lines = help_of(*command.split()).splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80


def test_help_shows_every_option_with_its_default_and_the_documentation_shows_it(
    help_of,
):
    told = help_of("serve")
    assert f"```text\n{told.strip()}\n```" in DOCS["options"]
    assert all(
        command in told
        for command in [*cli.COMMANDS, "CARDBEAT_DATABASE"]
    )
    starts = {
        line.split()[0]: line
        for line in told.splitlines()
        if line.startswith("  --")
    }
    assert [*starts] == each(SERVE_OPTIONS, "flag")
    for flag, line in starts.items():
        usual = re.search(r" \[(\S.*)\]$", line)[1]
        if usual not in WORDS:
            assert config(flag, usual) == Config()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ("card --titel=secret --title a --output b.png", "--titel"),
        ("keys list --email secret", "--email"),
        ("import x --key a secret@x", "are quotes missing?"),
    ],
)
def test_an_option_that_is_not_known_is_told_without_its_value(
    run, argv, told
):
    wanted = f"unrecognized arguments: {told} (see --help)"
    assert run(*argv.split()).refused() == wanted


def test_an_unknown_command_is_one_line_and_status_2(run):
    assert "the commands are serve, card, " in run("srve").refused()
