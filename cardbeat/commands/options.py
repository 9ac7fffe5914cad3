"""Options of commands: as flags, else as CARDBEAT_* variables. A bad value is refused in one line.

`SERVE_OPTIONS` is the one table that `--help`, the variables and the documentation come from.
"""

import argparse
import ipaddress
import json
import os
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from cardbeat.config import Config, Network
from cardbeat.errors import StartupError
from cardbeat.host.output import say, table
from cardbeat.text import holds_url

Parse = Callable[[str], Any]
"""Returns the value of a text. Raises `ArgumentTypeError` with words that follow the flag."""


class Option(NamedTuple):
    """One option. Without a `metavar` it is a switch; if its default is a list, it may be repeated.

    `help` ends with the default in brackets.
    """

    name: str
    metavar: str
    parse: Parse
    default: Any
    help: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"CARDBEAT_{self.name.upper()}"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        how: dict[str, Any] = {
            "metavar": self.metavar,
            "type": self.parse,
        }
        if not self.metavar:
            how = {"action": "store_const", "const": True}
        elif isinstance(self.default, list):
            how["action"] = "extend"
        parser.add_argument(self.flag, help=self.help, **how)

    def without_flag(self) -> Any:
        """The value of the variable, else the default. Raises `StartupError`."""
        text = os.environ.get(self.variable, "").strip()
        if not text and self.name == "data":
            # systemd sets it for StateDirectory=, which may name several folders.
            text = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
        # Kubernetes sets CARDBEAT_PORT=tcp://10.0.0.1:8080 for a Service named `cardbeat`.
        if not text or (
            self.name == "port" and text.startswith("tcp://")
        ):
            return self.default
        try:
            return self.parse(text)
        except ArgumentTypeError as error:
            raise StartupError(f"{self.variable}: {error}") from None


class Parser(argparse.ArgumentParser):
    """The parser of a command. It raises `StartupError` with one line, and prints no usage."""

    def __init__(self, **texts: Any) -> None:
        form = partial(
            argparse.RawDescriptionHelpFormatter,
            max_help_position=30,
            width=80,
        )
        super().__init__(
            formatter_class=form, allow_abbrev=False, **texts
        )
        # Of Python 3.14, whose escapes would be shown as such.
        self.color = False

    def add_options(self, *options: Option) -> None:
        for option in options:
            option.add_to(self)
        self.add_argument(
            "--json", action="store_true", help="print JSON, for programs"
        )

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments, with variables and defaults for the options of the table."""
        given = self.parse_args(argv)
        for option in (*SERVE_OPTIONS, URL):
            if getattr(given, option.name, "") is None:
                setattr(given, option.name, option.without_flag())
        return given

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments"):
            # Other words are not repeated: one may be the rest of a URL with a space in it.
            flags = " ".join(re.findall(r"(?<!\S)--[\w-]+", message))
            message = f"unrecognized arguments: {flags or 'are quotes missing?'}"
        raise StartupError(f"{message} (see --help)")

    def _print_message(self, message: str, file: object = None) -> None:
        # `--help` ends as every output does if it can't be written.
        say(message.splitlines())


def command(
    name: str, about: str, *options: Option, note: str = ""
) -> Parser:
    """The parser of a command, with some options of the table, and `--json`."""
    made = Parser(prog=f"cardbeat {name}", description=about, epilog=note)
    made.add_options(*options)
    return made


def actions(made: Parser, *options: Option) -> Callable[..., Parser]:
    """A function that adds an action to a command, such as `list`, with these options.

    It takes the action's name, its help, the function that does it, `act` of what is read, and the
    names of its arguments.
    """
    every = made.add_subparsers(metavar="ACTION", required=True)

    def add(
        name: str, what: str, act: Callable[..., Any], *arguments: str
    ) -> Parser:
        action = every.add_parser(
            name, help=what, description=what, epilog=made.epilog
        )
        for argument in arguments:
            action.add_argument(argument, metavar=argument.upper())
        action.add_options(*options)
        action.set_defaults(act=act)
        return action

    return add


def tell(
    given: argparse.Namespace, found: Any, shown: Any = None
) -> None:
    """Print what was found as JSON with `--json`, else as a person reads it, or what is `shown`.

    A list of objects is printed as a table, and one object as lines `name: value`.
    """
    if shown is None:
        shown = found
    if given.json:
        say([json.dumps(found)])
    elif isinstance(shown, list):
        say(table(shown))
    else:
        say(
            f"{name}: {value}"
            for name, value in shown.items()
            if value is not None
        )


def matching(pattern: str, must: str) -> Parse:
    """Takes texts that are as a pattern, with a port that can be one.

    Its message does not repeat one: it may be a secret.
    """

    def parse(text: str) -> str:
        found = re.fullmatch(pattern, text, re.ASCII)
        port = found and found.groupdict().get("port")
        if not found or not 0 < int(port or 1) < 65536:
            raise ArgumentTypeError(f"must be {must}")
        return text

    return parse


def number(low: float, high: float) -> Parse:
    """Takes decimal numbers: whole ones if `low` is one. Others have signs or underscores."""

    def parse(text: str) -> float:
        if re.fullmatch("[0-9.]{1,99}", text):
            # Of 1.2.3, and of 0.5 where the number must be whole.
            with suppress(ValueError):
                value = type(low)(text)
                if low <= value <= high:
                    return value
        raise ArgumentTypeError(f"must be a number from {low} to {high}")

    return parse


def yes_or_no(text: str) -> bool:
    matching("(?i)1|true|yes|on|0|false|no|off", "1 or 0")(text)
    return text.lower() in ("1", "true", "yes", "on")


def time_zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - few servers need it

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        must = "must be a time zone such as Europe/Berlin"
        if not available_timezones():
            must = "needs time zones, and this host has none: pip install tzdata"
        raise ArgumentTypeError(must) from None


def file_path(text: str) -> Path:
    # Messages that show a path would show the password of a URL.
    if text in ("", "-") or "\0" in text or holds_url(text):
        raise ArgumentTypeError(
            "must name a file or folder, no URL; one named - is ./-"
        )
    return Path(text)


def networks(text: str) -> list[Network]:
    try:
        return [
            ipaddress.ip_network(part.strip()) for part in text.split(",")
        ]
    except ValueError:
        must = "must be an address or a network such as 10.0.0.0/8"
        raise ArgumentTypeError(must) from None


_SERVER: Final = r"([\w.-]+|\[[\w:.]+\])(:(?P<port>\d{1,5}))?"
_HTTP_URL: Final = matching(
    rf"https?://{_SERVER}([/?#][!-~]*)?",
    "a URL such as https://example.com/, without a password",
)
_BASE_URL: Final = matching(
    rf"https?://{_SERVER}(/[\w.~:/-]*)?",
    "a URL such as https://cards.example.com/path",
)
"""Ping URLs begin with it and are copied into crontabs and shells, where others need quotes."""
_PROXY_URL: Final = matching(
    rf"http://([^@/?#\s]+@)?{_SERVER}/?",
    "a URL such as http://user:password@proxy.example:3128",
)


def base_url(text: str) -> str:
    """The text without its last slash: paths are appended to it."""
    _BASE_URL(text)
    return text.rstrip("/")


_ESCAPE: Final = r"%[\da-fA-F]{2}"
_PART: Final = rf"({_ESCAPE}|[^:/?#@%,\[\]\s])*"
_HOST: Final = rf"(\[[^][/?#@\s]+\]|{_PART})(:\d*)?"
_DATABASE_URL: Final = matching(
    rf"postgres(ql)?://({_PART}(:{_PART})?@)?{_HOST}(,{_HOST})*"
    rf"([/?]({_ESCAPE}|[^#@%\s])*)?",
    "a URL such as postgresql://user:password@host/name, in whose password %40 stands for @",
)
"""Strict: PostgreSQL's library takes parts of a badly written password for a host or a port, and
shows them in its messages."""

KEY_VARIABLE: Final = "CARDBEAT_KEY"
"""Like the database, the key has no flag: every user of the host can read a command line."""
_DATABASE: Final = Option("database", "URL", _DATABASE_URL, None, "")


def database_url() -> str | None:
    """PostgreSQL's URL; None for a file in the data folder. Raises `StartupError`."""
    url: str | None = _DATABASE.without_flag()
    return url


_POSITIVE: Final = number(1, 1_000_000)
_ADDRESS: Final = matching("[!-~]+", "an address or a host name")
_SECONDS: Final = number(0.1, 3600)
_OPEN: Final = matching("open|closed", "open or closed")
_COLOUR: Final = matching(r"#[\da-fA-F]{6}", "a colour such as '#2563eb'")
_USUAL: Final = Config()

DATA: Final = Option(
    "data",
    "DIR",
    file_path,
    _USUAL.data,
    "folder of all data [./cardbeat-data]",
)
TIERS: Final = Option(
    "tiers",
    "FILE",
    file_path,
    None,
    "TOML file that defines tiers [free and unlimited]",
)
ACCENT: Final = Option(
    "accent",
    "'#RRGGBB'",
    _COLOUR,
    None,
    "the cards' colour, in quotes [as designed]",
)
URL: Final = Option(
    "url",
    "URL",
    base_url,
    "http://127.0.0.1:8080",
    "the server [http://127.0.0.1:8080]",
)

SERVE_OPTIONS: Final = (
    Option(
        "host",
        "ADDRESS",
        _ADDRESS,
        _USUAL.host,
        "address to listen on [127.0.0.1]",
    ),
    Option(
        "port",
        "N",
        number(0, 65535),
        _USUAL.port,
        "port to listen on [8080]",
    ),
    DATA,
    Option(
        "base_url",
        "URL",
        base_url,
        None,
        "where clients reach the server [http://HOST:PORT]",
    ),
    Option(
        "sweep_seconds",
        "N",
        _SECONDS,
        60,
        "from one sweep to the next [60]",
    ),
    Option(
        "registration",
        "open|closed",
        _OPEN,
        "open",
        "who may register [open]",
    ),
    Option(
        "register_per_minute",
        "N",
        _POSITIVE,
        30,
        "keys issued for each client network [30]",
    ),
    TIERS,
    Option(
        "store_mb", "N", _POSITIVE, 1024, "MiB of stored cards [1024]"
    ),
    Option(
        "allow_private_webhooks",
        "",
        yes_or_no,
        False,
        "let webhooks reach private addresses [off]",
    ),
    Option(
        "webhook_proxy",
        "URL",
        _PROXY_URL,
        None,
        "HTTP proxy for all alerts [none]",
    ),
    Option(
        "trusted_proxy",
        "NETWORK",
        networks,
        [],
        "whose X-Forwarded-For counts; repeatable [none]",
    ),
    Option(
        "report_to",
        "URL",
        _HTTP_URL,
        None,
        "requested after every finished sweep [none]",
    ),
    ACCENT,
    Option(
        "time_zone",
        "NAME",
        time_zone,
        None,
        "of times in alerts, such as Europe/Berlin [UTC]",
    ),
    Option(
        "quiet_health",
        "",
        yes_or_no,
        False,
        "leave /healthz and metrics out of the log [off]",
    ),
)
