"""What systemd is told: that this process is ready, alive or stopping (sd_notify(3))."""

import contextlib
import os

from cardbeat.host.system import send_datagram


def tell(state: str) -> None:
    """Send a state such as `READY=1`, if a service manager asked for it. Does not wait or fail."""
    address = os.fsencode(os.environ.get("NOTIFY_SOCKET", ""))
    if address.startswith(b"@"):
        # Linux's abstract sockets begin with a NUL, which no variable can hold.
        address = b"\0" + address[1:]
    if address:
        with contextlib.suppress(OSError):
            send_datagram(address, state.encode())


def seconds_between_signs() -> float | None:
    """Seconds after which it wants the next `WATCHDOG=1`, half of its limit; None for none."""
    limit = os.environ.get("WATCHDOG_USEC", "")
    process = str(os.getpid())
    if os.environ.get("WATCHDOG_PID", process) != process:
        return None
    # Microseconds; more digits are no number that systemd sends.
    return int(limit) / 2e6 if limit.isascii() and limit.isdigit() and len(limit) < 19 else None
