"""What systemd, or what else started this process, is told: that it is ready, alive or stopping (sd_notify(3))."""

import contextlib
import os

from cardbeat.host.system import send_datagram


def tell(state: str) -> None:
    """Send a state such as `READY=1`, if a service manager asked for it. Does not wait, and never fails."""
    address = os.fsencode(os.environ.get("NOTIFY_SOCKET", ""))
    if address:
        with contextlib.suppress(OSError):
            # Linux's abstract sockets begin with a NUL, which no variable can hold.
            send_datagram(b"\0" + address[1:] if address.startswith(b"@") else address, state.encode())


def seconds_between_signs() -> float | None:
    """Seconds after which it wants the next `WATCHDOG=1`, half of its limit; None if it wants none."""
    limit = os.environ.get("WATCHDOG_USEC", "")
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    # Microseconds; more digits are no number that systemd sends.
    return int(limit) / 2e6 if is_ours and limit.isascii() and limit.isdigit() and 0 < len(limit) < 19 else None
