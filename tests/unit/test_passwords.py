"""What a message repeats of a URL that was refused: at most its scheme and host."""

import pytest

from cardbeat import cli
from cardbeat.passwords import without_urls

SECRETS = [
    "postgresql://s3cret@host/db",
    "postgresql://me:s3cret@host/db",
    "postgresql://me@host/db?sslmode=s3cret",
    "postgresql://me@host/db?%70assword=s3cret",
    "postgresql://me:%733cret@host/db",
    "POSTGRESQL://me:s3cret@host/db",
    "postgres://me:a/b@c:s3cret@host/db",
    "postgresql:/me:s3cret@host/db",
    "postgresql:me:s3cret@host/db",
    "postgresql//me:s3cret@host/db",
    "postgresql:///me:s3cret@host//db/./x",
    "jdbc:postgresql://me:s3cret@host/db",
    " postgresql://me:s3cret@host/db",
    "postgresql://me:a s3cret@host/db",
    "postgresql://me:a\ns3cret@host/db",
    "postgresql://me:a's3cret@host/db",
    "postgresql://me:a\"'s3cret@host/db",
    "postgresql://[s3cret",
    "postgresql://host:s3cret/db",
    "http://me:s3cret@host:80/",
    "http://s3cret@host",
    "https://host:s3cret/x",
    "https://host/x?token=s3cret",
    "https://host/s3cret?",
    "https:/host/s3cret?",
    "https//me:s3cret@host/",
    "//me:s3cret@host/",
    "mysql://me:s3cret@host/db",
]
COMMANDS = [
    ("{}",),
    ("serve", "{}"),
    ("--databas", "{}"),
    ("--databas={}",),
    ("--database", "{}"),
    ("--database={}",),
    ("--host", "{}"),
    ("--port", "{}"),
    ("--port={}",),
    ("--data", "{}", "--port", "x"),
    ("--tiers", "{}"),
    ("--sweep-seconds", "{}"),
    ("--registration", "{}"),
    ("--store-mb", "{}"),
    ("--trusted-proxy", "{}"),
    ("--base-url", "{}"),
    ("--quiet-health={}",),
    ("doctor", "--data", "{}"),
    ("doctor", "--tiers", "{}"),
    ("doctor", "{}"),
    ("backup", "{}"),
    ("backup", "copy.db", "{}"),
    ("backup", "copy.db", "--data", "{}"),
    ("restore", "{}"),
    ("restore", "{}", "{}"),
    ("keys", "{}"),
    ("keys", "list", "{}"),
    ("keys", "revoke", "{}"),
    ("keys", "create", "--tier", "{}"),
    ("keys", "tier", "key_1", "{}"),
    ("checks", "{}"),
    ("checks", "list", "{}"),
    ("checks", "list", "--url", "{}"),
    ("checks", "apply", "{}"),
    ("card", "--title", "a", "--output", "{}"),
    ("card", "--title", "a", "--output", "a.png", "--template", "{}"),
    ("card", "--title", "a", "--output", "a.png", "{}"),
    ("completion", "{}"),
]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARDBEAT_KEY", "sk_a")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_repeats_more_than_the_scheme_and_the_host(capsys, tmp_path, command):
    for url in SECRETS:
        assert cli.main([word.format(url) for word in command]) == 2, url
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("cardbeat: ")
        assert told.err.count("\n") == 1
        assert "cret" not in told.err, url
        assert "token" not in told.err
    # The command `serve` makes it before it connects to a database.
    assert {path.name for path in tmp_path.iterdir()} <= {"cardbeat-data"}


VARIABLES = ["DATABASE", "HOST", "PORT", "DATA", "TIERS", "SWEEP_SECONDS", "STORE_MB", "TRUSTED_PROXY", "BASE_URL"]


@pytest.mark.parametrize("variable", [*VARIABLES, "URL", "REGISTRATION", "QUIET_HEALTH", "ALLOW_PRIVATE_WEBHOOKS"])
def test_nor_does_one_that_reads_it_from_a_variable(capsys, tmp_path, monkeypatch, variable):
    for url in SECRETS:
        monkeypatch.setenv(f"CARDBEAT_{variable}", url)
        for command in [("checks", "list")] if variable == "URL" else [("serve",)]:
            if (variable, url.split(":")[0]) == ("DATABASE", "postgresql"):
                # A good one is not refused.
                continue
            assert cli.main(command) == 2, url
            told = capsys.readouterr()
            assert (told.out, told.err.count("\n")) == ("", 1)
            assert "cret" not in told.err, url
            assert "token" not in told.err
    assert list(tmp_path.iterdir()) == []


def test_what_names_a_database_without_being_a_url_is_not_repeated(capsys, monkeypatch):
    given = "host=db user=me password=s3cret"
    monkeypatch.setenv("CARDBEAT_URL", given)
    monkeypatch.setenv("CARDBEAT_BASE_URL", given)
    for argv in (["checks", "list"], ["serve"], ["keys", given], ["--port", given], ["doctor", given]):
        assert cli.main(argv) == 2
        assert "cret" not in capsys.readouterr().err


def test_a_url_with_a_space_that_was_not_quoted_is_not_repeated_either(capsys):
    for argv in (["--database", "postgresql://me:a", "b", "s3cret@host/db"], ["doctor", "http://me:a", "s3cret@host"]):
        assert cli.main([*argv, "--port", "80"]) == 2
        assert "cret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://cards.example/", "https://cards.example/"),
        ("https://cards.example/a/b", "https://cards.example/..."),
        ("https://[::1]:8080/a", "https://[::1]:8080/..."),
        ("https://me@cards.example/a", "https://..."),
        ("postgresql://host/db", "postgresql://..."),
        ("--url=postgresql://host/db", "--url=postgresql://..."),
        ("postgres:host", "postgres://..."),
        ("//me@host", "//..."),
        ("host=a password=b", "host=a password=//..."),
    ],
)
def test_the_scheme_stays_and_the_host_of_a_url_that_is_well_formed(url, shown):
    assert without_urls(f"not {url!r}; see {url} (--help)", [url]) == f"not {shown!r}; see {shown} (--help)"


@pytest.mark.parametrize(
    "value", ["C:/data/a:b@c", r"C:\data\a:b@c", "data/a@b", "me@example.com", "a:b@c", "8O", "", "--port=8O"]
)
def test_all_else_stays(value):
    text = f"can't use {value}, {value!r}; it must be such as postgresql://user:password@host/name or http://HOST"
    assert without_urls(text, [value]) == text
