"""Checks that this Python has a Pillow that is new enough, and names the command that installs it."""

import sys
from typing import Final

OLDEST: Final = (9, 4)

_PIP: Final = "python -m pip install Pillow"
_PIP_UPGRADE: Final = "python -m pip install --upgrade Pillow"
_OWN_PYTHON: Final = "python3 -m venv .venv && .venv/bin/pip install Pillow, and run cardbeat with .venv/bin/python"
_PACKAGES: Final = {
    "debian": "apt install python3-pil",
    "ubuntu": "apt install python3-pil",
    "fedora": "dnf install python3-pillow",
    "alpine": "apk add py3-pillow",
    "arch": "pacman -S python-pillow",
}


def problem(prefix: str = sys.prefix) -> str | None:
    """One line that says what is wrong with Pillow here and which command repairs it; None if it is fine.

    `prefix` is the folder in which this Python is installed.
    """
    # The Python of the system's packages, in which pip must not install. Virtual environments have other prefixes.
    is_the_systems = prefix == "/usr"
    try:
        from PIL import __version__ as version  # noqa: PLC0415 - it may be missing
    except ImportError:
        return f"Pillow is missing; install it: {_system_package() if is_the_systems else _PIP}"
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        command = _OWN_PYTHON if is_the_systems else _PIP_UPGRADE
        return f"Pillow {version} is too old, cardbeat needs 9.4 or newer; upgrade it: {command}"
    try:
        # The server imports what draws after its first answer: what makes that fail must be found here.
        from PIL import _imaging, _imagingft  # noqa: F401, PLC0415
    except ImportError as error:
        return f"Pillow {version} can't be loaded: {error}; install it again"
    return None


def _system_package() -> str:
    """The command that installs the system's package; that of pip if the package's name is not known."""
    import platform  # noqa: PLC0415 - needed only if Pillow is missing

    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return _PIP
    # This system, and then those that it resembles.
    names = [release["ID"], *release.get("ID_LIKE", "").split()]
    return next((_PACKAGES[name] for name in names if name in _PACKAGES), _PIP)
