"""Prints how the parts of vLLM that this package uses differ in another release.

``python -m PACKAGE.vllm.drift RELEASE``: a version (pip downloads it), a wheel, or a folder with
``vllm``. Only sources are read, so the other release need not be installed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..doctor.against import Change, Unavailable, open_tree, to_json, to_text
from ..doctor.audit import Tree
from . import _versions
from .sources import Sources, bases, methods_of, must_be_written

__all__ = ["compare", "main"]

INTERFACE = "vllm/platforms/interface.py"


@dataclass(frozen=True)
class Use:
    """A name that is imported from vLLM, and its methods that are overridden here."""

    module: str
    name: str
    methods: frozenset[str]


def uses(folder: Path = Path(__file__).parent) -> list[Use]:
    """Return the names that the modules of a folder import from vLLM."""
    found: dict[tuple[str, str], set[str]] = {}
    for file in sorted(folder.glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        here: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vllm":
                for alias in node.names:
                    here[alias.asname or alias.name] = (node.module or "", alias.name)
        for place in here.values():
            found.setdefault(place, set())
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                for base in here.keys() & bases(node):
                    found[here[base]] |= methods_of(node).keys()
    return [Use(*place, frozenset(methods)) for place, methods in sorted(found.items())]


def compare(before: Tree, after: Tree, used: list[Use] | None = None) -> list[Change]:
    """Return the used names that differ between two trees, and new methods to implement."""
    old, new = Sources(before), Sources(after)
    return [change for use in (used or uses()) for change in _compare(old, new, use)]


def _compare(old: Sources, new: Sources, use: Use) -> Iterator[Change]:
    part = use.module
    there, now = old.find(use.module, use.name), new.find(use.module, use.name)
    if now is None:
        yield Change(part, use.name, _text(there[1]) if there else use.name, "")
        return
    if isinstance(now[1], ast.FunctionDef):
        before, after = _text(there[1]) if there else "", _text(now[1])
        if before != after:
            yield Change(part, use.name, before, after)
        return
    methods_before = old.methods(use.module, use.name)
    methods_now = new.methods(use.module, use.name)
    for name in sorted(use.methods & methods_before.keys()):
        after = _text(methods_now[name]) if name in methods_now else ""
        if (before := _text(methods_before[name])) != after:
            yield Change(part, f"{use.name}.{name}", before, after)
    if use.methods:
        for name in sorted(methods_now.keys() - methods_before.keys() - use.methods):
            if must_be_written(methods_now[name]):
                yield Change(part, f"{use.name}.{name}", "", _text(methods_now[name]))


def _text(node: ast.AST) -> str:
    """Return a function's name and arguments, or the kind of another definition."""
    if not isinstance(node, ast.FunctionDef):
        return type(node).__name__
    given = ast.unparse(node.args)
    return f"{node.name}({given})"


def main(arguments: list[str] | None = None) -> int:
    """Print the differences and return the exit status: 1 if there are any."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.drift", description=__doc__)
    parser.add_argument("release")
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    given = parser.parse_args(arguments)
    spec = importlib.util.find_spec("vllm")
    if spec is None or spec.origin is None:
        parser.error(f"vLLM {_versions.TESTED[-1]}, to compare with, is not installed")
    installed = Path(spec.origin).parents[1]
    try:
        with tempfile.TemporaryDirectory() as folder:
            changes = compare(
                installed, open_tree("vllm", given.release, Path(folder), INTERFACE, "of vLLM")
            )
    except Unavailable as error:
        parser.error(str(error))
    ours = f"vLLM {_versions.installed() or 'of an unknown release'}"
    print(to_json(changes) if given.json else to_text(changes, given.release, ours))
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
