"""The package built as it is published, and installed."""

import shutil
import subprocess
import sys

import pytest

from tests.artifact import ROOT, clean_environment, environment_with_pillow

SOURCES = ("cardbeat", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """What `python -m build` prints, and the folder of the two files it makes, the wheel from the other."""
    tree, target = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    ran = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, tree],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr, target


@pytest.fixture(scope="session")
def wheel(built):
    (wheel,) = built[1].glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The `cardbeat` that pip puts into an environment which holds nothing else but Pillow."""
    python = environment_with_pillow(tmp_path_factory.mktemp("installed"))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-q", "--no-index", "--no-deps", wheel], check=True)
    return python.with_name("cardbeat")
