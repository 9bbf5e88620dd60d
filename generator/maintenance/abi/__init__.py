"""The ABI of the device library's interface, recorded for each revision.

`python -m maintenance.abi` writes ``revision_N.yml`` for the ``kInterfaceRevision`` of the headers.
A revision with a file must not change: additions to the headers need the next revision.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

FROZEN = Path(__file__).parent

Abi = dict[str, Any]
"""Structs with their size, fields and functions; enumerations with their values; ``fixed`` names
the structs that are passed by value or in spans, and must not grow."""

_SOURCE = """\
#include <{backend}/device/table.h>
namespace device = {package}::device;
int version() {{ return (device::kInterfaceVersion << 16) + device::kInterfaceRevision; }}
device::Table table;
"""
# Types that do not cross the interface themselves.
_INTERNAL = {"Error", "Entry", "Wire", "Slice", "ArrayField"}


def frozen() -> dict[int, Abi]:
    """Return the revisions that have a file, in order."""
    files = {int(path.stem.rpartition("_")[2]): path for path in FROZEN.glob("revision_*.yml")}
    return {number: yaml.safe_load(files[number].read_text()) for number in sorted(files)}


def revision(project: Path) -> int:
    """Return ``kInterfaceRevision`` of a rendered project's headers."""
    (header,) = (project / "device" / "include").glob("*/device/runtime.h")
    found = re.search(r"kInterfaceRevision = (\d+);", header.read_text())
    assert found is not None
    return int(found[1])


def read(project: Path, compiler: str = "c++") -> Abi:
    """Return the ABI of a rendered project's headers, from the compiler's debug information."""
    include = project / "device" / "include"
    (runtime,) = include.glob("*/device/runtime.h")
    backend = runtime.relative_to(include).parts[0]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "abi.cpp"), Path(folder, "abi.o")
        source.write_text(
            _SOURCE.format(backend=backend, package=f"torch_{backend}"), encoding="utf-8"
        )
        flags = ["-std=c++20", "-g", "-gdwarf-4", "-fno-eliminate-unused-debug-types", "-c"]
        subprocess.run(
            [compiler, *flags, f"-I{include}", str(source), "-o", str(library)], check=True
        )
        with library.open("rb") as file:
            return _of_debug_information(ELFFile(file), f"torch_{backend}")


def _of_debug_information(elf: Any, package: str) -> Abi:
    structs: dict[str, Any] = {}
    enumerations: dict[str, Any] = {}
    fixed = {"Status"}
    for die in _types(elf, package):
        name = _name(die)
        if passed := re.match(r"Wire<(?:std::span<(?:const )?)?\w+::device::(\w+)[,>]", name):
            fixed.add(passed[1])
        if "DW_AT_declaration" in die.attributes or name.partition("<")[0] in _INTERNAL:
            continue
        size = die.attributes["DW_AT_byte_size"].value
        if die.tag == "DW_TAG_enumeration_type":
            values = {_name(value): _number(value, "DW_AT_const_value") for value in _children(die)}
            enumerations[name] = {"bytes": size, "values": values}
        else:
            members = [child for child in _children(die) if child.tag == "DW_TAG_member"]
            fields = {_name(member): _field(member) for member in members}
            structs[name] = {"bytes": size, "fields": fields}
    return {
        "structs": dict(sorted(structs.items())),
        "enumerations": dict(sorted(enumerations.items())),
        "fixed": sorted(fixed & set(structs)),
    }


def _types(elf: Any, package: str) -> list[DIE]:
    kinds = {"DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_enumeration_type"}
    found = []
    for unit in elf.get_dwarf_info().iter_CUs():
        for space in _children(unit.get_top_DIE()):
            if space.tag == "DW_TAG_namespace" and _name(space) == package:
                for inner in _children(space):
                    found += [die for die in _children(inner) if die.tag in kinds]
    return [die for die in found if "DW_AT_name" in die.attributes]


def _field(die: DIE) -> list[Any]:
    """Return the offset of a member in bytes, and its type."""
    return [_number(die, "DW_AT_data_member_location"), _type(die)]


def _type(die: DIE) -> str:
    if "DW_AT_type" not in die.attributes:
        return "void"
    of = die.get_DIE_from_attribute("DW_AT_type")
    inner = {
        "DW_TAG_typedef": "{}",
        "DW_TAG_const_type": "const {}",
        "DW_TAG_pointer_type": "{}*",
    }
    if of.tag in inner:
        return inner[of.tag].format(_type(of))
    if of.tag == "DW_TAG_array_type":
        counts = [_number(bound, "DW_AT_upper_bound") + 1 for bound in _children(of)]
        return _type(of) + "".join(f"[{count}]" for count in counts)
    if of.tag == "DW_TAG_subroutine_type":
        return f"{_type(of)}({', '.join(_type(parameter) for parameter in _children(of))})"
    return _name(of) or str(of.tag)


def _children(die: DIE) -> list[DIE]:
    return list(die.iter_children())


def _name(die: DIE) -> str:
    name = die.attributes.get("DW_AT_name")
    return "" if name is None else name.value.decode()


def _number(die: DIE, attribute: str) -> int:
    found = die.attributes.get(attribute)
    return 0 if found is None else int(found.value)


def broken(older: Abi, newer: Abi) -> list[str]:
    """Return the incompatibilities between a library of the older ABI and a newer project."""
    said = [f"{name} has gone" for kind in ("structs", "enumerations") for name in older[kind]
            if name not in newer[kind]]  # fmt: skip
    for name, before in older["structs"].items():
        after = newer["structs"].get(name, before)
        if list(after["fields"].items())[: len(before["fields"])] != list(before["fields"].items()):
            said.append(f"{name}: fields have changed that were there")
        if name in newer["fixed"] and after != before:
            said.append(f"{name} passes by value or in a span, and so never grows")
    for name, before in older["enumerations"].items():
        after = newer["enumerations"].get(name, before)
        if before["values"].items() - after["values"].items() or before["bytes"] != after["bytes"]:
            said.append(f"{name}: enumerators have changed that were there")
    return said
