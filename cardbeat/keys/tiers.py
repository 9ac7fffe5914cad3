"""Tiers: the limits of a key, built in or from the operator's file."""

from pathlib import Path
from typing import Any

from cardbeat.config import FREE, UNLIMITED, Tier
from cardbeat.errors import StartupError
from cardbeat.files import read_toml

_RANGES = {
    "max_checks": (0, 1_000_000_000),
    "min_period_seconds": (1, 31_536_000),
    "renders_per_minute": (1, 1_000_000_000),
}


def tiers_from(path: Path | None) -> dict[str, Tier]:
    """The built-in tiers, and those of the operator's TOML file, which has a table for each.

    Raises `StartupError` for a file that can't be read and for a value out of range.
    """
    tables = {} if path is None else read_toml(path)
    free = _tier(path, "free", tables.pop("free", {}), FREE)
    tiers = {"unlimited": UNLIMITED}
    for name, table in tables.items():
        tiers[name] = _tier(path, name, table, free)
    return {**tiers, "free": free}


def _tier(path: Path | None, name: str, table: Any, base: Tier) -> Tier:
    where = f"the tiers file {path}, [{name}]"
    if not isinstance(table, dict):
        raise StartupError(f"{where}: a tier is a table")
    for member, value in table.items():
        if member not in _RANGES:
            known = ", ".join(_RANGES)
            raise StartupError(
                f"{where}: there is no limit {member!r}; there are {known}"
            )
        low, high = _RANGES[member]
        if type(value) is not int or not low <= value <= high:
            raise StartupError(
                f"{where}: {member} must be an integer from {low} to {high}"
            )
    return base._replace(**table)
