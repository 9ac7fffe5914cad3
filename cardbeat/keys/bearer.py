"""The key in a request's header `Authorization: Bearer ...` (RFC 6750)."""

from collections.abc import Callable
from functools import partial

from cardbeat.keys.key import Key, key_missing, require_scope
from cardbeat.keys.store import Keys, hash_of
from cardbeat.web.message import Request


class Bearer:
    """The guard of a route: accepts a known key of one of the scopes, or of any if none is given.

    `of_cards_key` is the sentence for a cards key, where the usual one does not fit.
    """

    def __init__(self, keys: Keys, *scopes: str, of_cards_key: str | None = None) -> None:
        self._keys = keys
        self._scopes = scopes
        self._of_cards_key = of_cards_key
        self.refuses = (401, 403) if scopes else (401,)

    def find(self, request: Request, work_soon: Callable[[Callable[[], None]], None]) -> Key | None:
        """The key, if it is in the cache."""
        key = self._keys.find_cached(_hash_in(request), partial(work_soon, self._keys.renew))
        if key is not None:
            require_scope(key, self._scopes, self._of_cards_key)
        return key

    def look_up(self, request: Request) -> Key:
        """The key, read from the database if need be."""
        return self._keys.authenticate(_hash_in(request), self._scopes, self._of_cards_key)

    def name_of(self, request: Request) -> str | None:
        """The queue of the key's requests, if the key is cached."""
        key = self._keys.last_known(_hash_in(request))
        return None if key is None else key.queue


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
