"""The command line: each command reads its options and does its work or hands it on (CONTRACT 5)."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cardbeat import __version__
from cardbeat.clock import utc_text, wall_clock
from cardbeat.config import FREE, UNLIMITED, Config, Tier
from cardbeat.database import Database
from cardbeat.database_file import back_up, require_database
from cardbeat.errors import Refusal, StartupError
from cardbeat.keys.routes import valid_email
from cardbeat.keys.store import Key, Keys
from cardbeat.keys.tiers import load_tiers
from cardbeat.log import PatientHandler
from cardbeat.options import (
    Option,
    Parser,
    base_url,
    file_path,
    host_name,
    http_url,
    integer,
    networks,
    one_of,
    parse_values,
    seconds,
    yes_or_no,
)
from cardbeat.output import say
from cardbeat.patience import patience
from cardbeat.system import keep_files_private, on_stop_signals
from cardbeat.web.router import Router
from cardbeat.web.server import Server

MIB = 1024 * 1024
MILLION = 1_000_000

DATA = Option("--data", "DIR", file_path, Path("cardbeat-data"), "./cardbeat-data", "folder of all data")
TIERS = Option("--tiers", "FILE", file_path, None, "free and unlimited", "TOML file that defines tiers")

SERVE_OPTIONS = (
    Option("--host", "ADDRESS", host_name, "127.0.0.1", "127.0.0.1", "address to listen on"),
    Option("--port", "N", integer(0, 65535), 8080, "8080", "port to listen on"),
    DATA,
    Option("--base-url", "URL", base_url, None, "http://HOST:PORT", "where clients reach the server"),
    Option("--sweep-seconds", "N", seconds(0.1, 3600), 60, "60", "from one sweep to the next"),
    Option("--registration", "open|closed", one_of("open", "closed"), "open", "open", "who may register"),
    Option("--register-per-minute", "N", integer(1, MILLION), 30, "30", "keys issued for each client address"),
    TIERS,
    Option("--store-mb", "N", integer(1, MILLION), 1024, "1024", "MiB of stored cards"),
    Option(
        "--allow-private-webhooks", "", yes_or_no, False, "off", "let webhooks reach private addresses", switch=True
    ),
    Option(
        "--trusted-proxy", "NETWORK", networks, [], "none", "whose X-Forwarded-For counts; repeatable", repeatable=True
    ),
    Option("--report-to", "URL", http_url, None, "none", "requested after every finished sweep"),
)

LAST_WORDS_SECONDS = 0.2
"""What stderr's reader has at the end to take what is left."""

SERVE_EPILOG = """\
Each option is a variable too (CARDBEAT_PORT). More commands, with own --help:
  card --title TEXT --output FILE    draw a card into a file, without a server
  keys list|create|revoke|tier       see, issue and end keys of a data folder
  backup FILE                        copy the database, also while serving
  doctor                             check this host, and say what to do
"""


def main(argv: Sequence[str]) -> int:
    """Run one command. The exit status is 2, with one line on stderr, for whatever the operator must change."""
    named = bool(argv) and not argv[0].startswith("-")
    name = argv[0] if named else "serve"
    try:
        if name not in COMMANDS:
            raise StartupError(f"there is no command {name!r}; the commands are {', '.join(COMMANDS)}")
        return COMMANDS[name](argv[1:] if named else argv)
    except StartupError as error:
        print(f"cardbeat: {error}", file=sys.stderr)
        return 2


def serve(argv: Sequence[str]) -> int:
    parser = Parser("[serve] [options]", "Link-preview cards and a dead man's switch for cron jobs.", SERVE_EPILOG)
    parser.add_argument("--version", action="version", version=f"cardbeat {__version__}")
    config = _config(parse_values(parser, SERVE_OPTIONS, argv))
    # Until the service stops by itself, a stop ends the start, leaving nothing half done.
    stops: list[int] = []

    def leave(number: int, _frame: object) -> None:
        stops.append(number)
        sys.exit(0)

    on_stop_signals(leave)
    _require_pillow()
    # Listening comes first: who connects while the rest is imported waits in line instead of being refused.
    server = Server(Router(), config.host, config.port, config.http, config.trusted_proxies)
    from cardbeat.service import Service  # noqa: PLC0415 - importing it needs Pillow

    # Keys' secrets, check ids and cards are for the owner's eyes.
    keep_files_private()
    logging.Formatter.converter = time.gmtime
    stderr = logging.StreamHandler()
    stderr.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    main_log = PatientHandler(stderr)
    logging.basicConfig(level=logging.INFO, handlers=[main_log])
    # The access log comes in records of many lines, each with its own time.
    access_log = logging.getLogger("cardbeat.access")
    access_log.addHandler(logging.StreamHandler())
    access_log.propagate = False
    service = Service(config, server)
    if stops:
        # It came in a callback, out of which Python lets no exception.
        server.stop()
    service.run()
    if not main_log.finish(LAST_WORDS_SECONDS):
        # Python's own end would wait for stderr's reader.
        os._exit(0)
    return 0


def card(argv: Sequence[str]) -> int:
    parser = Parser("card --title TEXT --output FILE [options]", "Draw a card into a PNG file.")
    parser.add_argument("--title", metavar="TEXT", required=True)
    for name in ("description", "author", "tag", "domain"):
        parser.add_argument(f"--{name}", metavar="TEXT", default="")
    parser.add_argument("--template", metavar="NAME", default="default", help="default, blog or article [default]")
    parser.add_argument("--theme", metavar="NAME", default="dark", help="dark or light [dark]")
    parser.add_argument("--output", metavar="FILE", required=True, type=file_path)
    given = vars(parser.parse_args(list(argv)))
    output: Path = given.pop("output")
    _require_pillow()
    from cardbeat.cards.render import Renderer  # noqa: PLC0415
    from cardbeat.cards.request import card_from  # noqa: PLC0415
    from cardbeat.typeset.fonts import Fonts  # noqa: PLC0415 - importing it needs Pillow

    with _refusals_as_startup_errors():
        drawing = Renderer(Fonts()).render(card_from(given))
    try:
        output.write_bytes(drawing.png)
    except OSError as error:
        raise StartupError(f"can't write {output}: {error.strerror}") from None
    return 0


def keys(argv: Sequence[str]) -> int:
    usage = "keys list | create [--email ADDRESS] [--tier NAME] | revoke ID\n       | tier ID NAME"
    parser = Parser(f"{usage} [--data DIR] [--tiers FILE]", "The API keys of a data folder, also while it is served.")
    parser.add_argument("action", choices=("list", "create", "revoke", "tier"), metavar="ACTION", help="one of these")
    parser.add_argument("id", nargs="?", metavar="ID", help="of a key, as list shows it")
    parser.add_argument("name", nargs="?", metavar="NAME", help="of the tier to move the key to")
    parser.add_argument("--email", metavar="ADDRESS", help="create a checks key for it; without it a cards key")
    parser.add_argument("--tier", metavar="NAME", help="of the key to create [free]")
    for option in (DATA, TIERS):
        option.add_to(parser)
    given = parser.parse_args(list(argv))
    _check_key_arguments(parser, given)
    tiers = _tiers(TIERS.value(given))
    for name in (given.tier, given.name):
        if name is not None and name not in tiers:
            raise StartupError(f"there is no tier {name!r}; the tiers are {', '.join(sorted(tiers))}")
    data = DATA.value(given)
    if given.action != "create":
        require_database(data)
    with _refusals_as_startup_errors(), closing(Database(data)) as database:
        return _KEY_ACTIONS[given.action](Keys(database, wall_clock, tiers), given)


def _list_keys(keys: Keys, _given: argparse.Namespace) -> int:
    say(_line(key) for key in keys.all())
    return 0


def _line(key: Key) -> str:
    columns = (
        key.id,
        f"{key.prefix}...",
        f"{key.scope:6}",
        f"{key.tier:10}",
        utc_text(key.created_at),
        key.email or "",
    )
    return "  ".join(columns).rstrip()


def _create_key(keys: Keys, given: argparse.Namespace) -> int:
    email = None if given.email is None else valid_email(given.email)
    issued = keys.issue(email, given.tier or "free")
    try:
        say(filter(None, (issued.value, issued.webhook_secret)), must_arrive=True)
    except StartupError:
        # Nobody will ever know the value, nor which key of the list it was.
        keys.revoke(issued.key.id)
        raise
    return 0


def _revoke_key(keys: Keys, given: argparse.Namespace) -> int:
    return _changed(keys.revoke(given.id), given.id)


def _move_key(keys: Keys, given: argparse.Namespace) -> int:
    return _changed(keys.set_tier(given.id, given.name), given.id)


_KEY_ACTIONS: dict[str, Callable[[Keys, argparse.Namespace], int]] = {
    "list": _list_keys,
    "create": _create_key,
    "revoke": _revoke_key,
    "tier": _move_key,
}


def _changed(found: bool, key_id: str) -> int:
    if not found:
        raise _no_such_key(key_id)
    return 0


def _no_such_key(key_id: str) -> StartupError:
    return StartupError(f"there is no key with the id {key_id!r}; see: keys list")


def _check_key_arguments(parser: Parser, given: argparse.Namespace) -> None:
    wanted = {"list": 0, "create": 0, "revoke": 1, "tier": 2}[given.action]
    if sum(argument is not None for argument in (given.id, given.name)) != wanted:
        parser.error(f"keys {given.action} takes {('no ID', 'an ID', 'an ID and a NAME')[wanted]}")
    for option, value in (("--email", given.email), ("--tier", given.tier)):
        if value is not None and given.action != "create":
            parser.error(f"keys {given.action} takes no {option}")
    # Bytes that are no text can't even be looked for.
    if given.id is not None and not given.id.isascii():
        raise _no_such_key(given.id)


def backup(argv: Sequence[str]) -> int:
    parser = Parser("backup FILE [--data DIR]", "Copy the database, as of one moment, also while it is being served.")
    DATA.add_to(parser)
    parser.add_argument("file", metavar="FILE", type=file_path, help="written whole or not at all; replaced if there")
    given = parser.parse_args(list(argv))
    with patience("copying the database"):
        back_up(DATA.value(given), given.file)
    return 0


def doctor(argv: Sequence[str]) -> int:
    parser = Parser("doctor [--data DIR]", "Check this host, and say what to do about what is wrong.")
    data = parse_values(parser, [DATA], argv)["data"]
    from cardbeat.doctor import examine  # noqa: PLC0415 - needed by this command only

    return examine(data)


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "serve": serve,
    "card": card,
    "keys": keys,
    "backup": backup,
    "doctor": doctor,
}


def _config(values: dict[str, Any]) -> Config:
    return Config(
        registration_open=values.pop("registration") == "open",
        store_bytes=values.pop("store_mb") * MIB,
        trusted_proxies=tuple(values.pop("trusted_proxy")),
        tiers=_tiers(values.pop("tiers")),
        **values,
    )


def _tiers(path: Path | None) -> dict[str, Tier]:
    return {"free": FREE, "unlimited": UNLIMITED} if path is None else load_tiers(path)


def _require_pillow() -> None:
    try:
        from PIL import __version__ as version  # noqa: PLC0415 - it may be missing
    except ImportError:
        raise StartupError("Pillow is missing; install it: python -m pip install Pillow") from None
    if tuple(map(int, version.split(".")[:2])) < (9, 4):
        raise StartupError(f"Pillow {version} is too old; cardbeat needs 9.4 or newer")


@contextmanager
def _refusals_as_startup_errors() -> Iterator[None]:
    """What a client would be refused for is said to the operator in the same words."""
    try:
        yield
    except Refusal as refusal:
        raise StartupError(refusal.sentence) from None
