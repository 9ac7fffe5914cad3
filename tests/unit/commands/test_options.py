import contextlib
import io
from pathlib import Path

import pytest

from cardbeat import cli
from cardbeat.commands import serve
from cardbeat.commands.options import SERVE_OPTIONS, values_of
from cardbeat.commands.serve import config_from
from cardbeat.errors import StartupError


def values(*argv):
    return values_of(SERVE_OPTIONS, serve.parser().parse_args(argv))


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for option in SERVE_OPTIONS:
        monkeypatch.delenv(option.variable, raising=False)


def test_the_defaults():
    config = config_from(values())
    assert (config.host, config.port, str(config.data)) == ("127.0.0.1", 8080, "cardbeat-data")
    assert (config.sweep_seconds, config.register_per_minute) == (60, 30)
    assert config.registration_open
    assert config.store_bytes == 1024 * 1024 * 1024
    assert not config.allow_private_webhooks
    assert (config.base_url, config.report_to, config.trusted_proxies) == (None, None, ())


def test_a_flag_wins_over_its_variable_and_that_over_the_default(monkeypatch):
    monkeypatch.setenv("CARDBEAT_PORT", "9000")
    monkeypatch.setenv("CARDBEAT_ALLOW_PRIVATE_WEBHOOKS", "yes")
    monkeypatch.setenv("CARDBEAT_TRUSTED_PROXY", "10.0.0.1, 192.168.0.0/16")
    assert values()["port"] == 9000
    assert values("--port", "9001")["port"] == 9001
    assert values()["allow_private_webhooks"] is True
    assert [str(n) for n in values()["trusted_proxy"]] == ["10.0.0.1/32", "192.168.0.0/16"]
    assert [str(n) for n in values("--trusted-proxy", "::1", "--trusted-proxy", "10.1.1.1")["trusted_proxy"]] == [
        "::1/128",
        "10.1.1.1/32",
    ]


@pytest.mark.parametrize(
    "argv",
    [
        ["--port", "65536"],
        ["--port", "-1"],
        ["--port", "8O"],
        ["--port", "٨"],
        ["--port", "00000000000099999"],
        ["--port", "9" * 5000],
        ["--port", "8080\n"],
        ["--port", "8_080"],
        ["--port", ""],
        ["--host", ""],
        ["--sweep-seconds", "0"],
        ["--sweep-seconds", "nan"],
        ["--sweep-seconds", "inf"],
        ["--sweep-seconds", "1_0"],
        ["--sweep-seconds", "٦٠"],
        ["--sweep-seconds", " 60 "],
        ["--sweep-seconds", "00000000000099999"],
        ["--sweep-seconds", "9" * 5000],
        ["--register-per-minute", "00000000000199999999"],
        ["--store-mb", "00000000000199999999"],
        ["--registration", "maybe"],
        ["--register-per-minute", "0"],
        ["--store-mb", "0"],
        ["--store-mb", "1.5"],
        ["--base-url", "cards.example"],
        ["--base-url", "https://cards.example/?a"],
        ["--report-to", "ftp://example.com/"],
        ["--report-to", "http://"],
        ["--report-to", "http://exa mple/"],
        ["--report-to", "http://user:s3cret@host/"],
        ["--report-to", "http://user@host/"],
        ["--trusted-proxy", "10.0.0.1/8"],
        ["--tiers", ""],
        *(["--accent", it] for it in ("", "red", "2563eb", "#25", "#2563eg", "#2563eb0", "#2563eb\n", "#２563eb")),
        ["--unknown"],
        ["--por", "1"],
    ],
)
def test_an_option_out_of_range_is_one_line_that_names_it(argv):
    with pytest.raises(StartupError) as caught:
        values(*argv)
    assert argv[0] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_accent_is_a_flag_or_a_variable(monkeypatch):
    assert config_from(values()).accent is None
    monkeypatch.setenv("CARDBEAT_ACCENT", "#2563EB")
    assert values()["accent"] == "#2563eb"
    assert values("--accent", "#16a34a")["accent"] == "#16a34a"
    monkeypatch.setenv("CARDBEAT_ACCENT", "blue")
    with pytest.raises(StartupError, match="CARDBEAT_ACCENT: must be a colour such as '#2563eb', not 'blue'"):
        values()


def test_numbers_may_have_zeros_before_them_and_seconds_a_fraction():
    assert values("--port", "00000000000000080")["port"] == 80
    for text, expected in (("60", 60), ("0.5", 0.5), (".5", 0.5), ("0060", 60)):
        assert values("--sweep-seconds", text)["sweep_seconds"] == expected


def test_a_variable_out_of_range_is_named(monkeypatch):
    monkeypatch.setenv("CARDBEAT_PORT", "x")
    with pytest.raises(StartupError, match="CARDBEAT_PORT"):
        values()


def test_no_message_shows_the_password_of_a_url():
    for option in ("--report-to", "--base-url"):
        with pytest.raises(StartupError, match="must have no user name and no password") as caught:
            values(option, "http://user:s3cret@host/")
        assert "s3cret" not in str(caught.value)
    assert values("--report-to", "http://host/me@example.org")["report_to"] == "http://host/me@example.org"


def test_a_proxy_may_be_named_by_addresses_that_are_mapped_into_ipv6():
    """As some systems show them."""
    networks = values("--trusted-proxy", "::ffff:10.0.0.0/104,::ffff:192.0.2.1,fd00::/8,::/0")["trusted_proxy"]
    assert list(map(str, networks)) == ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8", "::/0"]


def test_a_base_url_loses_its_last_slash():
    assert values("--base-url", "https://cards.example/x/")["base_url"] == "https://cards.example/x"


def help_lines(*command):
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
        cli.main([*command, "--help"])
    return out.getvalue().splitlines()


def test_help_fits_a_screen_and_shows_every_option_with_its_default():
    lines = help_lines()
    assert len(lines) <= 24
    for option in SERVE_OPTIONS:
        (line,) = [line for line in lines if f"{line.strip()} ".startswith(f"{option.flag} ")]
        assert f"[{option.shown or option.default}]" in line
    assert all(command in "\n".join(lines) for command in cli.COMMANDS)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_no_line_of_help_is_wider_than_a_screen(command):
    assert max(map(len, help_lines(command))) <= 80


def test_the_help_of_an_action_shows_only_what_it_takes():
    lines = help_lines("checks", "test")
    assert lines[0] == "usage: cardbeat checks test NAME [options]"
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["NAME", "-h,", "--wait", "--json", "--url"]


@pytest.mark.parametrize(
    ("argv", "near"),
    [
        (["--prot", "80"], "--prot; did you mean --port? (see --help)"),
        (
            ["card", "--titel=secret", "--title", "a", "--output", "b.png"],
            "--titel; did you mean --title? (see --help)",
        ),
        (["--qqq"], "--qqq (see --help)"),
    ],
)
def test_an_option_with_a_slip_is_told_the_nearest(capsys, argv, near):
    assert cli.main(argv) == 2
    assert capsys.readouterr().err == f"cardbeat: unrecognized arguments: {near}\n"


def test_an_unknown_command_is_one_line_and_status_2(capsys):
    assert cli.main(["srve"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@host/db", "postgresql://me@host/db?%70assword=s3cret"])
@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--databas"],
        ["--data"],
        ["--tiers"],
        ["--base-url"],
        ["--report-to"],
        ["backup", "copy.db"],
        ["backup"],
        ["restore"],
        ["keys"],
        ["checks", "list", "--url"],
    ],
)
def test_a_databases_password_is_not_shown_where_its_url_does_not_belong(capsys, tmp_path, monkeypatch, argv, url):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*argv, url]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("cardbeat: ")
    assert "cret" not in told.err + told.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("variable", ["BASE_URL", "REPORT_TO", "DATA", "TIERS", "PORT", "TRUSTED_PROXY"])
def test_nor_is_it_where_a_variable_holds_it(capsys, tmp_path, monkeypatch, variable):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"CARDBEAT_{variable}", "postgresql://me:s3cret@host/db")
    assert cli.main(["serve"]) == 2
    assert "cret" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no file without an end here")
def test_a_file_without_an_end_is_no_database_s_url(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["serve", "--database", "/dev/zero"]) == 2
    assert "must be a URL" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


GOOD_URL = "postgresql://me:s3%40cret@one,two:5433/db?target_session_attrs=read-write"


def test_a_database_is_named_by_a_variable_by_a_file_or_without_a_password_by_the_flag(monkeypatch, tmp_path):
    file = tmp_path / "url"
    file.write_text(GOOD_URL + "\n")
    assert values()["database"] is None
    assert values("--database", str(file))["database"] == GOOD_URL
    for url in (
        "postgresql://me@[::1]/db",
        "postgresql://[fe80::1%25eth0]:5433,%2Frun/db?options=-c%20a[b",
        "postgres://",
    ):
        assert values("--database", url)["database"] == url
    for text in (GOOD_URL, str(file)):
        monkeypatch.setenv("CARDBEAT_DATABASE", text)
        assert values()["database"] == GOOD_URL
        assert "cret" not in repr(config_from(values()))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host/db",
        "postgresql://host/db?user=me&password=s3cret",
        "postgresql://me@host/db?%70assword=s3cret",
        "postgresql://me@host/db?port=1&sslp%41ssw%6Frd=s3cret",
        "mysql://me:s3cret@host/db",
        "postgresql://me:s3/cret@host/db",
        "postgresql://me:s3@cret@host/db",
        "postgresql://me:s3:cret@host/db",
        "postgresql://me:s3#cret@host/db",
        "postgresql://me:s3?cret@host/db",
        "postgresql://me:s3%zzcret@host/db",
        "postgresql://me:s3 cret@host/db",
        "postgresql://me:s3\tcret@host/db",
        "postgresql://me:s3%00cret@host/db",
        "postgresql://[s3cret/db",
        "postgresql://me:s3cret/db",
        "postgresql://[::1]:s3cret/db",
        "postgresql://127.0.0.1:s3cret/db",
        "postgresql://me:[s3cret",
        "postgresql://one,[s3cret/db",
        "s3cret",
        "s3cret\0",
    ],
)
def test_no_refusal_of_a_database_shows_a_password_nor_is_one_taken_where_others_read_it(monkeypatch, url):
    with pytest.raises(StartupError, match=r"--database.* must ") as by_flag:
        values("--database", url)
    assert "cret" not in str(by_flag.value)
    if "=" not in url and "me:s3cret@" not in url and "\0" not in url:
        monkeypatch.setenv("CARDBEAT_DATABASE", url)
        with pytest.raises(StartupError, match=r"CARDBEAT_DATABASE.* must ") as by_variable:
            values()
        assert "cret" not in str(by_variable.value)
