"""Reads the TOML file of `checks apply`."""

import os
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from cardbeat.errors import Invalid, StartupError
from cardbeat.files import read_toml
from cardbeat.heartbeat.alerts.target import refused_url
from cardbeat.heartbeat.check import validated

Declared = dict[str, Any]
"""One check of the file: the fields that it or `[defaults]` names."""

_UNIT_SECONDS: Final = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile("(?=.)" + "".join(f"([0-9]{{1,9}}{unit})?" for unit in _UNIT_SECONDS))
_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class Declarations(NamedTuple):
    """The checks of a file by name; and the old names of renamed ones, by their new ones."""

    checks: dict[str, Declared]
    renamed: dict[str, str]


def load(path: Path, *, prune: bool = False) -> Declarations:
    """The checks of a file: tables `[[check]]`, with the values of `[defaults]` for what they lack.

    Raises `StartupError` for a file that can't be read or has errors. The shortest period of the
    key's tier is known to the server alone. With `prune`, which deletes all other checks, a file
    without checks must say `check = []`: it may be the empty output of a template.
    """
    content = read_toml(path)
    if prune and "check" not in content:
        found = f"{path}: without any [[check]], --prune would delete all checks"
        raise StartupError(f"{found}; to do so, say check = []")
    defaults = content.pop("defaults", {})
    tables = content.pop("check", [])
    for name in content:
        raise StartupError(f"{path}: there is no {name!r}; there are [[check]] and [defaults]")
    if not isinstance(tables, list):
        raise StartupError(f"{path}: a check is a table in double brackets, as in [[check]]")
    declared = Declarations({}, {})
    for number, table in enumerate(tables, 1):
        try:
            _add(declared, _table(defaults), _table(table))
        except Invalid as invalid:
            raise StartupError(f"{path}, check {number}: {invalid.sentence}") from None
    for was, count in Counter([*declared.renamed.values(), *declared.checks]).items():
        if count > 1:
            must = "must name a check that no other line of the file names"
            raise StartupError(f"{path}: was = {was!r} {must}")
    return declared


def _add(declared: Declarations, defaults: Declared, table: Declared) -> None:
    """Add the check of a table. Raises `Invalid`."""
    if not defaults.keys().isdisjoint(("name", "was")):
        raise _invalid("[defaults] holds a name or was; each check has its own.")
    values = {field: plain(field, value) for field, value in (defaults | table).items()}
    was = values.pop("was", None)
    settings = validated(values, 1, partial(refused_url, allow_private=True))
    if settings.name in declared.checks:
        raise _invalid(f"Two checks are named {settings.name!r}.")
    wanted = settings._asdict()
    declared.checks[settings.name] = {field: wanted[field] for field in wanted if field in values}
    if was is not None:
        if not isinstance(was, str) or not was.strip():
            raise _invalid("The field was must be the old name of the check.")
        declared.renamed[settings.name] = was.strip()


def _table(value: Any) -> Declared:
    if not isinstance(value, dict):
        raise _invalid("A check and [defaults] must be tables.")
    return value


def plain(field: str, value: Any) -> Any:
    """A value of the file as the API takes it: a duration in seconds, a URL from the environment.

    `"1h30m"` is 5400, `"$CHAT"` the variable CHAT. An empty text is None for what a check may lack,
    because TOML has no null to override one in `[defaults]`. Raises `Invalid`.
    """
    if value == "" and field in ("webhook_url", "repeat_seconds"):
        return None
    if isinstance(value, str) and field.endswith("_seconds"):
        return seconds_of(field, value)
    if not isinstance(value, str) or field != "webhook_url":
        return value
    variable = _VARIABLE.fullmatch(value)
    if variable is None:
        return value
    url = os.environ.get(variable[1], "").strip()
    if not url:
        raise _invalid(f"The environment has no variable {variable[1]} for {field}.")
    return url


def seconds_of(field: str, duration: str) -> int:
    """The seconds of a duration such as `1h30m`. Raises `Invalid` for another text."""
    found = _DURATION.fullmatch(duration)
    if not found:
        raise _invalid(f'The field {field} must be seconds, or a duration such as "1d" or "1h30m".')
    seconds = 0
    for part in filter(None, found.groups()):
        seconds += int(part[:-1]) * _UNIT_SECONDS[part[-1]]
    return seconds


def _invalid(sentence: str) -> Invalid:
    return Invalid("invalid_field", sentence)
