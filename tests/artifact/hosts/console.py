"""Runs a program on Windows in a console of its own: `console.py FILE ...` with this same Python.

A line on stdin presses Ctrl-C there; the end of stdin kills the program. Its exit status is handed on.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

CTRL_C = 0
EVERYBODY_AT_THIS_CONSOLE = 0


def main():
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.FreeConsole()
    if not kernel32.AllocConsole():
        raise ctypes.WinError(ctypes.get_last_error())
    # It reaches this process too.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    # A new console has taken the place of the streams.
    child = subprocess.Popen(
        [sys.executable, *sys.argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=1,
        stderr=2,
    )
    threading.Thread(
        target=obey, args=(kernel32, child), daemon=True
    ).start()
    # A wait without an end would hold the handler up.
    while child.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.05)
    os._exit(child.returncode)


def obey(kernel32, child):
    while os.read(0, 1):
        kernel32.GenerateConsoleCtrlEvent(
            CTRL_C, EVERYBODY_AT_THIS_CONSOLE
        )
    child.kill()


main()
