"""Marks for what not every system has. On Linux they skip nothing, but without Raqm, or where root is needed."""

import os
import sys
from typing import Final

import pytest
from PIL import features

from cardbeat.host.system import current_user

WINDOWS = sys.platform == "win32"
IS_ROOT = current_user() == 0

if sys.platform == "win32":
    UNLIMITED: Final = -1
else:
    import resource

    UNLIMITED: Final = resource.RLIM_INFINITY

MISSING = "(File|Path) not found|The system cannot find the (file|path)" if WINDOWS else "No such file"
"""A pattern of what the system says of a file that is not there."""

MODES = pytest.mark.skipif(WINDOWS, reason="Windows has no modes and owners of files")
ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
SPARSE = pytest.mark.skipif(WINDOWS, reason="Windows writes every byte of a file that is made longer")
PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
LONGEST = pytest.mark.skipif(not hasattr(os, "pathconf"), reason="Windows does not tell how long a name may be")
LINKS = pytest.mark.skipif(WINDOWS, reason="on Windows only administrators can make links")
STOPS = pytest.mark.skipif(WINDOWS, reason="Windows sends no SIGTERM; tests/hosts stops a server there")
HANG_UPS = pytest.mark.skipif(WINDOWS, reason="Windows has no SIGHUP")
IN_USE = pytest.mark.skipif(WINDOWS, reason="Windows does not let a file in use be removed, renamed or replaced")
FULL_DISK = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
ARGUMENTS = pytest.mark.skipif(WINDOWS, reason="on Windows arguments are always text")
PASSED_SOCKETS = pytest.mark.skipif(WINDOWS, reason="a process on Windows inherits no descriptor of a socket")
PAGE_CACHE = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whether a file is in memory")
LIMITS = pytest.mark.skipif(WINDOWS, reason="Windows sets no limits on a process's files")
DESCRIPTORS = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="Windows does not list open descriptors")
RAQM = pytest.mark.skipif(not features.check("raqm"), reason="Pillow finds no FriBiDi here, so it has no Raqm")
