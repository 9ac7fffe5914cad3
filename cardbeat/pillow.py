"""Whether this Python has the Pillow that cards need, and how this system gets it."""

import sys
from pathlib import Path
from typing import Final

OLDEST: Final = (9, 4)
OS_RELEASE: Final = Path("/etc/os-release")

_PIP: Final = "python -m pip install Pillow"
_PACKAGES: Final = {
    "debian": "apt install python3-pil",
    "ubuntu": "apt install python3-pil",
    "fedora": "dnf install python3-pillow",
    "alpine": "apk add py3-pillow",
    "arch": "pacman -S python-pillow",
}


def problem(os_release: Path = OS_RELEASE, prefix: str = sys.prefix) -> str | None:
    """What keeps this Python from drawing cards, and how to mend it, in one line; None where nothing does.

    `prefix` is where the interpreter is installed.
    """
    try:
        from PIL import __version__ as version  # noqa: PLC0415 - it may be missing
    except ImportError:
        return f"Pillow is missing; install it: {_install_command(os_release, prefix)}"
    if tuple(map(int, version.split(".")[:2])) < OLDEST:
        return f"Pillow {version} is too old, cardbeat needs 9.4 or newer; upgrade it: {_upgrade_command(prefix)}"
    return None


def _install_command(os_release: Path, prefix: str) -> str:
    """The system's package for the system's own Python, whose folder pip must not touch; pip for any other."""
    if not _is_the_systems(prefix):
        return _PIP
    return next((_PACKAGES[name] for name in _system_names(os_release) if name in _PACKAGES), _PIP)


def _upgrade_command(prefix: str) -> str:
    if _is_the_systems(prefix):
        return "python3 -m venv .venv && .venv/bin/pip install Pillow, and run cardbeat with .venv/bin/python"
    return "python -m pip install --upgrade Pillow"


def _is_the_systems(prefix: str) -> bool:
    """A virtual environment and a Python built by hand, as in the images named python, stand elsewhere."""
    return prefix == "/usr"


def _system_names(os_release: Path) -> list[str]:
    """ID and then ID_LIKE of os-release(5): this system and those it is like. Nothing where there is no such file."""
    try:
        lines = os_release.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    values = {name: value.strip("\"'") for name, _, value in (line.partition("=") for line in lines)}
    return f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".split()
