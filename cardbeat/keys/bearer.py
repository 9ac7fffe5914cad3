"""The key in a request's header `Authorization: Bearer ...` (RFC 6750): the one place that says 401 and 403 for it."""

from collections.abc import Callable
from functools import partial

from cardbeat.keys.key import Key, key_missing, key_out_of_scope
from cardbeat.keys.store import Keys, hash_of
from cardbeat.web.message import Request

_HOW = "Send the API key in a header: Authorization: Bearer sk_..."


class Bearer:
    """Guards routes: lets in whoever sends a known key of a scope, or any known key without one.

    `wrong_scope` is what the others are told, where that is not what `Keys` says to them.
    """

    def __init__(self, keys: Keys, scope: str | None = None, wrong_scope: str | None = None) -> None:
        self._keys = keys
        self._scope = scope
        self._wrong_scope = wrong_scope

    def find(self, request: Request, work_soon: Callable[[Callable[[], None]], None]) -> Key | None:
        key = self._keys.find_cached(hash_of(_value_in(request)), partial(work_soon, self._keys.renew))
        if key is not None and self._scope not in (None, key.scope):
            raise key_out_of_scope(self._scope, self._wrong_scope)
        return key

    def look_up(self, request: Request) -> Key:
        return self._keys.authenticate_value(_value_in(request), self._scope, self._wrong_scope)

    def name_of(self, request: Request) -> str | None:
        key = self._keys.last_known(hash_of(_value_in(request)))
        return None if key is None else key.id


def key_of(request: Request) -> Key:
    """The key that a `Bearer` has found."""
    if not isinstance(request.key, Key):
        raise TypeError("the request's route has no guard")
    return request.key


def _value_in(request: Request) -> str:
    """The key's value. Raises `Refusal` 401 where none is sent."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    value = value.strip()
    if scheme.lower() != "bearer":
        raise key_missing(_HOW)
    if not value:
        raise key_missing()
    return value
