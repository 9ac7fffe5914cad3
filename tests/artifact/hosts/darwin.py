"""Run a program as on macOS: `darwin.py FILE ...`.

`cardbeat/host/system.py` alone asks what system it runs on. It sees another `sys.platform` here, and
none of the names that it uses and that Linux alone has: mypy finds those for each platform.
"""

import builtins
import runpy
import select
import selectors
import sys
import types

LACKING = {"os.sched_getaffinity", "socket.TCP_USER_TIMEOUT"}
GIVEN = {
    "sys": {"platform": "darwin"},
    "fcntl": {"F_FULLFSYNC": 51},
    "os": {},
    "socket": {},
}


class Seen(types.ModuleType):
    """A module as on the other system."""

    def __init__(self, module):
        super().__init__(module.__name__)
        self.__dict__.update(GIVEN[module.__name__], module=module)

    def __getattr__(self, name):
        if f"{self.__name__}.{name}" in LACKING:
            raise AttributeError(name)
        return getattr(self.module, name)


def importing(name, globals=None, locals=None, fromlist=(), level=0):
    module = real_import(name, globals, locals, fromlist, level)
    is_asking = (globals or {}).get("__name__") == "cardbeat.host.system"
    return Seen(module) if is_asking and name in GIVEN else module


del select.epoll
selectors.DefaultSelector = selectors.PollSelector
real_import = builtins.__import__
builtins.__import__ = importing
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
