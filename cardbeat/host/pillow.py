"""The one dependency: whether this Python has a Pillow that is new enough."""

import sys
from typing import Final

from cardbeat.errors import StartupError

OLDEST: Final = (9, 4)

_IN_VENV: Final = "run: python -m pip install --upgrade Pillow"
_ELSEWHERE: Final = (
    "install the system's package (python3-pil, python3-pillow or py3-pillow), or run: "
    "python3 -m venv .venv && .venv/bin/pip install Pillow, and use .venv/bin/python"
)


def require(*, in_venv: bool = sys.prefix != sys.base_prefix) -> None:
    """Raise `StartupError` if Pillow is missing or too old, with what repairs it.

    Outside of a virtual environment many systems' own Pythons let pip install nothing.
    """
    how = _IN_VENV if in_venv else _ELSEWHERE
    try:
        # The server imports what draws after its first answer: its faults must be found here.
        from PIL import __version__, _imaging, _imagingft  # noqa: F401, PLC0415
    except ImportError as error:
        raise StartupError(f"Pillow is missing or broken ({error}); {how}") from None
    if tuple(map(int, __version__.split(".")[:2])) < OLDEST:
        found = f"Pillow {__version__} is too old, cardbeat needs 9.4 or newer"
        raise StartupError(f"{found}; {how}")
