"""Run a program whose package sees the standard library of another system: `hidden.py SYSTEM NAMES PACKAGE FILE ...`.

NAMES is a JSON file: module -> names that the system lacks. They are hidden from the package alone, by a stand-in for
each module that it imports: the standard library itself, and Pillow, need some of them to work on this system. What
the other system has and this one lacks is there only where the package uses it, made of what there is here.

Not hidden: members of classes written in C (`os.stat_result.st_blocks`), what a name does differently there
(`os.replace`, the separators of paths), and whatever the standard library does inside.
"""

import builtins
import contextlib
import json
import runpy
import sys
import types
from pathlib import Path


class Absent:
    """A member that a class does not have."""

    def __init__(self, name):
        self.name = name

    def __get__(self, instance, owner):
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")


class StandIn(types.ModuleType):
    """A module as the package sees it."""

    def __init__(self, module, hidden, given):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(_module=module, _hidden=hidden, **given)

    def __getattr__(self, name):
        if name in self._hidden:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(self._module, name)
        return seen(value) if isinstance(value, types.ModuleType) else value

    def __setattr__(self, name, value):
        setattr(self._module, name, value)


def msvcrt():
    import fcntl
    import os

    def locking(descriptor, mode, count):
        assert (os.lseek(descriptor, 0, os.SEEK_CUR), count) == (0, 1)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_UN if mode == module.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    module = types.ModuleType("msvcrt")
    module.LK_NBLCK, module.LK_UNLCK, module.locking = 2, 0, locking
    return module


def select_of_windows(read, write, other, seconds=None):
    import select

    if max(len(read), len(write)) > 512:
        raise ValueError("too many file descriptors in select()")
    return select.select(read, write, other, seconds)


def given_by(system):
    """What the system has and this one has not or has otherwise: module -> name -> value."""
    import os
    import selectors
    import signal
    import socket

    if system == "win32":
        return {
            "sys": {"platform": "win32"},
            "os": {"name": "nt", "O_BINARY": 0, "O_NOINHERIT": os.O_CLOEXEC},
            "select": {"select": select_of_windows},
            "selectors": {"DefaultSelector": selectors.SelectSelector},
            # Windows' own names, each as what comes nearest to it here.
            "signal": {"SIGBREAK": signal.SIGUSR2, "CTRL_C_EVENT": 0, "CTRL_BREAK_EVENT": 1},
            "socket": {"SO_EXCLUSIVEADDRUSE": socket.SO_REUSEADDR},
        }
    return {
        "sys": {"platform": system},
        # There is no kqueue here to try; the next best that macOS and FreeBSD have.
        "selectors": {"DefaultSelector": selectors.PollSelector},
        **({"fcntl": {"F_FULLFSYNC": 51}} if system == "darwin" else {}),
    }


def seen(module):
    """A module as the package sees it: itself where it is the same on both systems."""
    name = module.__name__
    if name not in NAMES and name not in GIVEN:
        return module
    if name not in stand_ins:
        stand_ins[name] = StandIn(module, set(NAMES.get(name, ())), GIVEN.get(name, {}))
    return stand_ins[name]


def importing(name, globals=None, locals=None, fromlist=(), level=0):
    importer = str((globals or {}).get("__name__"))
    if not (importer == "__main__" or importer.split(".", maxsplit=1)[0] == PACKAGE):
        return real_import(name, globals, locals, fromlist, level)
    if name in MADE:
        return MADE[name]
    if NAMES.get(name) == ["*"]:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return seen(real_import(name, globals, locals, fromlist, level))


def hide_members():
    """In classes written in Python, whoever made their instances. Nothing else in a server uses those."""
    for name, hidden in NAMES.items():
        if name in sys.modules:
            for member in (entry for entry in hidden if "." in entry):
                owner, _, attribute = member.partition(".")
                held = getattr(sys.modules[name], owner, None)
                if isinstance(held, type) and hasattr(held, attribute):
                    hide_member(held, attribute)


def hide_member(owner, attribute):
    with contextlib.suppress(AttributeError, TypeError):
        setattr(owner, attribute, Absent(attribute))


if __name__ == "__main__":
    SYSTEM, names, PACKAGE, *sys.argv = sys.argv[1:]
    NAMES = json.loads(Path(names).read_text("utf-8"))
    GIVEN = given_by(SYSTEM)
    MADE = {"msvcrt": msvcrt()} if SYSTEM == "win32" else {}
    stand_ins: dict[str, StandIn] = {}
    real_import = builtins.__import__
    hide_members()
    builtins.__import__ = importing
    runpy.run_path(sys.argv[0], run_name="__main__")
