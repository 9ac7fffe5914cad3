"""Makes the checks of a key what a TOML file declares, by name. A second run changes nothing.

1. `load` reads the file.
2. `steps` compares it with the checks that are there.
3. `perform` does one step.
"""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any, Final

from cardbeat.client.api import Api, CheckJson, path_of, with_texts
from cardbeat.errors import Invalid, StartupError
from cardbeat.files import read_toml
from cardbeat.heartbeat.alerts.target import refused_url
from cardbeat.heartbeat.check import REQUIRED, validated

Declared = dict[str, Any]
"""One check of the file: the fields that it or `[defaults]` names."""
Step = tuple[str, CheckJson, Declared]
"""A deed, the check as it is (of a new one the name alone), and the values that it gets."""

CREATED: Final = "created"
CHANGED: Final = "changed"
DELETED: Final = "deleted"

_UNIT_SECONDS: Final = {
    "w": 604_800,
    "d": 86_400,
    "h": 3600,
    "m": 60,
    "s": 1,
}
_DURATION: Final = re.compile(
    "(?=.)" + "".join(f"([0-9]{{1,9}}{unit})?" for unit in _UNIT_SECONDS)
)
_VARIABLE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def load(path: Path) -> tuple[dict[str, Declared], dict[str, str]]:
    """The checks of a file by their names, and the old names of renamed ones by their new ones.

    Raises `StartupError` for a file that can't be read or has errors. The shortest period of the
    key's tier is known to the server alone.
    """
    content = read_toml(path)
    defaults = content.pop("defaults", {})
    tables = content.pop("check", [])
    are_lists = isinstance(tables, list) and all(
        isinstance(it, dict) for it in [defaults, *tables]
    )
    if content or not are_lists:
        raise StartupError(
            f"{path}: there must be tables [[check]] and [defaults], nothing else"
        )
    checks: dict[str, Declared] = {}
    renamed: dict[str, str] = {}
    names: set[str] = set()
    for number, table in enumerate(tables, 1):
        where = f"{path}, check {number}"
        try:
            check, was = _declared({**defaults, **table})
        except Invalid as invalid:
            raise StartupError(
                f"{where}: {sentences_of(invalid)}"
            ) from None
        name = check["name"]
        for one in filter(None, (name, was)):
            if one in names:
                raise StartupError(
                    f"{where}: {one!r} is already the name of a check, or was"
                )
            names.add(one)
        checks[name] = check
        if was:
            renamed[name] = was
    return checks, renamed


def _declared(table: Declared) -> tuple[Declared, str]:
    """A check of the file, and its old name, empty without one. Raises `Invalid`."""
    values = {
        field: plain(field, value) for field, value in table.items()
    }
    was = values.pop("was", "-")
    if not isinstance(was, str) or not was.strip():
        raise _invalid("The field was must be the old name of the check.")
    settings = validated(
        values, 1, partial(refused_url, allow_private=True)
    )._asdict()
    check = {
        field: value
        for field, value in settings.items()
        if field in values
    }
    return check, was.strip() if "was" in table else ""


def sentences_of(invalid: Invalid) -> str:
    """What is wrong with each field."""
    told = [wrong["error"] for wrong in invalid.fields]
    return " ".join(told) or invalid.sentence


def plain(field: str, value: Any) -> Any:
    """A value of the file as the API takes it: a duration in seconds, a URL from the environment.

    `"1h30m"` is 5400, `"$CHAT"` the variable CHAT. An empty text is None for what a check may lack,
    because TOML has no null to override one in `[defaults]`. Raises `Invalid`.
    """
    if value == "" and field not in REQUIRED:
        return None
    if isinstance(value, str) and field.endswith("_seconds"):
        return seconds_of(field, value)
    variable = field == "webhook_url" and _VARIABLE.fullmatch(str(value))
    if not variable:
        return value
    url = os.environ.get(variable[1], "").strip()
    if not url:
        raise _invalid(
            f"The environment has no variable {variable[1]} for {field}."
        )
    return url


def seconds_of(field: str, duration: str) -> int:
    """The seconds of a duration such as `1h30m`. Raises `Invalid` for another text."""
    found = _DURATION.fullmatch(duration)
    if not found:
        raise _invalid(
            f'The field {field} must be seconds, or a duration such as "1d" or "1h30m".'
        )
    seconds = 0
    for part in filter(None, found.groups()):
        seconds += int(part[:-1]) * _UNIT_SECONDS[part[-1]]
    return seconds


def _invalid(sentence: str) -> Invalid:
    return Invalid("invalid_field", sentence)


def steps(
    present: list[CheckJson],
    checks: dict[str, Declared],
    renamed: dict[str, str],
    *,
    prune: bool,
) -> list[Step]:
    """The steps from the present checks to the declared ones. Without `prune`, others stay.

    Deletions come before creations: they make room under the limit of the key's tier. Raises
    `StartupError` if several checks have one of the declared names, or an old name of one.
    """
    new_names = {was: name for name, was in renamed.items()}
    known: dict[str, CheckJson] = {}
    others: list[CheckJson] = []
    for check in present:
        name = new_names.get(check["name"], check["name"])
        if name not in checks:
            others.append(check)
        elif name in known:
            found = f"the server has two checks named {name!r}, or as it was named before"
            raise StartupError(f"{found}; rename or delete one of them")
        else:
            known[name] = check
    planned: list[Step] = []
    new: list[Step] = []
    for name, wanted in checks.items():
        if name not in known:
            new.append((CREATED, {"name": name}, wanted))
            continue
        check = known[name]
        changes = {
            field: value
            for field, value in wanted.items()
            if check.get(field) != value
        }
        if changes:
            planned.append((CHANGED, check, changes))
    if prune:
        planned += [(DELETED, check, {}) for check in others]
    return planned + new


def perform(api: Api, step: Step) -> str:
    """Do a step, and return what a person should know of it. A check that others change stays so.

    Then, as for each error of the server, it raises `Refused`.
    """
    deed, check, values = step
    if deed == CREATED:
        made = with_texts(
            api.ask("POST", "/checks", values).get("check"), "ping_url"
        )
        return str(made["ping_url"])
    if deed == DELETED:
        api.ask("DELETE", path_of(check), version=check.get("version"))
        return ""
    api.ask("PATCH", path_of(check), values, check.get("version"))
    shown = {
        name: f"{check.get(name)} -> {value}"
        for name, value in values.items()
    }
    if "webhook_url" in values:
        shown["webhook_url"] = "changed"
    return ", ".join(f"{name} {change}" for name, change in shown.items())
