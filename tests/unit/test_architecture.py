"""The directions of dependencies, and the checks that every line must pass."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cardbeat"

LAYERS = {
    "": [
        {"__init__"},
        {"characters", "errors", "clock", "config", "resources", "passwords"},
        {"host", "toml_file", "bounded_socket"},
        {"concurrency"},
        {"log"},
        {"database", "web"},
        {"keys"},
        {"typeset"},
        {"cards", "heartbeat"},
        {"client", "operation", "pages", "site"},
        {"openapi"},
        {"service"},
        {"commands"},
        {"cli"},
        {"__main__"},
    ],
    "database": [
        {"protocols", "queue"},
        {"schema"},
        {"sqlite"},
        {"postgresql"},
        {"__init__"},
        {"monitor"},
    ],
    "cards": [
        {"__init__", "drawing_queue", "eviction", "request", "seal"},
        {"drawing", "folder"},
        {"drawing_process", "store"},
        {"routes"},
    ],
    "heartbeat": [
        {"__init__", "check", "due_credits", "removal", "report", "transitions"},
        {"credit", "pings", "quota"},
        {"outbox"},
        {"sweep", "unused_keys", "webhooks"},
        {"delivery"},
        {"checks"},
        {"routes"},
    ],
    "typeset": [
        {"__init__", "unicode", "wrap"},
        {"faces"},
        {"widths", "work"},
        {"line"},
        {"paragraph"},
        {"text"},
        {"labels"},
    ],
}
"""The modules and sub-folders of each folder that has sub-folders, by its path in the package ("": the package itself).

Each imports only from those in the lines above its own. Imports inside functions and for types alone count too.
"""

APART = (
    ({"cards"}, {"heartbeat"}),
    ({"web"}, {"database"}),
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
    "bounded_socket.py",
    "client/api.py",
    "client/transport.py",
    "heartbeat/report.py",
    "heartbeat/webhooks/resolver.py",
    "heartbeat/webhooks/post.py",
    "web/connection.py",
    "web/listener.py",
    "web/loop.py",
    "web/sending.py",
    "web/server.py",
    "host/system.py",
    "concurrency/watchdog.py",
    "site/workers.py",
}
"""The only modules that may import one of `NETWORK`."""

PURE = {
    "characters.py",
    "concurrency/fair_queue.py",
    "concurrency/turns.py",
    "passwords.py",
    "cards/seal.py",
    "heartbeat/outbox/alert.py",
    "heartbeat/check.py",
    "heartbeat/delivery/allowance.py",
    "heartbeat/delivery/lanes.py",
    "heartbeat/delivery/retries.py",
    "heartbeat/delivery/schedule.py",
    "heartbeat/webhooks/target.py",
    "site/names.py",
    "site/page.py",
    "web/forwarded.py",
    "web/query.py",
    "web/reader.py",
}
"""Modules that decide and do nothing: neither they nor what they import has to do with networks or threads."""

SQLITE_ALLOWED = {
    "commands/doctor.py",
    "database/postgresql/restore.py",
    "database/sqlite/database.py",
    "database/sqlite/backup.py",
    "database/sqlite/file.py",
    "database/sqlite/objects.py",
    "database/sqlite/restore.py",
    "database/sqlite/rows.py",
}
"""The only modules that know the driver of SQLite."""
PSYCOPG_ALLOWED = {
    "database/__init__.py",
    "database/postgresql/database.py",
    "database/postgresql/connection.py",
    "database/postgresql/errors.py",
    "database/postgresql/server.py",
    "database/postgresql/url.py",
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
    return {
        name: path
        for name, path in sorted(paths.items())
        if not name.startswith(("fonts/", "light/", "words/", "vendor/"))
    }


MODULES = modules()
LEVEL = {folder: {part: n for n, parts in enumerate(lines) for part in parts} for folder, lines in LAYERS.items()}


def steps(name: str) -> list[tuple[str, str]]:
    """Each folder on the way to a module, given by its path in the package, and what is taken in it to get there."""
    parts = name.removesuffix(".py").split("/")
    return [("/".join(parts[:n]), part) for n, part in enumerate(parts)]


def part_of(name: str) -> str:
    """The module or sub-folder of the package that a module, given by its path in the package, is or lies in."""
    return steps(name)[0][1]


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """All that a module imports, in dotted names; those of what it imports from a module among them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


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
    for other in others:
        mine, part = part_of(own), part_of(other)
        apart = any((mine in a and part in b) or (mine in b and part in a) for a, b in APART)
        if apart or points_up(own, other):
            yield other


def points_up(own: str, other: str) -> bool:
    """Whether `other` does not stand above `own` in `LAYERS`, where their ways part."""
    for (folder, mine), (_, part) in zip(steps(own), steps(other), strict=False):
        if mine != part:
            return folder in LEVEL and LEVEL[folder][part] >= LEVEL[folder][mine]
    return False


def parts_in(folder: str) -> set[str]:
    """The modules and sub-folders in a folder of the package."""
    return {part for name in MODULES for place, part in steps(name) if place == folder}


def networks(imported: Iterable[str]) -> set[str]:
    return {network for network in NETWORK for name in imported if f"{name}.".startswith(f"{network}.")}


def reached_from(name: str) -> set[str]:
    """A module and all of the package that is imported with it."""
    reached, found = set(), {name}
    while found:
        reached |= found
        found = {other for one in found for other in own_modules(imports(MODULES[one]))} - reached
    return reached


def test_each_class_has_a_name_of_its_own():
    trees = [ast.parse(path.read_text()) for path in MODULES.values()]
    counts = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in counts.items() if count > 1} <= {"Outcome", "Place", "Refused"}


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    assert list(wrong_arrows(name, own_modules(imports(MODULES[name])))) == []


def test_a_wrong_arrow_would_be_found():
    imported = {"cardbeat.service.Service", "cardbeat.heartbeat.check.Check", "cardbeat.errors.Refusal", "os.path"}
    assert set(wrong_arrows("cards/store.py", own_modules(imported))) == {"service.py", "heartbeat/check.py"}
    assert set(wrong_arrows("keys/store.py", own_modules({"cardbeat.heartbeat"}))) == {"heartbeat/__init__.py"}
    assert set(wrong_arrows("database/queue.py", own_modules({"cardbeat.web.message.Request"}))) == {"web/message.py"}
    assert own_modules({"cardbeat.__version__", "cardbeat.errors", "cardbeat"}) == {"__init__.py", "errors.py"}


def test_every_folder_with_sub_folders_has_layers_and_they_name_all_that_is_in_it():
    nested = {place for name in MODULES for place, _ in steps(name)[:-1]}
    assert set(LAYERS) == nested
    for folder, level in LEVEL.items():
        assert set(level) == parts_in(folder), folder
        assert sum(map(len, LAYERS[folder])) == len(level), f"{folder}: a name stands in two lines"


def test_no_module_imports_itself_through_others():
    arrows = {name: own_modules(imports(path)) - {name} for name, path in MODULES.items()}
    while leaves := {name for name, others in arrows.items() if not others & arrows.keys()}:
        arrows = {name: others for name, others in arrows.items() if name not in leaves}
    assert not arrows, "each of these imports another of them"


def test_only_the_modules_of_the_list_use_the_network_and_each_of_them_does():
    assert {name for name, path in MODULES.items() if networks(imports(path))} == SOCKETS_ALLOWED


def test_only_the_modules_of_the_list_know_sqlite_and_each_of_them_does():
    assert {name for name, path in MODULES.items() if "sqlite3" in imports(path)} == SQLITE_ALLOWED


def test_all_others_know_the_database_by_its_protocols():
    engines = {name for name in MODULES if name.startswith("database/")} - {
        "database/__init__.py",
        "database/monitor.py",
    }
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


def test_the_package_keeps_to_the_sizes_that_the_contributing_page_gives():
    page = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    rule = re.search(
        r"At most (\d+) modules in `cardbeat/` itself, (\d+) in any folder, and ([\d,]+) lines in all", page
    )
    most_on_top, most_in_folder, most_lines = (int(number.replace(",", "")) for number in rule.groups())
    counts = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")
    assert counts.pop(PACKAGE) <= most_on_top
    assert max(counts.values()) <= most_in_folder
    own = [path for path in PACKAGE.rglob("*.py") if not {"build", "vendor"} & {*path.relative_to(PACKAGE).parts}]
    assert sum(len(path.read_text().splitlines()) for path in own) <= most_lines


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


def test_only_one_module_uses_what_others_wrote():
    using = {name for name, path in MODULES.items() if any("cardbeat.vendor" in one for one in imports(path))}
    assert using == {"pages/markdown.py"}


def test_the_driver_of_postgresql_is_imported_only_where_it_is_asked_for():
    """By a module that is imported inside a function of the package alone."""
    imported = "sys, cardbeat.service, cardbeat.commands.doctor, cardbeat.commands.keys"
    code = f"import {imported}; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_only_one_module_asks_which_system_this_is():
    """It may also be asked by what a module of the standard library holds, which `hasattr` and `ImportError` tell."""
    for name, path in MODULES.items():
        if name == "host/system.py":
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


OTHER_PLATFORMS = (pytest.param(name, marks=pytest.mark.slow) for name in ("darwin", "win32"))


@pytest.mark.parametrize("platform", ["linux", *OTHER_PLATFORMS])
def test_mypy_strict_finds_nothing(platform):
    # Each with its own cache: mypy reads no cache of another platform.
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--platform", platform, "--cache-dir", f".mypy_cache/{platform}"],
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
