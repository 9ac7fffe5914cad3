"""What the standard library lacks on another system, read from typeshed: the stubs that mypy carries."""

import ast
import sys
from pathlib import Path

import mypy

STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"


def lacking(platform: str) -> dict[str, list[str]]:
    """Module -> the names that it has on Linux and not there, `class.member` for those of classes.

    Of a module that the other system does not have, all is lacking: it has the one name `*`.
    """
    texts = {_module(path): path.read_text("utf-8") for path in STUBS.rglob("*.pyi")}
    # The others are the same everywhere, and reading them takes seconds.
    stubs = {module: ast.parse(text) for module, text in texts.items() if "sys.platform" in text or "import *" in text}
    here, there = _names(stubs, "linux"), _names(stubs, platform)
    return {
        module: sorted(here[module] - there[module]) if there[module] else ["*"]
        for module in sorted(stubs)
        if here[module] - there[module]
    }


def _module(path: Path) -> str:
    parts = path.relative_to(STUBS).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _names(stubs: dict[str, ast.Module], platform: str) -> dict[str, set[str]]:
    """Module -> what it binds on a system, without what begins with an underscore."""
    names: dict[str, set[str]] = {key: set() for key in stubs}
    # Modules take names from each other, by way of a third at the most.
    for _ in range(3):
        for module, stub in stubs.items():
            bound = _Scope(module, platform, names).bound(stub.body)
            names[module] = {name for name in bound if not name.startswith("_")}
    return names


class _Scope:
    """Reads one stub as it counts on one system, given what other modules bind."""

    def __init__(self, module: str, platform: str, names: dict[str, set[str]]) -> None:
        self._module = module
        self._platform = platform
        self._names = names

    def bound(self, body: list[ast.stmt]) -> set[str]:
        found: set[str] = set()
        for node in body:
            if isinstance(node, ast.If):
                found |= self.bound(node.body if _holds(node.test, self._platform) else node.orelse)
            elif isinstance(node, ast.Assert) and not _holds(node.test, self._platform):
                return set()
            elif isinstance(node, ast.ClassDef):
                members = self.bound(node.body).union(*(self._inherited(base, found) for base in node.bases))
                found |= {node.name, *(f"{node.name}.{member}" for member in members)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign):
                found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            elif isinstance(node, ast.ImportFrom):
                found |= self._imported(node)
        return found

    def _inherited(self, base: ast.expr, found: set[str]) -> set[str]:
        home, _, name = ast.unparse(base).rpartition(".")
        return _members(self._names.get(home, set()) if home else found, name)

    def _imported(self, node: ast.ImportFrom) -> set[str]:
        source = self._names.get(self._source(node), set())
        found = set()
        for alias in node.names:
            if alias.name == "*":
                found |= source
            elif alias.asname == alias.name:
                # In a stub only what is imported under a repeated name is the module's own too.
                found |= {alias.name, *(f"{alias.name}.{member}" for member in _members(source, alias.name))}
        return found

    def _source(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return str(node.module)
        parts = self._module.split(".")
        is_package = (STUBS.joinpath(*parts) / "__init__.pyi").is_file()
        return ".".join([*parts[: len(parts) - node.level + is_package], *filter(None, [node.module])])


def _members(names: set[str], owner: str) -> set[str]:
    return {name.removeprefix(f"{owner}.") for name in names if name.startswith(f"{owner}.")}


def _holds(test: ast.expr, platform: str) -> bool:
    """Whether a condition of a stub is met: on the system, by this Python."""
    if isinstance(test, ast.BoolOp):
        met = (_holds(value, platform) for value in test.values)
        return all(met) if isinstance(test.op, ast.And) else any(met)
    if isinstance(test, ast.UnaryOp):
        return not _holds(test.operand, platform)
    text = ast.unparse(test)
    if text == "TYPE_CHECKING":
        return True
    if not text.startswith(("sys.platform", "sys.version_info")):
        raise ValueError(f"a condition that no stub had before: {text}")
    stand_in = type("sys", (), {"platform": platform, "version_info": sys.version_info[:3]})
    return bool(eval(text, {"sys": stand_in, "__builtins__": {}}))
