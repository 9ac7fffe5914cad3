"""Reads the TOML file of `checks apply`."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cardbeat.errors import Invalid, StartupError
from cardbeat.heartbeat.check import CHANGEABLE, validated
from cardbeat.heartbeat.webhooks.target import refused_url
from cardbeat.toml_file import read_toml

Declared = dict[str, Any]
"""One check of the file: the fields that it or `[defaults]` names."""

_UNIT_SECONDS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile("(?=.)" + "".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in _UNIT_SECONDS))
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class Declarations(NamedTuple):
    """The checks of a file by name; and the old names of those that are renamed, by their new ones."""

    checks: dict[str, Declared]
    renamed: dict[str, str]


def load(path: Path, *, prune: bool = False) -> Declarations:
    """The checks of a file: tables `[[check]]`, with the values of `[defaults]` where they give none.

    Raises `StartupError` for a file that can't be read or has errors. Limits that only the server knows, such as the
    shortest period of the key's tier, are not checked here. With `prune`, which deletes all other checks, a file
    without checks must say `check = []`, because it may be the empty output of a template.
    """
    content = read_toml(path)
    if prune and "check" not in content:
        raise StartupError(f"{path}: without any [[check]], --prune would delete all checks; to do so, say check = []")
    defaults, tables = content.pop("defaults", {}), content.pop("check", [])
    if content:
        raise StartupError(f"{path}: there is no {next(iter(content))!r}; there are [[check]] and [defaults]")
    if not isinstance(tables, list):
        raise StartupError(f"{path}: a check is a table in double brackets, as in [[check]]")
    declared = Declarations({}, {})
    for settings, was in _checks(path, defaults, tables):
        if settings["name"] in declared.checks:
            raise StartupError(f"{path}: two checks are named {settings['name']!r}")
        declared.checks[settings["name"]] = settings
        if was is not None:
            declared.renamed[settings["name"]] = was
    for was, number in Counter(declared.renamed.values()).items():
        if number > 1 or was in declared.checks:
            raise StartupError(f"{path}: was = {was!r} must name a check that no other line of the file names")
    return declared


def _checks(path: Path, defaults: Any, tables: list[Any]) -> Iterator[tuple[Declared, str | None]]:
    _require_fields(f"{path}, [defaults]", defaults)
    if not defaults.keys().isdisjoint(("name", "was")):
        raise StartupError(f"{path}, [defaults]: each check has its own name")
    for number, table in enumerate(tables, 1):
        where = f"{path}, check {number}"
        _require_fields(where, table)
        try:
            values = {name: plain(name, value) for name, value in (defaults | table).items()}
            was = values.pop("was", None)
            if was is not None and not (isinstance(was, str) and was.strip()):
                raise Invalid("invalid_field", "The field was must be the old name of the check.")
            settings = validated(values, 1, partial(refused_url, allow_private=True))._asdict()
            yield {name: settings[name] for name in settings if name in values}, was and was.strip()
        except Invalid as invalid:
            raise StartupError(f"{where}: {invalid.sentence}") from None


def plain(field: str, value: Any) -> Any:
    """A value of the file as the API takes it: a duration in seconds, a URL from the environment.

    An empty text is None for what a check may lack, because TOML has no null to override one in `[defaults]`. Raises
    `Invalid`.
    """
    if field == "webhook_url" and isinstance(value, str):
        variable = _VARIABLE.fullmatch(value)
        if variable and not os.environ.get(variable[1], "").strip():
            raise Invalid("invalid_field", f"The environment has no variable {variable[1]} for webhook_url.")
        return (os.environ[variable[1]].strip() if variable else value) or None
    if field == "repeat_seconds" and value == "":
        return None
    if field.endswith("_seconds") and isinstance(value, str):
        seconds = seconds_of(value)
        if seconds is None:
            sentence = f'The field {field} must be seconds, or a duration such as "1d", "15m" or "1h30m".'
            raise Invalid("invalid_field", sentence)
        return seconds
    return value


def seconds_of(duration: str) -> int | None:
    """The seconds of a duration such as `1h30m`, None for another text."""
    found = _DURATION.fullmatch(duration)
    units = _UNIT_SECONDS.values()
    return found and sum(int(number or 0) * unit for number, unit in zip(found.groups(), units, strict=True))


def _require_fields(where: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise StartupError(f"{where}: this must be a table")
    for field in table:
        if field not in (*CHANGEABLE, "was"):
            raise StartupError(f"{where}: there is no field {field!r}; there are {', '.join(CHANGEABLE)} and was")
