"""The directions of dependencies, and the checks that every line must pass."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cardbeat"

LAYERS = [
    {"cardbeat"},
    {"characters", "errors", "clock", "config", "resources", "progress", "output", "passwords", "pillow", "system"},
    {"toml_file"},
    {"threads"},
    {"log", "watchdog"},
    {"disk", "fair_queue", "ownership", "staging", "stopping"},
    {"later"},
    {"alarms"},
    {"database", "web"},
    {"monitor"},
    {"keys"},
    {"typeset"},
    {"cards", "heartbeat"},
    {"check_metrics", "client", "health", "metrics", "openapi", "pages"},
    {"service", "options"},
    {"advice"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
"""The modules and folders of the package; each imports only from its own layer and from those above it here."""

APART = (
    ({"cards"}, {"heartbeat"}),
    ({"web"}, {"database", "monitor"}),
)
"""Pairs of which neither side imports the other, whatever their layers."""

NETWORK = {
    "asyncio",
    "ftplib",
    "http.client",
    "http.server",
    "imaplib",
    "logging.handlers",
    "multiprocessing",
    "poplib",
    "select",
    "selectors",
    "smtplib",
    "socket",
    "socketserver",
    "ssl",
    "urllib.request",
    "urllib.robotparser",
    "wsgiref",
    "xmlrpc",
}
"""Of the standard library, what opens sockets or waits for them."""
SOCKETS_ALLOWED = {
    "client/api.py",
    "heartbeat/report.py",
    "heartbeat/resolver.py",
    "heartbeat/webhook.py",
    "web/connection.py",
    "web/listener.py",
    "web/loop.py",
    "web/server.py",
    "system.py",
    "watchdog.py",
}
"""The only modules that may import one of `NETWORK`."""

PURE = {
    "characters.py",
    "fair_queue.py",
    "passwords.py",
    "cards/seal.py",
    "heartbeat/alert.py",
    "heartbeat/check.py",
    "heartbeat/lanes.py",
    "heartbeat/retries.py",
    "heartbeat/schedule.py",
    "heartbeat/target.py",
    "web/forwarded.py",
    "web/held.py",
    "web/query.py",
    "web/reader.py",
}
"""Modules that decide and do nothing: neither they nor what they import has to do with networks or threads."""

SQLITE_ALLOWED = {
    "commands/doctor.py",
    "database/postgresql_backup.py",
    "database/sqlite.py",
    "database/sqlite_backup.py",
    "database/sqlite_errors.py",
    "database/sqlite_file.py",
    "database/sqlite_open_files.py",
    "database/sqlite_restore.py",
    "database/sqlite_rows.py",
}
"""The only modules that know the driver of SQLite."""
PSYCOPG_ALLOWED = {
    "database/__init__.py",
    "database/postgresql.py",
    "database/postgresql_connection.py",
    "database/postgresql_errors.py",
    "database/postgresql_server.py",
    "database/postgresql_url.py",
}
"""The only modules that know the driver of PostgreSQL."""
ENGINES_ALLOWED = {"commands", "database"}
"""The parts that know more of the database than its protocols; what else is in its folder is the engines' own."""

OF_SQLITE_ALONE = re.compile(r"\?\d|:\d|\biif\(|IS NOT [?:]|INSERT OR|REPLACE INTO|CROSS JOIN|\b(max|min)\([^()]*,")
"""What stands in no statement outside the engines: it is not in the SQL that they have in common."""

SYSTEM_NAMES = {"sys.platform", "os.name", "os.uname", "platform.system", "platform.uname", "sys.getwindowsversion"}
SYSTEM_MODULES = {"os", "select", "signal", "socket", "sys", "time"}
ONE_SYSTEM_ONLY = {"fcntl", "grp", "msvcrt", "pwd", "resource", "termios", "winreg"}


def modules() -> dict[str, Path]:
    """Every module of the package by its path in it."""
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    return {name: path for name, path in sorted(paths.items()) if not name.startswith(("fonts/", "words/"))}


MODULES = modules()
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}


def part_of(name: str) -> str:
    """The name in `LAYERS` of a module, given by its path in the package."""
    return name.partition("/")[0].removesuffix(".py").replace("__init__", "cardbeat")


def imports(path: Path) -> set[str]:
    """All that a module imports, in dotted names; those of what it imports from a module among them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_modules(imported: Iterable[str]) -> set[str]:
    """The modules of this package among what is imported, by their paths in it."""
    return {found for name in imported if name.split(".")[0] == "cardbeat" for found in [own_module(name)]}


def own_module(name: str) -> str:
    """The module of that dotted name or, of a name in a module or a package, that it is in."""
    path = name.partition(".")[2].replace(".", "/")
    found = [module for module in (f"{path}.py", f"{path}/__init__.py".lstrip("/")) if module in MODULES]
    return found[0] if found else own_module(name.rpartition(".")[0])


def wrong_arrows(own: str, others: Iterable[str]) -> Iterator[str]:
    """Which of the modules `others` the module `own` must not import."""
    mine = part_of(own)
    for other in others:
        part = part_of(other)
        apart = any((mine in a and part in b) or (mine in b and part in a) for a, b in APART)
        if LEVEL[part] > LEVEL[mine] or apart:
            yield other


def networks(imported: Iterable[str]) -> set[str]:
    return {network for network in NETWORK for name in imported if f"{name}.".startswith(f"{network}.")}


def reached_from(name: str) -> set[str]:
    """A module and all of the package that is imported with it."""
    reached, found = set(), {name}
    while found:
        reached |= found
        found = {other for one in found for other in own_modules(imports(MODULES[one]))} - reached
    return reached


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    assert list(wrong_arrows(name, own_modules(imports(MODULES[name])))) == []


def test_a_wrong_arrow_would_be_found():
    imported = {"cardbeat.service.Service", "cardbeat.heartbeat.check.Check", "cardbeat.errors.Refusal", "os.path"}
    assert set(wrong_arrows("cards/store.py", own_modules(imported))) == {"service.py", "heartbeat/check.py"}
    assert set(wrong_arrows("keys/store.py", own_modules({"cardbeat.heartbeat"}))) == {"heartbeat/__init__.py"}
    assert set(wrong_arrows("database/queue.py", own_modules({"cardbeat.web.message.Request"}))) == {"web/message.py"}
    assert own_modules({"cardbeat.__version__", "cardbeat.errors", "cardbeat"}) == {"__init__.py", "errors.py"}


def test_every_module_has_a_layer_and_every_name_in_the_layers_a_module():
    assert set(LEVEL) == {part_of(name) for name in MODULES}
    assert sum(map(len, LAYERS)) == len(LEVEL), "a name stands in two layers"
    assert set(LEVEL) >= {part for pair in APART for side in pair for part in side}


def test_only_the_modules_of_the_list_use_the_network_and_each_of_them_does():
    assert {name for name, path in MODULES.items() if networks(imports(path))} == SOCKETS_ALLOWED


def test_only_the_modules_of_the_list_know_sqlite_and_each_of_them_does():
    assert {name for name, path in MODULES.items() if "sqlite3" in imports(path)} == SQLITE_ALLOWED


def test_all_others_know_the_database_by_its_protocols():
    engines = {name for name in MODULES if name.startswith("database/")} - {"database/__init__.py"}
    for name, path in MODULES.items():
        if part_of(name) not in ENGINES_ALLOWED:
            assert not own_modules(imports(path)) & engines, name


def test_statements_are_in_the_sql_that_all_engines_have_in_common():
    for name, path in MODULES.items():
        if "cardbeat.database" in {imported.rpartition(".")[0] for imported in imports(path)}:
            texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
            assert not [text for text in texts if isinstance(text, str) and OF_SQLITE_ALONE.search(text)], name


def test_only_the_command_line_imports_what_no_import_statement_names():
    dynamic = {"importlib", "importlib.import_module", "runpy"}
    assert {name for name, path in MODULES.items() if dynamic & imports(path)} == {"cli.py"}
    assert not [name for name, path in MODULES.items() if "__import__" in path.read_text()]


def test_every_way_to_the_network_in_the_list_is_found_and_no_other_module_of_its_package():
    assert networks({"socket", "http.client.HTTPException", "urllib.request"}) == {
        "socket",
        "http.client",
        "urllib.request",
    }
    assert networks({"urllib.parse.quote", "http.HTTPStatus", "socketserver"}) == {"socketserver"}


@pytest.mark.parametrize("name", sorted(PURE))
def test_pure_modules_import_neither_networks_nor_threads(name):
    for reached in reached_from(name):
        imported = imports(MODULES[reached])
        assert not networks(imported), reached
        assert not {"threading", "concurrent.futures"} & {".".join(one.split(".")[:2]) for one in imported}, reached


def test_every_folder_of_modules_is_a_package_and_so_in_the_wheel():
    folders = {path.parent for path in MODULES.values()}
    assert all((folder / "__init__.py").is_file() for folder in folders)


def test_nothing_outside_the_standard_library_but_pillow_is_imported_and_the_driver_of_postgresql():
    usual = set(sys.stdlib_module_names) | {"cardbeat", "PIL"}
    others = {
        name: {top for imported in imports(path) if (top := imported.split(".")[0]) not in usual}
        for name, path in MODULES.items()
    }
    assert {name: tops for name, tops in others.items() if tops} == {name: {"psycopg"} for name in PSYCOPG_ALLOWED}


def test_the_driver_of_postgresql_is_imported_only_where_it_is_asked_for():
    """By a module that is imported inside a function of the package alone."""
    imported = "sys, cardbeat.service, cardbeat.commands.doctor, cardbeat.commands.keys"
    code = f"import {imported}; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_only_one_module_asks_which_system_this_is():
    """It may also be asked by what a module of the standard library holds, which `hasattr` and `ImportError` tell."""
    for name, path in MODULES.items():
        if name == "system.py":
            continue
        assert not SYSTEM_NAMES & imports(path), path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in SYSTEM_NAMES, f"{path}:{node.lineno}"
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("hasattr", "getattr"):
                assert ast.unparse(node.args[0]) not in SYSTEM_MODULES, f"{path}:{node.lineno}"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                named = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not named & ONE_SYSTEM_ONLY, f"{path}:{node.lineno}"


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


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_mypy_strict_finds_nothing(tmp_path, platform):
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--platform", platform, "--cache-dir", str(tmp_path)],
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
