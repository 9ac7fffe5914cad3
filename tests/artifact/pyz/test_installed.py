"""The package as it is published: built, checked, and installed from the wheel."""

import re
import sys
import tarfile
import zipfile

import pytest

from cardbeat import __version__
from tests.kit.artifact import (
    ROOT,
    clean_environment,
    copy_of_the_tree,
    environment_with_pillow,
    ran,
)
from tests.kit.documentation import block
from tests.kit.lists import each


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What `python -m build` prints, and the folder of its two files, the wheel from the other."""
    tree = copy_of_the_tree(tmp_path_factory.mktemp("built") / "tree")
    target = tmp_path_factory.mktemp("dist")
    build = ("-m", "build", "--no-isolation", "--outdir", target, tree)
    done = ran(sys.executable, *build)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr, target


@pytest.fixture(scope="module")
def wheel(built):
    (wheel,) = built[1].glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The `cardbeat` that pip puts into an environment which holds nothing else but Pillow."""
    python = environment_with_pillow(tmp_path_factory.mktemp("installed"))
    pip = ["-m", "pip", "--python", python, "--disable-pip-version-check"]
    options = ("install", "-q", "--no-index", "--no-deps", wheel)
    done = ran(sys.executable, *pip, *options)
    assert done.returncode == 0, done.stderr
    return python.with_name("cardbeat")


def test_the_build_warns_of_nothing_and_twine_finds_nothing_wrong(built):
    printed, folder = built
    assert not re.search("deprecat|warning", printed, re.IGNORECASE)
    files = sorted(folder.iterdir())
    assert each(files, "suffix") == [".whl", ".gz"]
    checked = ran(
        sys.executable, "-m", "twine", "check", "--strict", *files
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_wheel_holds_what_the_artifact_holds(wheel, pyz):
    def package(file):
        return {
            name
            for name in zipfile.ZipFile(file).namelist()
            if name.startswith("cardbeat/")
        }

    assert package(wheel) == {
        name for name in package(pyz) if not name.endswith(".pyc")
    }
    assert "cardbeat/openapi.json" in package(wheel)


def test_the_source_archive_leaves_the_making_of_fonts_out_too(built):
    (archive,) = built[1].glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = files.getnames()
    assert f"cardbeat-{__version__}/LICENSE" in names
    assert not any("/fonts/build" in name for name in names)


def test_each_way_to_start_it_gives_the_same_help(
    installed, python, pyz, tmp_path
):
    as_module = (sys.executable, "-m", "cardbeat")
    environment = clean_environment(PYTHONPATH=str(ROOT))
    texts = {
        ran(*command, "--help", cwd=tmp_path, env=environment).stdout
        for command in ((installed,), as_module, (python, pyz))
    }
    (text,) = texts
    assert text.startswith("usage: cardbeat [serve]")


def test_a_process_that_draws_finds_the_package(installed, tmp_path):
    (tmp_path / "a.html").write_text("<title>A</title>")
    done = ran(installed, "cards", ".", "--output", "cards", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cards" / "a.png").exists()


def test_pipx_and_uvx_are_given_the_wheel_that_is_built(wheel):
    file = f"./dist/{wheel.name}"
    expected = f"pipx install {file}\nuvx --from {file} cardbeat\n"
    printed = block("running", "console", "pipx")
    assert re.sub(" +", " ", printed) == expected
