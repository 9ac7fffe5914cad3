"""Tiers: the limits of a key, built in or from the operator's file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardbeat.config import FREE, UNLIMITED, Tier
from cardbeat.database import Transaction
from cardbeat.errors import StartupError
from cardbeat.toml_file import read_toml

_RANGES = {
    "max_checks": (0, 1_000_000_000),
    "min_period_seconds": (1, 31_536_000),
    "renders_per_minute": (1, 1_000_000_000),
}


def tiers_from(path: Path | None) -> dict[str, Tier]:
    """The built-in tiers, and those of the operator's TOML file if there is one. It has one table for each tier.

    Raises `StartupError` for a file that can't be read and for a value out of range.
    """
    tables = {} if path is None else read_toml(path)
    free = _tier(path, "free", tables.pop("free", {}), FREE)
    own = {name: _tier(path, name, table, free) for name, table in tables.items()}
    return {"unlimited": UNLIMITED, **own, "free": free}


def tier_of(tiers: Mapping[str, Tier], name: str) -> Tier:
    """The tier with this name; `free` if the operator no longer defines it."""
    return tiers.get(name) or tiers["free"]


def count_by_tier(transaction: Transaction) -> dict[str, int]:
    sql = "SELECT tier, count(*) FROM keys WHERE revoked_at IS NULL GROUP BY tier"
    return dict(map(tuple, transaction.execute(sql)))


def _tier(path: Path | None, name: str, table: Any, base: Tier) -> Tier:
    where = f"the tiers file {path}, [{name}]"
    if not re.fullmatch(r"[a-z0-9_-]{1,32}", name):
        raise StartupError(f"{where}: a tier's name is 1 to 32 of a-z, 0-9, _ and -")
    if not isinstance(table, dict):
        raise StartupError(f"{where}: a tier is a table, as in [{name}]")
    for member, value in table.items():
        if member not in _RANGES:
            raise StartupError(f"{where}: there is no limit {member!r}; there are {', '.join(_RANGES)}")
        low, high = _RANGES[member]
        if type(value) is not int or not low <= value <= high:
            raise StartupError(f"{where}: {member} must be an integer from {low} to {high}")
    return base._replace(**table)
