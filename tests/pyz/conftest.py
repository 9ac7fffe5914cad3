"""The package built as it is published, and installed."""

import sys

import pytest

from tests.artifact import copy_of_the_tree, environment_with_pillow, ran


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """What `python -m build` prints, and the folder of its two files, the wheel from the other."""
    tree = copy_of_the_tree(tmp_path_factory.mktemp("built") / "tree")
    target = tmp_path_factory.mktemp("dist")
    done = ran(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, tree)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr, target


@pytest.fixture(scope="session")
def wheel(built):
    (wheel,) = built[1].glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The `cardbeat` that pip puts into an environment which holds nothing else but Pillow."""
    python = environment_with_pillow(tmp_path_factory.mktemp("installed"))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    done = ran(*pip, "install", "-q", "--no-index", "--no-deps", wheel)
    assert done.returncode == 0, done.stderr
    return python.with_name("cardbeat")
