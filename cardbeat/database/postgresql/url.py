"""Reads a PostgreSQL URL, and removes its secrets from errors: PostgreSQL's library quotes what it can't read."""

import re
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cardbeat.passwords import NAMED

_SECRETS: Final = ("password", "sslpassword")
_SHOWN: Final = {*_SECRETS, "host", "hostaddr", "port", "user", "dbname"}
"""Parameters whose values an error may show, and the secrets, which are removed from it."""
_AS_GIVEN: Final = (
    re.compile(r"://[^:/?#@]*:([^/?#@]+)@"),
    re.compile(f"{NAMED}([^&]+)"),
)
"""A password in a URL, with its percent-encoding."""


def parameters_of(url: str) -> Mapping[str, Any]:
    """Name -> value of the URL's parameters. Raises `psycopg.ProgrammingError`, whose text shows no part of it."""
    try:
        return conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise psycopg.ProgrammingError(
            "its URL can't be read; it must be such as postgresql://user:password@host:5432/name?parameter=value, "
            "with parameters that PostgreSQL's library knows"
        ) from None


def safely_told(error: Exception, url: str) -> psycopg.OperationalError:
    """An error of connecting, without the password and without values of the URL's other parameters."""
    text, given = str(error), parameters_of(url)
    for name, value in given.items():
        if name not in _SHOWN and (f'"{value}"' in text or repr(value) in text):
            return psycopg.OperationalError(f"the value of {name} in its URL can't be used")
    if not isinstance(error, psycopg.OperationalError):
        return psycopg.OperationalError("a value in its URL can't be used")
    secrets = [given[name] for name in _SECRETS if given.get(name)]
    secrets += [found for pattern in _AS_GIVEN for found in pattern.findall(url)]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return psycopg.OperationalError(text)
