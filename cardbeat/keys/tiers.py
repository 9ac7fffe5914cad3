"""Tiers: the limits of a key, built in or from the operator's file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardbeat.config import FREE, UNLIMITED, Tier
from cardbeat.database import Transaction
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


def tier_of(tiers: Mapping[str, Tier], name: str) -> Tier:
    """The tier with this name; `free` if the operator no longer defines it."""
    return tiers.get(name, tiers["free"])


def count_by_tier(transaction: Transaction) -> dict[str, int]:
    """The number of keys in each tier, also in tiers that are no longer defined."""
    sql = "SELECT tier, count(*) FROM keys WHERE revoked_at IS NULL GROUP BY tier"
    return dict(map(tuple, transaction.execute(sql)))


def _tier(path: Path | None, name: str, table: Any, base: Tier) -> Tier:
    where = f"the tiers file {path}, [{name}]"
    if not re.fullmatch(r"[a-z0-9_-]{1,32}", name) or not isinstance(table, dict):
        told = "a tier is a table, and its name 1 to 32 of a-z, 0-9, _ and -"
        raise StartupError(f"{where}: {told}")
    for member, value in table.items():
        if member not in _RANGES:
            known = ", ".join(_RANGES)
            raise StartupError(f"{where}: there is no limit {member!r}; there are {known}")
        low, high = _RANGES[member]
        if type(value) is not int or not low <= value <= high:
            raise StartupError(f"{where}: {member} must be an integer from {low} to {high}")
    return base._replace(**table)
