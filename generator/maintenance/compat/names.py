"""Finds names of PyTorch that a rendered project uses and a release does not have.

Nothing is imported: names are looked up in the modules' sources and stubs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# The only file that may use missing names, behind a condition.
COMPAT = "_compat.py"


@dataclass(frozen=True)
class Use:
    """A dotted name and its position."""

    file: Path
    line: int
    name: str


@dataclass
class Module:
    """The names of a module: an alias maps to its dotted name, others to None."""

    bound: dict[str, str | None] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    open_ended: bool = False


class Library:
    """The names in a package, from its sources."""

    def __init__(self, root: Path) -> None:
        """Read the packages under ``root`` as needed."""
        self.root = root
        self._modules: dict[str, Module | None] = {}

    def has(self, name: str) -> bool:
        """Whether a dotted name exists, as far as it leads through modules."""
        at, *rest = name.split(".")
        for part in rest:
            found = self._follow(at, part, frozenset())
            if found is None:
                return False
            if not found:
                return True  # an object, whose attributes are not known here
            at = found
        return True

    def _follow(self, module: str, name: str, seen: frozenset[str]) -> str | None:
        """Return the name of the module ``module.name``, "" for another object, None if absent."""
        described = self._module(module)
        if described is None or module in seen:
            return None
        target = described.bound.get(name, "")
        if self._module(f"{module}.{name}") is not None and target in ("", f"{module}.{name}"):
            return f"{module}.{name}"
        if name in described.bound:
            return self._resolve(target) if target else ""
        for star in described.stars:
            if (found := self._follow(star, name, seen | {module})) is not None:
                return found
        return "" if described.open_ended else None

    def _resolve(self, name: str) -> str:
        """Return the module that an alias names, or "" for an object."""
        if self._module(name) is not None:
            return name
        module, _, last = name.rpartition(".")
        if not module or module.split(".")[0] != name.split(".")[0]:
            return ""
        return self._follow(module, last, frozenset()) or ""

    def _module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = None  # ends a cycle
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> Module | None:
        base = self.root.joinpath(*name.split("."))
        package = base.is_dir()
        candidates = [base / "__init__.py", base / "__init__.pyi"] if package else []
        candidates += [base.with_name(base.name + suffix) for suffix in (".py", ".pyi")]
        files = [file for file in candidates if file.exists()]
        if not files and not (package and any(base.glob("*.py*"))):
            return None
        module = Module()
        for file in files:
            tree = ast.parse(file.read_text("utf-8"))
            for statement in tree.body:
                _bind(module, statement, name if package else name.rpartition(".")[0])
        if name == "torch":
            # Both are copied name by name when PyTorch is imported.
            module.stars += ["torch._C", "torch._C._VariableFunctions"]
        return module


def _bind(module: Module, statement: ast.stmt, package: str) -> None:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            module.bound.setdefault(statement.name, None)
            module.open_ended |= statement.name == "__getattr__"
        case ast.Import():
            for alias in statement.names:
                first = alias.name.split(".")[0]
                module.bound.setdefault(
                    alias.asname or first, alias.name if alias.asname else first
                )
        case ast.ImportFrom():
            origin = _origin(statement, package)
            for alias in statement.names:
                if alias.name == "*":
                    module.stars.append(origin)
                else:
                    module.bound.setdefault(alias.asname or alias.name, f"{origin}.{alias.name}")
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    module.bound.setdefault(node.id, None)
                elif node is not statement and isinstance(node, ast.stmt):
                    _bind(module, node, package)


def _origin(statement: ast.ImportFrom, package: str) -> str:
    """Return the module that a statement imports from."""
    if not statement.level:
        return statement.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - statement.level + 1]
    return ".".join([*base, *([statement.module] if statement.module else [])])


def uses(file: Path, package: str = "torch") -> Iterator[Use]:
    """Yield the names of ``package`` that a file imports, or reaches through such an import.

    In `_compat.py`, names behind a condition can be missing.
    """
    tree = ast.parse(file.read_text("utf-8"), feature_version=(3, 10))
    guarded: set[ast.AST] = set()
    if file.name == COMPAT:
        for node in ast.walk(tree):
            if isinstance(node, (ast.If, ast.IfExp, ast.Try)):
                guarded.update(ast.walk(node))
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, alias.asname) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [
                (f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names
            ]
        else:
            continue
        for name, asname in names:
            if name.split(".")[0] == package:
                aliases[asname or package] = name if asname else package
                if node not in guarded:
                    yield Use(file, node.lineno, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node not in guarded:
            chain = ast.unparse(node)
            first, _, rest = chain.partition(".")
            if first in aliases and all(part.isidentifier() for part in rest.split(".")):
                yield Use(file, node.lineno, f"{aliases[first]}.{rest}")


def missing(project: Path, backend: str, library: Library) -> list[Use]:
    """Return a rendered project's uses of names that the library lacks, each once per file."""
    found: dict[tuple[Path, str], Use] = {}
    own = f"torch.{backend}"
    for file in sorted(project.rglob("*.py")):
        for use in uses(file):
            foreign = use.name != own and not use.name.startswith(f"{own}.")
            if foreign and not library.has(use.name):
                found.setdefault((file, use.name), use)
    return list(found.values())
