"""Tiers: what a key may use, and the operator's file of them."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cardbeat.config import FREE, UNLIMITED, Tier
from cardbeat.errors import StartupError
from cardbeat.toml_file import read_toml

_LOWEST = {"max_checks": 0, "min_period_seconds": 1, "renders_per_minute": 1}
_HIGHEST = {"max_checks": 1_000_000_000, "min_period_seconds": 31_536_000, "renders_per_minute": 1_000_000_000}


def load_tiers(path: Path) -> dict[str, Tier]:
    """The built-in tiers with those of a TOML file, one table each.

    Raises `StartupError` for a file that can't be read and for a value that is no limit.
    """
    tables = read_toml(path)
    free = _tier(path, "free", tables.pop("free", {}), FREE)
    own = {name: _tier(path, name, table, free) for name, table in tables.items()}
    return {"unlimited": UNLIMITED, **own, "free": free}


def tiers_from(path: Path | None) -> dict[str, Tier]:
    """The tiers that are defined: the built-in ones, with those of the operator's file if there is one.

    Raises `StartupError` as `load_tiers` does.
    """
    return {"free": FREE, "unlimited": UNLIMITED} if path is None else load_tiers(path)


def tier_of(tiers: Mapping[str, Tier], name: str) -> Tier:
    """A key whose tier the operator has since taken away is held to `free`."""
    return tiers.get(name) or tiers["free"]


def _tier(path: Path, name: str, table: Any, base: Tier) -> Tier:
    where = f"the tiers file {path}, [{name}]"
    if not re.fullmatch(r"[a-z0-9_-]{1,32}", name):
        raise StartupError(f"{where}: a tier's name is 1 to 32 of a-z, 0-9, _ and -")
    if not isinstance(table, dict):
        raise StartupError(f"{where}: a tier is a table, as in [{name}]")
    for member, value in table.items():
        if member not in _LOWEST:
            raise StartupError(f"{where}: there is no limit {member!r}; there are {', '.join(_LOWEST)}")
        if type(value) is not int or not _LOWEST[member] <= value <= _HIGHEST[member]:
            raise StartupError(f"{where}: {member} must be an integer from {_LOWEST[member]} to {_HIGHEST[member]}")
    return replace(base, **table)
