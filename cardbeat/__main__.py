"""Starts the command line: `python -m cardbeat`, and the zipapp. Any Python 3 can parse it."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python may run this file
    problem = "cardbeat: needs Python 3.11 or newer, this is %d.%d\n"
    sys.stderr.write(problem % sys.version_info[:2])
    sys.exit(2)

from cardbeat.cli import main

if __name__ == "__main__":
    sys.exit(main())
