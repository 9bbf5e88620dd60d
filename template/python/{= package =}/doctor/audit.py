"""Compares the virtual functions of the installed PyTorch with those that this backend handles."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import torch

from .._absent import missing_feature_hint
from . import headers
from .interfaces import INTERFACES, Interface
from .report import Finding, Status

Tree: TypeAlias = "Path | zipfile.Path"
"""A folder with ``torch`` and ``torchgen``, such as ``site-packages`` or a wheel."""

INSTALLED = Path(torch.__file__).parents[1]


def audit(tree: Tree = INSTALLED, interfaces: Iterable[Interface] = INTERFACES) -> list[Finding]:
    """Return for each virtual function whether it is overridden, declined or missing."""
    return [finding for interface in interfaces for finding in _interface(tree, interface)]


def virtuals(tree: Tree, interface: Interface) -> dict[str, str] | None:
    """Return the signatures of an interface by name, without those that PyTorch itself overrides.

    Returns None if this PyTorch does not have the class.
    """
    header = tree / "torch" / "include" / interface.header
    text = header.read_text("utf-8") if header.is_file() else ""
    found = headers.virtuals(text, interface.name)
    if found is None or interface.through is None:
        return found
    done = headers.overrides(text, interface.through) or {}
    return {name: found[name] for name in found if name not in done}


def _interface(tree: Tree, interface: Interface) -> Iterator[Finding]:
    found = virtuals(tree, interface)
    if found is None and interface.recent:
        return
    if found is None:
        why = f"this PyTorch has no such class in {interface.header}"
        yield Finding(interface.name, "", Status.MISSING, why, interface.page)
        return
    overridden = interface.overridden.split()
    without = missing_feature_hint(interface.feature)
    page = "features/index.md" if without else interface.page
    for name, signature in found.items():
        reason = without if name in overridden else interface.reason(name)
        status = Status.DECLINED if reason else Status.WORKS
        if not reason and name not in overridden:
            status, reason = Status.MISSING, f"neither overridden nor declined: {signature}"
        yield Finding(interface.name, name, status, reason or "", page)
