"""The directions of dependencies, and the checks that every line must pass."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cardbeat"

LAYERS = [
    {"cardbeat"},
    {"errors", "clock", "config", "resources", "progress", "output", "pillow"},
    {"ownership", "web"},
    {"database_file"},
    {"database", "database_restore"},
    {"keys"},
    {"cards", "heartbeat"},
    {"health", "metrics", "openapi", "pages"},
    {"service", "options"},
    {"advice"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
LONE = {"cards", "heartbeat"}
SOCKETS_ALLOWED = {
    "web/server.py",
    "web/listener.py",
    "web/connection.py",
    "heartbeat/webhook.py",
    "heartbeat/report.py",
}


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def imports(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules():
    return [path for path in PACKAGE.rglob("*.py") if path.parent.name != "fonts"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_downwards(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py").replace("__init__", "cardbeat")
    for name in imports(path):
        if not name.startswith("cardbeat"):
            continue
        other = part_of(name) if part_of(name) in LEVEL else "cardbeat"
        assert LEVEL[other] <= LEVEL[own], f"{own} imports {name}"
        assert not (other != own and {other, own} <= LONE), f"{own} imports {name}"


def test_nothing_outside_the_standard_library_but_pillow_is_imported():
    for path in modules():
        tops = {name.split(".")[0] for name in imports(path)}
        assert tops <= set(sys.stdlib_module_names) | {"cardbeat", "PIL"}, path


def test_ruff_finds_nothing():
    for command in (["check"], ["format", "--check"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "."],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_mypy_strict_finds_nothing(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_top_level_holds_the_six_agreed_names_and_dotfiles():
    tracked = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    agreed = {"pyproject.toml", "README.md", "LICENSE", "cardbeat", "tests", "build_zipapp.py"}
    assert {name for name in tracked if not name.startswith(".")} == agreed
