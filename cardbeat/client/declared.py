"""Reads the TOML file of `checks apply`."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from cardbeat.errors import Invalid, StartupError
from cardbeat.heartbeat.check import CHANGEABLE, validated
from cardbeat.heartbeat.webhooks.target import refused_url
from cardbeat.toml_file import read_toml

Declared = dict[str, Any]
"""One check of the file: all fields that a caller sets."""


def load(path: Path, *, prune: bool = False) -> dict[str, Declared]:
    """The checks of a file by name: tables `[[check]]`, with the values of `[defaults]` where they give none.

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
    declared: dict[str, Declared] = {}
    for settings in _checks(path, defaults, tables):
        if settings["name"] in declared:
            raise StartupError(f"{path}: two checks are named {settings['name']!r}")
        declared[settings["name"]] = settings
    return declared


def _checks(path: Path, defaults: Any, tables: list[Any]) -> Iterator[Declared]:
    _require_fields(f"{path}, [defaults]", defaults)
    if "name" in defaults:
        raise StartupError(f"{path}, [defaults]: each check has its own name")
    for number, table in enumerate(tables, 1):
        where = f"{path}, check {number}"
        _require_fields(where, table)
        try:
            yield asdict(validated(_without_empty_url(defaults | table), 1, partial(refused_url, allow_private=True)))
        except Invalid as invalid:
            raise StartupError(f"{where}: {invalid.sentence}") from None


def _without_empty_url(values: Declared) -> Declared:
    """The values without `webhook_url` if that is empty: TOML has no null to override the one in `[defaults]`."""
    return {name: value for name, value in values.items() if (name, value) != ("webhook_url", "")}


def _require_fields(where: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise StartupError(f"{where}: this must be a table")
    for field in table:
        if field not in CHANGEABLE:
            raise StartupError(f"{where}: there is no field {field!r}; there are {', '.join(CHANGEABLE)}")
