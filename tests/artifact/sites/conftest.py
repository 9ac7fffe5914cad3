"""What npm installs for the tests of this folder."""

import shutil
import subprocess

import pytest

PACKAGES = ("@11ty/eleventy@3", "react@19", "react-dom@19")


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory):
    """The folder into which npm has installed what the sites need."""
    folder = tmp_path_factory.mktemp("npm")
    (folder / "package.json").write_text("{}")
    options = (
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefer-offline",
        "--loglevel=error",
    )
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail(
            "These tests install packages with npm, and there is none: apt-get install npm"
        )
    subprocess.run(
        [npm, "install", *options, *PACKAGES],
        cwd=folder,
        check=True,
        timeout=120,
    )
    return folder / "node_modules"
