"""The directions of dependencies, the sizes of folders and functions, and what ruff and mypy find."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

from tests.kit.lists import each

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cardbeat"

LAYERS = {
    "": [
        {"__init__"},
        {"text", "errors", "clock", "config"},
        {"host", "files"},
        {"jobs"},
        {"log"},
        {"database", "web"},
        {"keys"},
        {"typeset"},
        {"cards", "heartbeat"},
        {"client", "operation", "pages", "site"},
        {"service"},
        {"commands"},
        {"cli"},
        {"__main__"},
    ],
    "database": [
        {"database"},
        {"schema"},
        {"sqlite"},
        {"postgresql"},
        {"__init__"},
    ],
    "cards": [
        {"__init__", "request", "seal"},
        {"drawing"},
        {"painter", "store"},
        {"routes"},
    ],
    "heartbeat": [
        {"__init__", "check", "report"},
        {"alerts"},
        {"transitions"},
        {"outages"},
        {"pings", "sweep", "tidy"},
        {"checks"},
        {"routes"},
    ],
    "typeset": [
        {"__init__", "unicode", "wrap"},
        {"faces"},
        {"paragraph"},
        {"text"},
    ],
}
"""The modules and sub-folders of each folder that has sub-folders, by its path in the package ("": the package itself).

Each imports only from those in the lines above its own. Imports inside functions and for types alone count too.
"""

PSYCOPG_ALLOWED = "database/"
NO_SECRETS = {"_replace", "_asdict", "_exit", "_imagingft"}
"""Public names of the standard library, and a module of Pillow."""
PRIVATE_ALLOWED = {
    # Bugs are put back where they were.
    "model/plants.py",
}
"""Tests that use some of the package."""


def modules():
    """Every module of the package by its path in it, but for builders of data and foreign code."""
    apart = ("fonts/", "light/", "words/", "vendor/")
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(apart):
            found[name] = path
    return found


MODULES = modules()


@functools.cache
def nodes_in(name):
    """The syntax nodes of a module."""
    return [*ast.walk(ast.parse(MODULES[name].read_text("utf-8")))]


@functools.cache
def imports(name):
    """All that a module imports, in dotted names, also inside functions and for types alone."""
    names = set()
    for node in nodes_in(name):
        if isinstance(node, ast.Import):
            names |= set(each(node.names, "name"))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.add(f"{node.module}.{alias.name}")
    return frozenset(names)


@functools.cache
def own_imports(name):
    """The modules of this package that a module imports, by their paths in it."""
    found = set()
    for one in imports(name):
        if one.split(".")[0] == "cardbeat":
            found.add(own_module(one))
    return frozenset(found - {name})


def own_module(dotted):
    """The module of that dotted name or, of a name in a module or a package, that it is in."""
    path = dotted.partition(".")[2].replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py".lstrip("/")):
        if name in MODULES:
            return name
    return own_module(dotted.rpartition(".")[0])


def steps(name):
    """Each folder on the way to a module, and what is taken in it to get there."""
    parts = name.removesuffix(".py").split("/")
    return [("/".join(parts[:n]), part) for n, part in enumerate(parts)]


def level(folder, part):
    return next(
        n for n, parts in enumerate(LAYERS[folder]) if part in parts
    )


def points_up(own, other):
    """Whether `other` does not stand above `own` in `LAYERS`, where their ways part."""
    for (folder, mine), (_, part) in zip(
        steps(own), steps(other), strict=False
    ):
        if mine != part:
            return folder in LAYERS and level(folder, part) >= level(
                folder, mine
            )
    return False


def test_imports_point_downwards():
    for name in MODULES:
        for other in own_imports(name):
            assert not points_up(name, other), (name, other)


def test_layers_name_all_that_is_in_a_folder_once():
    found = defaultdict(set)
    for name in MODULES:
        for folder, part in steps(name):
            found[folder].add(part)
    for folder, layers in LAYERS.items():
        assert sorted(chain(*layers)) == sorted(found[folder]), folder


def test_no_module_imports_itself_through_others():
    sorter = TopologicalSorter()
    for name in MODULES:
        sorter.add(name, *own_imports(name))
    # Raises an error that names a circle.
    sorter.prepare()


def test_only_pillow_and_a_driver_are_imported_beside_the_standard_library():
    usual = {*sys.stdlib_module_names, "cardbeat", "PIL"}
    for name in MODULES:
        others = {one.split(".")[0] for one in imports(name)} - usual
        assert others <= (
            {"psycopg"} if name.startswith(PSYCOPG_ALLOWED) else set()
        ), name


def test_the_driver_of_postgresql_is_imported_only_where_it_is_asked_for():
    imported = "sys, cardbeat.service, cardbeat.commands.doctor, cardbeat.commands.keys"
    code = f"import {imported}; sys.exit('psycopg' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, check=False
        ).returncode
        == 0
    )


def test_no_folder_has_too_many_modules_and_each_is_a_package():
    counts = Counter(
        path.parent
        for path in MODULES.values()
        if path.name != "__init__.py"
    )
    assert counts.pop(PACKAGE) <= 12
    assert max(counts.values()) <= 15
    assert all((folder / "__init__.py").is_file() for folder in counts)


def test_tests_use_no_private_name_of_the_package_and_patch_no_constant():
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        own, used = set(NO_SECRETS), set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.FunctionDef(name) | ast.ClassDef(name):
                    own.add(name)
                case ast.Attribute(ast.Name("self" | "cls"), name):
                    own.add(name)
                case ast.Attribute(_, name):
                    used.add(name)
                case ast.ImportFrom(_, names):
                    used.update(each(names, "name"))
                case ast.Call(
                    ast.Attribute(attr="setattr"),
                    [*_, ast.Constant(str(patched)), _],
                ):
                    name = patched.rpartition(".")[2]
                    used.add(f"_{name}" if name.isupper() else name)
        if any(re.match("_[a-zA-Z]", name) for name in used - own):
            found.add(path.relative_to(ROOT / "tests").as_posix())
    assert found <= PRIVATE_ALLOWED


def test_no_function_is_too_large():
    for name in MODULES:
        for node in nodes_in(name):
            if isinstance(node, ast.FunctionDef):
                count = len([*nodes_of(node)])
                assert count <= 250, f"{node.name} in {name}"


def nodes_of(node):
    """A node and all in it, without annotations and marks of loading and storing."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "ctx"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from nodes_of(child)


OTHERS = ("darwin", "freebsd14", "win32")
OTHER_PLATFORMS = [
    pytest.param(name, marks=pytest.mark.slow) for name in OTHERS
]


@pytest.mark.parametrize("platform", ["linux", *OTHER_PLATFORMS])
def test_mypy_strict_finds_nothing(platform):
    # Each with its own cache: mypy reads no cache of another platform.
    run(
        "mypy",
        "--platform",
        platform,
        "--cache-dir",
        f".mypy_cache/{platform}",
    )


@pytest.mark.parametrize("command", ["check", "format --check"])
def test_ruff_finds_nothing(command):
    run("ruff", *command.split(), "--no-cache", ".")


def run(module, *arguments):
    command = [sys.executable, "-m", module, *arguments]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_top_level_holds_the_six_agreed_names_and_dotfiles():
    command = ["git", "ls-tree", "--name-only", "HEAD"]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    agreed = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "cardbeat",
        "tests",
        "build_zipapp.py",
    }
    assert {
        name for name in listed.split() if not name.startswith(".")
    } == agreed
