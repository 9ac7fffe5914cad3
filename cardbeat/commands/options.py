"""Options of commands: as flags, else as CARDBEAT_* variables. A bad value is refused in one line."""

import argparse
import ipaddress
import os
import re
import urllib.parse
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from cardbeat.config import Config, Network
from cardbeat.errors import StartupError
from cardbeat.host.output import say
from cardbeat.passwords import NAMED, looks_like_url

Parse = Callable[[str], Any]


class Option(NamedTuple):
    """One option. Without a `metavar` it is a switch; if its default is a list, it may be repeated.

    `shown` is the default as `--help` shows it, if that is not the default itself.
    `parse_flag` checks a flag's value in place of `parse`, which then checks the variable only.
    """

    flag: str
    metavar: str
    parse: Parse
    default: Any
    help: str
    shown: str | None = None
    parse_flag: Parse | None = None

    @property
    def name(self) -> str:
        return self.flag[2:].replace("-", "_")

    @property
    def variable(self) -> str:
        return f"CARDBEAT_{self.name.upper()}"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        text = f"{self.help} [{self.shown or self.default}]".replace("%", "%%")
        if not self.metavar:
            parser.add_argument(self.flag, action="store_true", default=None, help=text)
        else:
            action = "extend" if isinstance(self.default, list) else "store"
            parse = self.parse_flag or self.parse
            parser.add_argument(self.flag, metavar=self.metavar, type=parse, action=action, help=text)

    def value(self, options: argparse.Namespace) -> Any:
        """The value of the flag, else of the variable, else the default. Raises `StartupError` for a bad variable."""
        given = self.given(options)
        return self.default if given is None else given

    def given(self, options: argparse.Namespace) -> Any:
        """The value of the flag, else of the variable, else None. Raises `StartupError` for a bad variable."""
        given, text = getattr(options, self.name), os.environ.get(self.variable, "")
        if not text and self.flag == "--data":
            # systemd sets it for StateDirectory=, which may name several folders.
            text = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
        if given is not None or not text:
            return given
        try:
            return self.parse(text)
        except ArgumentTypeError as error:
            raise StartupError(f"{self.variable}: {error}") from None


class Parser(argparse.ArgumentParser):
    """A parser that raises `StartupError` with one line, in place of printing the usage."""

    def __init__(self, usage: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog="cardbeat",
            usage=f"cardbeat {usage}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=80),
        )
        # Without this heading the help of `serve` fits 80x24 characters.
        self._optionals.title = None

    def _print_message(self, message: str, file: object = None) -> None:
        # `--help` and `--version` end as every output does if it can't be written.
        say(message.splitlines())

    def error(self, message: str) -> NoReturn:
        import difflib  # noqa: PLC0415 - only a mistake needs it

        problem, listed, words = message.partition("unrecognized arguments: ")
        if listed:
            # Other words are not repeated: one may be the rest of a URL with a space in it.
            options = [word.partition("=")[0] for word in words.split() if word.startswith("-")]
            message = problem + listed + (" ".join(options) or "put quotes around a value with spaces")
            for near in difflib.get_close_matches(options[0], self._option_string_actions, n=1) if options else []:
                message += f"; did you mean {near}?"
        raise StartupError(f"{message} (see --help)")

    @property
    def actions(self) -> list[argparse.Action]:
        """Its options, and its arguments in order."""
        return self._actions


class Subcommand(NamedTuple):
    """What does an action, its arguments, by their names in `--help`, and the options of its own."""

    run: Callable[..., Any]
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class SubcommandParser(Parser):
    """The parser of a command whose first argument is an action, such as `keys list`."""

    def __init__(self, command: str, subcommands: Mapping[str, Subcommand], usage: str, *texts: str) -> None:
        super().__init__(f"{command} {usage}", *texts)
        self.command = command
        self.subcommands = subcommands
        self.add_argument("action", choices=subcommands, metavar="ACTION", help="one of these")

    def parse(self, argv: Iterable[str]) -> argparse.Namespace:
        """The values of the command line. Raises `StartupError` for what the action does not take."""
        words = list(argv)
        if words and words[0] in self.subcommands:
            self._explain_only(words[0])
        given = self.parse_intermixed_args(words)
        values, name = vars(given), given.action
        # `--all` stands in the place of the name that comes first.
        arguments = self.subcommands[name].arguments[bool(values.get("all")) :]
        positional = [values[it.dest] for it in self.actions if not it.option_strings and it.dest != "action"]
        if len(positional) - positional.count(None) != len(arguments):
            self.error(f"{self.command} {name} takes {' and '.join(arguments) or 'nothing more'}")
        for action in self.actions:
            if values.get(action.dest) not in (None, False) and not self.takes(name, action):
                self.error(f"{self.command} {name} takes no {action.option_strings[0]}")
        return given

    def _explain_only(self, name: str) -> None:
        """Let `--help` show no more than this action takes."""
        taken = self.subcommands[name].arguments
        self.usage = " ".join([f"cardbeat {self.command} {name}", *taken, "[options]"])
        positional = [it for it in self.actions if not it.option_strings]
        for action, argument in zip_longest(positional, [None, *taken]):
            action.metavar = argument
            action.help = action.help if argument else argparse.SUPPRESS
        for action in self.actions:
            action.help = action.help if self.takes(name, action) else argparse.SUPPRESS

    def takes(self, name: str, option: argparse.Action) -> bool:
        """Whether the action `name` takes this option. An option that no action has for itself is taken by all."""
        takers = [one for one, it in self.subcommands.items() if set(it.options) & set(option.option_strings)]
        return not takers or name in takers


def add_options(parser: argparse.ArgumentParser, *options: Option) -> None:
    """Add `--json`, which these commands have in common, and some options of `serve`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    for option in options:
        option.add_to(parser)


def values_of(options: Iterable[Option], given: argparse.Namespace) -> dict[str, Any]:
    """The value of each option by its name, from the result of a parser that has these options."""
    return {option.name: option.value(given) for option in options}


def integer(low: int, high: int, text: str) -> int:
    # int() also accepts signs, underscores and digits of other scripts, and raises for 5,000 digits.
    if not (re.fullmatch("[0-9]{1,100}", text) and low <= int(text) <= high):
        raise ArgumentTypeError(f"must be an integer from {low} to {high}, not {text!r}")
    return int(text)


def seconds(text: str) -> float:
    if not (re.fullmatch(r"[0-9]+(\.[0-9]+)?|\.[0-9]+", text) and 0.1 <= float(text) <= 3600):
        raise ArgumentTypeError(f"must be a number of seconds from 0.1 to 3600, not {text!r}")
    return float(text)


def open_or_closed(text: str) -> str:
    if text not in ("open", "closed"):
        raise ArgumentTypeError(f"must be open or closed, not {text!r}")
    return text


def yes_or_no(text: str) -> bool:
    if text.lower() not in ("1", "true", "yes", "on", "0", "false", "no", "off"):
        raise ArgumentTypeError(f"must be 1 or 0, not {text!r}")
    return text.lower() in ("1", "true", "yes", "on")


def colour(text: str) -> str:
    if not re.fullmatch("#[0-9A-Fa-f]{6}", text):
        raise ArgumentTypeError(f"must be a colour such as '#2563eb', not {text!r}")
    return text.lower()


def file_path(text: str) -> Path:
    if not text or "\0" in text:
        raise ArgumentTypeError("must name a file or folder")
    if text == "-":
        raise ArgumentTypeError("must name a file or folder, not standard input or output; one named - is ./-")
    # A URL here is a mistake, and messages that show paths would show its password.
    if looks_like_url(text):
        raise ArgumentTypeError("must name a file or folder, and not be a URL")
    return Path(text)


def host_name(text: str) -> str:
    if not text or not text.isascii() or any(character <= " " for character in text):
        raise ArgumentTypeError(f"must be an address or a host name, not {text!r}")
    return text


def http_url(text: str) -> str:
    try:
        parts = urllib.parse.urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not text.isascii() or any(character <= " " for character in text):
        raise ArgumentTypeError("must be a URL that starts with http:// or https:// and names a host")
    if "@" in parts.netloc:
        raise ArgumentTypeError("must have no user name and no password")
    return text


def base_url(text: str) -> str:
    """An `http_url` to which paths can be appended, without its last slash."""
    url = http_url(text)
    # Ping URLs begin with it and are copied into crontabs and shells, where other characters need quotes.
    if not re.fullmatch(r"https?://[A-Za-z0-9._~:/\[\]-]+", url, re.IGNORECASE):
        raise ArgumentTypeError("must be a URL that holds only letters, digits and . - _ ~ : / [ ]")
    return url.rstrip("/")


_ENCODED = "%[0-9A-Fa-f]{2}"
_HOST = rf"(?:\[[^][/?#@]+\]|(?:{_ENCODED}|[^[:,/?#@%])*)(?::[0-9]*)?"
_DATABASE_URL = (
    rf"postgres(ql)?://(?:(?:{_ENCODED}|[^:/?#@%])*(?P<password>:(?:{_ENCODED}|[^:/?#@%])*)?@)?"
    rf"{_HOST}(?:,{_HOST})*(?:[/?](?:{_ENCODED}|[^#@%])*)?"
)
"""Commas separate hosts, and brackets enclose an IPv6 address. The pattern is strict: PostgreSQL's library takes parts
of a badly written password for a host or a port, and shows them in its messages."""


_FILE_CHARACTERS = 65_536  # more than any URL has: a device such as /dev/zero has no end


def database_url(text: str) -> str:
    """The URL of a database, given or read from a file. No message shows it, because it may contain a password."""
    if "://" not in text:
        try:
            with file_path(text).open(encoding="utf-8") as file:
                text = file.read(_FILE_CHARACTERS).strip()
        except (OSError, UnicodeError):
            raise ArgumentTypeError("must be a URL that starts with postgresql://, or a file to read") from None
    if " " in text or not text.isprintable() or "%00" in text:
        must = "must be a URL without spaces, control characters and %00; a space in it is written as %20"
        raise ArgumentTypeError(must)
    if not re.fullmatch(_DATABASE_URL, text):
        must = "must be a URL such as postgresql://user:password@host/name"
        raise ArgumentTypeError(f"{must}, where %40 stands for @ in the password, and likewise for : / ? # %")
    return text


def database_url_flag(text: str) -> str:
    """As `database_url`, but refuses a password: every user of the host can read the command line."""
    parts = re.fullmatch(_DATABASE_URL, text)
    if parts and (parts.group("password") is not None or re.search(NAMED, text)):
        must = "must hold no password, as every user of this host can read it here"
        advice = "set the variable CARDBEAT_DATABASE, or name a file that holds the URL"
        raise ArgumentTypeError(f"{must}; {advice}")
    return database_url(text)


def networks(text: str) -> list[Network]:
    try:
        return [_unmapped(ipaddress.ip_network(part.strip())) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"must be an address or a network such as 10.0.0.0/8, not {text!r}") from None


def _unmapped(network: Network) -> Network:
    """The IPv4 network of one that is mapped into IPv6 (`::ffff:10.0.0.0/104`): clients are known by IPv4 addresses."""
    inside = getattr(network.network_address, "ipv4_mapped", None)
    return ipaddress.IPv4Network((inside, network.prefixlen - 96)) if inside and network.prefixlen >= 96 else network


_POSITIVE = partial(integer, 1, 1_000_000)
_DEFAULT = Config()

HOST = Option("--host", "ADDRESS", host_name, _DEFAULT.host, "address to listen on")
DATA = Option("--data", "DIR", file_path, _DEFAULT.data, "folder of all data", "./cardbeat-data")
_DATABASE_HELP = "PostgreSQL's URL, or a file that holds it"
DATABASE = Option("--database", "URL", database_url, None, _DATABASE_HELP, "none", parse_flag=database_url_flag)
BASE_URL = Option("--base-url", "URL", base_url, None, "where clients reach the server", "http://HOST:PORT")
REGISTRATION = Option("--registration", "open|closed", open_or_closed, "open", "who may register")
TIERS = Option("--tiers", "FILE", file_path, None, "TOML file that defines tiers", "free and unlimited")
ACCENT = Option("--accent", "'#RRGGBB'", colour, None, "the cards' colour, in quotes", "as designed")
URL = Option("--url", "URL", base_url, "http://127.0.0.1:8080", "the server to ask")
KEY_VARIABLE = "CARDBEAT_KEY"
"""The variable with a client's key. It has no flag: every user of the host can read the command line."""

SERVE_OPTIONS = (
    HOST,
    Option("--port", "N", partial(integer, 0, 65535), _DEFAULT.port, "port to listen on"),
    DATA,
    DATABASE,
    BASE_URL,
    Option("--sweep-seconds", "N", seconds, _DEFAULT.sweep_seconds, "from one sweep to the next"),
    REGISTRATION,
    Option(
        "--register-per-minute", "N", _POSITIVE, _DEFAULT.register_per_minute, "keys issued for each client address"
    ),
    TIERS,
    Option("--store-mb", "N", _POSITIVE, _DEFAULT.store_bytes // 2**20, "MiB of stored cards"),
    Option("--allow-private-webhooks", "", yes_or_no, False, "let webhooks reach private addresses", "off"),
    Option("--trusted-proxy", "NETWORK", networks, [], "whose X-Forwarded-For counts; repeatable", "none"),
    Option("--report-to", "URL", http_url, None, "requested after every finished sweep", "none"),
    ACCENT,
    Option("--quiet-health", "", yes_or_no, False, "leave /healthz and metrics out of the log", "off"),
)
