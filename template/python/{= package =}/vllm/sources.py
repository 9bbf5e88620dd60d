"""Reads definitions of vLLM's Python sources, without importing them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import TypeAlias

from ..doctor.audit import Tree

Definition: TypeAlias = "ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign"


class Sources:
    """The modules of a folder or a wheel with ``vllm``."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._parse = functools.cache(self._read)

    def _read(self, module: str) -> ast.Module | None:
        name = module.replace(".", "/")
        for file in (self.tree / f"{name}/__init__.py", self.tree / f"{name}.py"):
            if file.is_file():
                return ast.parse(file.read_text("utf-8"))
        return None

    def find(self, module: str, name: str) -> tuple[str, Definition] | None:
        """Return the module that defines a name of ``module``, and the definition."""
        parsed = self._parse(module)
        for node in _statements(parsed.body if parsed else []):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                return module, node
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and name in _targets(node):
                return module, node
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self.find(self._absolute(module, node), alias.name)
        return None

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        is_package = (self.tree / f"{'/'.join(parts)}/__init__.py").is_file()
        base = parts[: len(parts) - node.level + (1 if is_package else 0)]
        return ".".join([*base, *([node.module] if node.module else [])])

    def methods(self, module: str, name: str) -> dict[str, ast.FunctionDef]:
        """Return the methods of a class, including those inherited from other vLLM classes."""
        home, node = self.find(module, name) or (module, None)
        if not isinstance(node, ast.ClassDef):
            return {}
        result: dict[str, ast.FunctionDef] = {}
        for base in reversed(bases(node)):
            result |= self.methods(home, base)
        return result | methods_of(node)


def bases(node: ast.ClassDef) -> list[str]:
    """Return the names of a class's bases, without the parameters of generic bases."""
    plain = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return [base.id for base in plain if isinstance(base, ast.Name)]


def methods_of(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Return the methods that a class defines itself."""
    return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}


def must_be_written(method: ast.FunctionDef) -> bool:
    """Return whether a subclass must define a method: it is abstract or only raises."""
    marks = {ast.unparse(mark).rpartition(".")[2] for mark in method.decorator_list}
    return "abstractmethod" in marks or "NotImplementedError" in ast.unparse(method.body[-1])


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, with those under `if` and `try`."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements([*node.body, *node.orelse])
