"""Reads known.toml: declared failures, which must happen, and declared comparisons."""

from __future__ import annotations

import importlib
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from backend import PACKAGE
from support import supported_dtypes
from torch.testing._internal.opinfo.core import DecorateInfo

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from conformance.aspects import ASPECTS

KNOWN = tomllib.loads(Path(__file__).with_name("known.toml").read_text("utf-8"))

FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES
HAS_ALL_OPERATORS = all(
    FEATURES[id].enabled for id in ("linalg", "low_precision", "more_operators", "networks", "rng")
)

OPTIONS = ("values", "any_dtype", "input_only", "picks", "expanded", "infinity", "spared")
"""The options of a declared comparison, besides tolerances."""


def generated_without(entry: dict[str, Any]) -> bool:
    """Whether the backend lacks an entry's feature ``lacks``, and one of its dtypes ``without``.

    An entry without these keys applies to each backend.
    """
    if "lacks" in entry and FEATURES[entry["lacks"]].enabled:
        return False
    wanted = [getattr(torch, name) for name in entry.get("without", [])]
    return not wanted or any(dtype not in supported_dtypes() for dtype in wanted)


def entries(table: str, operator: str, aspect: str, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """Return the entries of a table that concern one test."""
    name = str(dtype).removeprefix("torch.")
    for entry in KNOWN.get(table, []):
        if (
            operator in entry["operators"]
            and aspect in entry.get("aspects", ASPECTS)
            and name in entry.get("dtypes", [name])
            and generated_without(entry)
        ):
            yield entry


def failure(operator: str, aspect: str, dtype: torch.dtype) -> dict[str, Any] | None:
    """Return the entry by which a test must fail, or None."""
    return next(entries("failure", operator, aspect, dtype), None)


def crash(operator: str, aspect: str) -> str:
    """Return why a test must not run, or an empty string."""
    entry = next(entries("crash", operator, aspect, torch.float32), None)
    return str(entry["reason"]) if entry else ""


def comparison(operator: str, aspect: str, dtype: torch.dtype) -> dict[str, Any]:
    """Return the declared options of a test's comparison."""
    result: dict[str, Any] = {}
    for entry in entries("comparison", operator, aspect, dtype):
        result.update({key: entry[key] for key in OPTIONS if key in entry})
        if "relative" in entry:
            result["tolerance"] = (entry["relative"], entry["absolute"])
    return result


def on_cpu(operator: str, aspect: str) -> bool | None:
    """Return whether samples, or their gradients, must fall back.

    None if this is not known: with another PyTorch, in a project without all operators, and for
    gradients of operators that fall back.
    """
    table = KNOWN["on_cpu"]
    if not torch.__version__.startswith(f"{table['torch']}.") or not HAS_ALL_OPERATORS:
        return None
    if aspect == "backward":
        return None if operator in table["operators"] else operator in table["gradients"]
    return operator in table["operators"]


def op_overrides(test_class: str) -> dict[str, list[DecorateInfo]]:
    """Return the declared failures as ``op_overrides`` of PyTorch's ``set_test_configs``."""
    overrides: dict[str, list[DecorateInfo]] = {}
    for entry in KNOWN.get("failure", []):
        if not generated_without(entry):
            continue
        dtypes = [getattr(torch, name) for name in entry["dtypes"]] if "dtypes" in entry else None
        for operator in entry["operators"]:
            for aspect in entry.get("aspects", ASPECTS):
                overrides.setdefault(operator, []).append(
                    DecorateInfo(
                        unittest.expectedFailure, test_class, f"test_{aspect}", dtypes=dtypes
                    )
                )
    return overrides
