"""Marks for what not every system has. On Linux they skip nothing, but where root is needed."""

import os
import sys

import pytest

WINDOWS = sys.platform == "win32"
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

if sys.platform == "win32":
    UNLIMITED = -1
else:
    import resource

    UNLIMITED = resource.RLIM_INFINITY

MODES = pytest.mark.skipif(
    WINDOWS, reason="Windows has no modes and owners of files"
)
ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
SPARSE = pytest.mark.skipif(
    WINDOWS, reason="Windows writes every byte of a file that is made longer"
)
PIPES = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders"
)
LINKS = pytest.mark.skipif(
    WINDOWS, reason="on Windows only administrators can make links"
)
STOPS = pytest.mark.skipif(
    WINDOWS,
    reason="Windows sends no SIGTERM; tests/artifact/hosts stops a server there",
)
HANG_UPS = pytest.mark.skipif(WINDOWS, reason="Windows has no SIGHUP")
IN_USE = pytest.mark.skipif(
    WINDOWS,
    reason="Windows does not let a file in use be removed, renamed or replaced",
)
FULL_DISK = pytest.mark.skipif(
    not os.path.exists("/dev/full"),
    reason="only Linux has a device that is always full",
)
ARGUMENTS = pytest.mark.skipif(
    WINDOWS, reason="on Windows arguments are always text"
)
LIMITS = pytest.mark.skipif(
    WINDOWS, reason="Windows sets no limits on a process's files"
)
DESCRIPTORS = pytest.mark.skipif(
    not os.path.isdir("/dev/fd"),
    reason="Windows does not list open descriptors",
)
