"""The key in a request's header `Authorization: Bearer ...` (RFC 6750)."""

from collections.abc import Callable
from functools import partial

from cardbeat.keys.key import Key, key_missing, require_scope
from cardbeat.keys.store import Keys, hash_of
from cardbeat.web.message import Request


class Bearer:
    """The guard of a route: accepts a known key of `scope`, or of both scopes if that is None.

    `wrong_scope` is the sentence for a key of the other scope, where the usual one does not fit.
    """

    def __init__(self, keys: Keys, scope: str | None = None, wrong_scope: str | None = None) -> None:
        self._keys = keys
        self._scope = scope
        self._wrong_scope = wrong_scope
        self.refuses = (401,) if scope is None else (401, 403)

    def find(self, request: Request, work_soon: Callable[[Callable[[], None]], None]) -> Key | None:
        """The key, if it is in the cache."""
        key = self._keys.find_cached(_hash_in(request), partial(work_soon, self._keys.renew))
        if key is not None:
            require_scope(key, self._scope, self._wrong_scope)
        return key

    def look_up(self, request: Request) -> Key:
        """The key, read from the database if need be."""
        return self._keys.authenticate(_hash_in(request), self._scope, self._wrong_scope)

    def name_of(self, request: Request) -> str | None:
        """The id of the key, if it is cached. Requests are queued by it."""
        key = self._keys.last_known(_hash_in(request))
        return None if key is None else key.id


def key_of(request: Request) -> Key:
    """The key that the guard of the request's route has found."""
    if not isinstance(request.key, Key):
        raise TypeError("the request's route has no guard")
    return request.key


def _hash_in(request: Request) -> bytes:
    """The hash of the key's value. Raises `Refusal` 401 if the request has none."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise key_missing("Send the API key in a header: Authorization: Bearer sk_...")
    if not value.strip():
        raise key_missing()
    return hash_of(value.strip())
