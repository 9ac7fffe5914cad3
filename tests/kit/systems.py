"""Marks for what not every system has. On Linux they skip nothing, but where root is needed."""

import os
import sys

import pytest

WINDOWS = sys.platform == "win32"
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

if WINDOWS:
    UNLIMITED = -1
else:
    import resource

    UNLIMITED = resource.RLIM_INFINITY


def skip(is_absent, reason):
    return pytest.mark.skipif(is_absent, reason=reason)


MODES = skip(WINDOWS, "Windows has no modes and owners of files")
ROOT = skip(not IS_ROOT, "only root can give files away")
SPARSE = skip(
    WINDOWS, "Windows writes every byte of a file that is made longer"
)
PIPES = skip(not hasattr(os, "mkfifo"), "Windows has no pipes in folders")
LINKS = skip(WINDOWS, "on Windows only administrators can make links")
STOPS = skip(
    WINDOWS,
    "Windows sends no SIGTERM; tests/artifact/hosts stops a server there",
)
HANG_UPS = skip(WINDOWS, "Windows has no SIGHUP")
IN_USE = skip(
    WINDOWS,
    "Windows does not let a file in use be removed, renamed or replaced",
)
FULL_DISK = skip(
    not os.path.exists("/dev/full"),
    "only Linux has a device that is always full",
)
ARGUMENTS = skip(WINDOWS, "on Windows arguments are always text")
LIMITS = skip(WINDOWS, "Windows sets no limits on a process's files")
DESCRIPTORS = skip(
    not os.path.isdir("/dev/fd"), "Windows does not list open descriptors"
)
