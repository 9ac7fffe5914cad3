"""A key and a check of it, for what is done with them."""

import pytest

from tests.support import GOOD_CHECK


@pytest.fixture
def key(app):
    return app.checks_key()


@pytest.fixture
def check(app, key):
    return app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]
