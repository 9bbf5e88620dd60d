"""The device library's ABI equals its record, and each revision only adds to the last."""

from __future__ import annotations

import copy
import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

from maintenance import abi
from maintenance.compat import cxx
from rendering import Renderer


@pytest.fixture
def project(render: Renderer) -> Path:
    return render(preset="full")


@pytest.mark.parametrize("compiler", ["c++", cxx.CROSS])
def test_the_headers_match_the_record_of_their_revision(project: Path, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    number = abi.revision(project)
    assert number in abi.frozen(), "run `python -m maintenance.abi`"
    frozen = abi.frozen()[number]
    assert abi.read(project, compiler) == frozen, "raise kInterfaceRevision, then run it"


def test_each_revision_only_adds_to_the_last() -> None:
    revisions = list(abi.frozen().values())
    for older, newer in itertools.pairwise(revisions):
        assert abi.broken(older, newer) == []


@pytest.fixture
def newest() -> Any:
    return list(abi.frozen().values())[-1]


def test_types_passed_by_value_or_in_spans_are_fixed(newest: Any) -> None:
    assert set(newest["fixed"]) == {
        "Activity",
        "CopyPiece",
        "Extent",
        "FunctionArgument",
        "Location",
        "Status",
        "TensorView",
    }
    assert newest["structs"]["Location"]["fields"] == {
        "address": [0, "void*"],
        "device": [8, "int"],
    }


def test_additions_are_accepted_and_other_changes_are_reported(newest: Any) -> None:
    def changed(kind: str, name: str, member: str, value: Any, *, first: bool = False) -> list[str]:
        later = copy.deepcopy(newest)
        members = later[kind][name]["fields" if kind == "structs" else "values"]
        rest = dict(members)
        members.clear()
        members.update({member: value, **rest} if first else {**rest, member: value})
        return abi.broken(newest, later)

    launch = newest["structs"]["Launch"]
    assert changed("structs", "Launch", "next", [launch["bytes"], "int"]) == []
    assert changed("structs", "Launch", "next", [0, "int"], first=True) == [
        "Launch: fields have changed that were there"
    ]
    assert changed("structs", "Launch", "stream", [0, "void*"]) != []
    assert changed("structs", "RuntimeEntries", "more", [232, "Status()*"]) == []
    assert changed("structs", "Location", "length", [16, "int"]) == [
        "Location passes by value or in a span, and so never grows"
    ]
    assert changed("enumerations", "UnaryOp", "kNext", 99) == []
    assert changed("enumerations", "DType", "kBool", 77) == [
        "DType: enumerators have changed that were there"
    ]
    gone = copy.deepcopy(newest)
    del gone["structs"]["PoolParams"]
    assert abi.broken(newest, gone) == ["PoolParams has gone"]
