"""What the artifact adds to the package: its bytes, its bytecode, and a start without anything else."""

import importlib.util
import marshal
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from cardbeat import __version__
from tests.kit.artifact import (
    ROOT,
    clean_environment,
    copy_of_the_tree,
    is_refused,
    ran,
    starter,
)
from tests.kit.client import ask, cards_key

FAILING = """
import logging, sys
sys.path.insert(0, sys.argv[1])
from cardbeat.clock import utc_text
try:
    utc_text("now")
except TypeError:
    logging.exception("as the server logs it")
"""
BUSY_BUILD = """
import sys
for character in map(chr, range(256)):
    sys.intern(character)
import asyncio, json, sqlite3, cardbeat.service, build_zipapp
build_zipapp.build(build_zipapp.Path("again.pyz"))
"""


@pytest.mark.quick
def test_two_builds_have_the_same_bytes_in_any_folder_and_process(
    pyz, tmp_path
):
    tree = copy_of_the_tree(tmp_path / "-" / "a b")
    environment = os.environ | {"PYTHONHASHSEED": "5"}
    built = ran(
        sys.executable, "-c", BUSY_BUILD, cwd=tree, env=environment
    )
    assert built.returncode == 0, built.stderr
    assert (tree / "again.pyz").read_bytes() == pyz.read_bytes()


@pytest.mark.quick
def test_bytecode_stands_beside_each_module_and_names_files_of_the_artifact_alone(
    pyz,
):
    with zipfile.ZipFile(pyz) as archive:
        names = {
            name for name in archive.namelist() if name.endswith(".py")
        }
        compiled = [
            name for name in archive.namelist() if name.endswith(".pyc")
        ]
        assert {name[:-1] for name in compiled} == names - {
            "__main__.py",
            "cardbeat/__main__.py",
        }
        for name in compiled:
            code = archive.read(name)
            # Not compared with the source, at any time of it.
            assert code[:8] == importlib.util.MAGIC_NUMBER + b"\1\0\0\0"
            assert code[8:16] == importlib.util.source_hash(
                archive.read(name[:-1])
            )
            assert (
                marshal.loads(code[16:]).co_filename
                == f"cardbeat.pyz/{name[:-1]}"
            )
            assert str(ROOT).encode() not in code


@pytest.mark.parametrize(
    "option", ["-q", "-OO", "-I", "--check-hash-based-pycs=always"]
)
def test_a_trace_shows_the_file_in_the_artifact_and_the_line(
    python, pyz, option
):
    options = option.split("=")
    logged = ran(python, *options, "-c", FAILING, pyz).stderr
    assert re.search(
        r"cardbeat\.pyz/cardbeat/clock\.py\", line \d+, in utc_text",
        logged,
    ), logged
    assert "return time.strftime(" in logged


def test_nothing_is_compiled_at_a_start(python, pyz, tmp_path):
    told = ran(python, "-vv", pyz, "keys", "list", cwd=tmp_path).stderr
    assert "cardbeat/cli.pyc" in told
    source = r"# trying .*cardbeat/(?!\S*__(?:main|init)__)\S*\.py$"
    assert not re.findall(source, told, re.MULTILINE)


def other_pythons():
    """Every other version of Python from 3.11 on of this machine, each once."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = {}
    for path in (
        *pyenv.glob("versions/3.*/bin/python"),
        *Path("/usr/bin").glob("python3.??"),
    ):
        # Of the name of its folder, or of its own.
        minor = int(re.search(r"/(?:python)?3\.(\d+)", str(path))[1])
        if minor >= 11:
            found.setdefault((3, minor), path)
    found.pop(sys.version_info[:2], None)
    return list(found.values())


@pytest.mark.parametrize(
    "other", other_pythons(), ids=lambda path: path.parts[-3]
)
def test_a_python_of_another_version_takes_the_source_and_serves(
    other, pyz, tmp_path
):
    # Pillow's compiled part is for one version of Python. A constraint on Pillow is for the
    # Python that runs the tests: its old releases have no wheel for newer ones.
    environment = clean_environment()
    environment.pop("PIP_CONSTRAINT", None)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        other,
        "--disable-pip-version-check",
    ]
    packages = tmp_path / "packages"
    installed = ran(
        *pip,
        "install",
        "-q",
        "--target",
        packages,
        "Pillow",
        env=environment,
    )
    assert installed.returncode == 0, installed.stderr
    with starter(
        other, pyz, tmp_path, PYTHONPATH=str(packages)
    ) as start_one:
        server = start_one()
        card = ask(server, "GET", f"/og?title=A&key={cards_key(server)}")
        assert card.body.startswith(b"\x89PNG")


@pytest.mark.quick
def test_the_artifact_is_small_and_holds_only_the_package(pyz):
    assert pyz.stat().st_size < 24_000_000
    names = zipfile.ZipFile(pyz).namelist()
    assert names == sorted(names)
    assert {name.split("/")[0] for name in names} == {
        "LICENSE",
        "__main__.py",
        "cardbeat",
    }
    assert not any(
        "__pycache__" in name or "/build/" in name for name in names
    )


def test_the_build_says_when_it_cannot_write(tmp_path):
    output = tmp_path / "none" / "a.pyz"
    assert is_refused(
        ran(sys.executable, ROOT / "build_zipapp.py", "--output", output)
    )


def test_without_pillow_it_says_how_to_get_it(pyz, python, tmp_path):
    refused = ran(python, "-S", pyz, cwd=tmp_path)
    assert is_refused(refused)
    assert "Pillow" in refused.stderr


@pytest.mark.quick
def test_version(run):
    assert run("--version").stdout == f"cardbeat {__version__}\n"
