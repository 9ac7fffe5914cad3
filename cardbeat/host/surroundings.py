"""What a host has beside Python: Pillow, certificates, and a service manager."""

import contextlib
import os
from pathlib import Path
from typing import Final

from cardbeat.errors import StartupError
from cardbeat.host.system import send_datagram

OLDEST_PILLOW: Final = (9, 4)
NONE_TRUSTED: Final = (
    "this host trusts no certificate authority, so no https webhook gets its alerts; install"
    " ca-certificates, or set SSL_CERT_FILE"
)


def require_pillow() -> None:
    """Raise `StartupError` if Pillow is missing, broken or too old, with what repairs it."""
    # Many systems' own Pythons let pip install nothing outside of a virtual environment.
    how = (
        "install the system's package (python3-pil, python3-pillow or py3-pillow), or, in a"
        " virtual environment, run: pip install Pillow"
    )
    try:
        # The server imports what draws after its first answer: its faults must be found here.
        from PIL import __version__, _imaging, _imagingft  # noqa: F401, PLC0415
    except ImportError as error:
        raise StartupError(
            f"Pillow is missing or broken ({error}); {how}"
        ) from None
    if tuple(map(int, __version__.split(".")[:2])) < OLDEST_PILLOW:
        found = f"Pillow {__version__} is too old, cardbeat needs 9.4 or newer"
        raise StartupError(f"{found}; {how}")


def trusts_some() -> bool:
    """Whether the host trusts a certificate authority. Else no `https` webhook can be posted."""
    import ssl  # noqa: PLC0415 - takes long, and the start must not wait for it

    if ssl.create_default_context().get_ca_certs():
        return True
    # Certificates in a folder are loaded when they are needed, so they are not counted above.
    folder = ssl.get_default_verify_paths().capath
    return folder is not None and any(Path(folder).glob("*.0"))


def tell_manager(state: str) -> None:
    """Send a state such as `READY=1` to systemd, if it asked for it. Does not wait or fail."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith("@"):
        # Linux's abstract sockets begin with a NUL, which no variable can hold.
        address = f"\0{address[1:]}"
    if address:
        with contextlib.suppress(OSError):
            send_datagram(address, state.encode())


def seconds_between_signs() -> float | None:
    """Seconds after which systemd wants the next `WATCHDOG=1`, half of its limit; None for none."""
    limit = os.environ.get("WATCHDOG_USEC", "")  # in microseconds
    return int(limit) / 2e6 if limit.isdigit() else None
