"""Which operators and virtual functions that this backend uses are others in another PyTorch."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from .audit import INSTALLED, Tree, virtuals
from .interfaces import INTERFACES
from .report import table

SCHEMAS = "torchgen/packaged/ATen/native/native_functions.yaml"


class Unavailable(Exception):
    """The other PyTorch cannot be had; the text says why and what to do."""


@dataclass(frozen=True)
class Change:
    """A difference. ``before`` is empty if only the other PyTorch has it, ``after`` if only this one has."""

    part: str
    name: str
    before: str
    after: str

    @property
    def kind(self) -> str:
        """``new``, ``gone`` or ``changed``."""
        return "new" if not self.before else "changed" if self.after else "gone"


def compare(other: str, tree: Tree = INSTALLED) -> list[Change]:
    """Compare the installed PyTorch with ``other``: a version, a wheel or an unpacked one.

    Raises:
        Unavailable: it cannot be had, or is no PyTorch.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted = open_tree("torch", other, Path(folder), SCHEMAS, "that torch is in")
        return [*_operators(tree, wanted), *_virtuals(tree, wanted)]


def registered() -> set[str]:
    """Return the operators of ``aten`` for which this backend has kernels."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def to_json(changes: list[Change]) -> str:
    """Return the changes with their kinds."""
    return json.dumps(
        [dataclasses.asdict(item) | {"kind": item.kind} for item in changes], indent=2
    )


def to_text(changes: list[Change], other: str, ours: str = f"PyTorch {torch.__version__}") -> str:
    """Return the changes, each with what it was in ``ours`` and what it is in ``other``."""
    if not changes:
        return f"Nothing that this backend uses of {ours} differs in {other}."
    rows = []
    for item in changes:
        rows.append((item.kind, item.part, item.before or item.after))
        if item.kind == "changed":
            rows.append(("", "", item.after))
    return f"{ours} and {other}: {len(changes)} differ\n" + table(rows)


def open_tree(package: str, other: str, folder: Path, has: str, kind: str) -> Tree:
    """Return what is in ``other``: a folder, a wheel, or a version, which is downloaded into ``folder``.

    It is of the right ``kind``, as a message says it, if it has the file ``has``.

    Raises:
        Unavailable: it cannot be had, or is something else.
    """
    path = Path(other) if Path(other).exists() else _download(package, other, folder)
    tree: Tree = path
    if path.is_file():
        if not zipfile.is_zipfile(path):
            raise Unavailable(f"{path} is no wheel: give a version, a wheel or a folder")
        tree = zipfile.Path(path)
    if not (tree / has).is_file():
        raise Unavailable(f"{path} has no {has}: give a folder or wheel {kind}")
    return tree


def _download(package: str, version: str, folder: Path) -> Path:
    if not re.fullmatch(r"\d[\w.+]*", version):
        raise Unavailable(f"{version} is neither a file, nor a folder, nor a version of {package}")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command = [*pip, f"--dest={folder}", f"{package}=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        # The first error says what is wrong, the others what else could be done.
        errors = (line for line in lines if "ERROR" in line or "No module" in line)
        why = next(errors, "it gives no reason").removeprefix("ERROR: ").partition(" (from ")[0]
        raise Unavailable(
            f"pip cannot download {package} {version}: {why.rstrip('.')}; give the path of a wheel"
        )
    return next(folder.glob("*.whl"))


def _operators(before: Tree, after: Tree) -> Iterator[Change]:
    used, old, new = registered(), _schemas(before), _schemas(after)
    families = {name.partition(".")[0] for name in used}
    for name in sorted(old.keys() | new.keys()):
        added = name not in old and name.partition(".")[0] in families
        if (name in used or added) and old.get(name) != new.get(name):
            yield Change("operator", name, old.get(name, ""), new.get(name, ""))


def _schemas(tree: Tree) -> Mapping[str, str]:
    """Return the schemas by name. A variant that PyTorch derives from others has theirs."""
    schemas: dict[str, str] = {}
    schema = ""
    for line in (tree / SCHEMAS).read_text("utf-8").splitlines():
        if match := re.match(r"- func: *(([\w.]+)\(.*)", line):
            schema = match[1]
            schemas[match[2]] = schema
        elif match := re.match(r" +autogen: *(.*)", line):
            for name in match[1].split(","):
                schemas[name.strip()] = f"{name.strip()} of {schema}"
    return schemas


def _virtuals(before: Tree, after: Tree) -> Iterator[Change]:
    for interface in INTERFACES:
        old, new = virtuals(before, interface) or {}, virtuals(after, interface) or {}
        for name in dict.fromkeys((*old, *new)):
            used = name in interface.overridden.split()
            added = name not in old and not interface.reason(name)
            if (used or added) and old.get(name) != new.get(name):
                yield Change(interface.name, name, old.get(name, ""), new.get(name, ""))
