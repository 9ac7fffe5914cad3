"""Starts the command line, as `python -m cardbeat` and at the root of the zipapp. Any Python can read this file."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older one may well be what runs it
    sys.stderr.write("cardbeat: needs Python 3.11 or newer, this is %d.%d\n" % sys.version_info[:2])  # noqa: UP031
    sys.exit(2)

from cardbeat.cli import main

if __name__ == "__main__":
    sys.exit(main())
