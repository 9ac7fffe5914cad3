"""A key and a check of it, for what is done with them."""

import pytest

from cardbeat import cli
from tests.support import GOOD_CHECK


@pytest.fixture
def key(app):
    return app.checks_key()


@pytest.fixture
def check(app, key):
    return app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]


@pytest.fixture
def checks(capsys):
    """Runs the command `checks`; its exit status, and what it printed on stdout and stderr."""

    def run(*argv):
        status = cli.main(["checks", *map(str, argv)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run
