"""What `torchsmith new` shows before it renders: size, features, the command to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchsmith import catalog
from torchsmith.project import plain
from torchsmith.shell import quoted, quoted_path


def summary(destination: Path, values: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Return lines for the user.

    Args:
        destination: The folder.
        values: The answers to all questions.
        given: The answers that do not have their defaults.
    """
    total = size(values)
    build = f", about {total['build']} s of CPU time to build" if "build" in total else ""
    answers = [quoted(f"{key}={plain(answer)}") for key, answer in given.items()]
    command = " -d ".join([f"torchsmith new {quoted_path(destination)} --defaults", *answers])
    return [
        f"{destination}: {total['files']:,} files, {total['lines']:,} lines{build}.",
        f"Features: {', '.join(_features(values)) or 'none, the core alone'}.",
        f"The same without questions:\n\n  {command}",
    ]


def size(values: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the files and lines; for a measured preset, also the CPU seconds to build.

    Without a preset, the sum of the parts is returned, which is approximate.
    """
    sizes = catalog.sizes()
    return sizes["presets"].get(values.get("preset", "")) or {
        kind: sum(sizes["parts"][part][kind] for part in ("core", *_features(values)))
        for kind in ("files", "lines")
    }


def _features(values: Mapping[str, Any]) -> list[str]:
    """Return the features of the project, required ones included."""
    chosen = catalog.presets().get(values.get("preset", ""), values.get("features") or ())
    on = catalog.closure(frozenset(chosen))
    return [id for id in catalog.features() if id in on]
