"""What an attempt to deliver an alert may do: so long as others wait, less than it would like."""

from typing import Protocol


class Permit(Protocol):
    """Of one attempt. Its time and its address may change with each `enter`."""

    @property
    def key(self) -> str:
        """In whose turn the host's name is looked up."""

    @property
    def seconds(self) -> float:
        """For the attempt in all: name, connection, TLS, sending and the whole answer."""

    @property
    def is_brief(self) -> bool:
        """Whether there is less time than a receiver may take, so that another attempt must follow a silent one."""

    @property
    def address(self) -> str | None:
        """The address entered last, by its name."""

    def enter(self, address: str) -> bool:
        """Whether it may connect to this address, by its `address_name`; the one entered before is left."""


class Postponed(Exception):
    """The attempt came to no end within its permit: it does not count, and is to be made anew."""
