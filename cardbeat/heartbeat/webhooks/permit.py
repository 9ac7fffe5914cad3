"""The limits of one attempt to deliver an alert. They are lower while other alerts wait."""

from typing import Protocol

LONG_SECONDS = 10.0
"""Longest time of a post."""
BRIEF_SECONDS = 2.0
"""Longest time of a brief post. A receiver that takes longer counts as slow, and gets a long post next."""


class Permit(Protocol):
    """The permit of one attempt. Its seconds and its address may change with each `enter`."""

    key: str
    """The key whose alert it is: lookups of names are shared fairly among keys."""
    is_granted: bool
    """Whether the operator chose the tier of that key. Then its receivers may use TLS 1.3."""

    @property
    def seconds(self) -> float:
        """Time for the whole attempt: lookup, connection, TLS, sending and the whole answer."""

    @property
    def is_brief(self) -> bool:
        """Whether `seconds` is less than `LONG_SECONDS`, so that a silent receiver gets another, longer attempt."""

    @property
    def address(self) -> str | None:
        """The address entered last, by its name."""

    def enter(self, address: str) -> bool:
        """Whether it may connect to this address, given as `address_name`. Leaves the address entered before."""

    def leave_turn(self) -> None:
        """Note that the attempt waits from now on, so that another may compute (`Couriers`)."""


class Postponed(Exception):
    """The attempt was cut off by its permit. It does not count, and is to be repeated."""


class Late(Postponed):
    """The attempt was brief, and took too long. It is to be repeated as a long one."""
