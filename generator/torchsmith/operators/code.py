"""The text of an operator's kernel and of its test, from the templates in files/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from torchsmith.errors import InputError
from torchsmith.jinja import own
from torchsmith.operators.schema import Operator

FILES = Path(__file__).with_name("files")
_TEMPLATES = own(FILES)

# The kernel family of an elementwise operator, by its number of input tensors.
_FAMILIES = {1: "unary", 2: "binary"}


@dataclass(frozen=True)
class Fit:
    """The operation of a kernel family that computes an operator."""

    family: str
    operation: str
    """Its C++ name, "device::UnaryOp::kErf"."""
    truth: bool
    """Whether its result is bool for inputs of every dtype."""


def fit(operator: Operator, header: Path) -> Fit | None:
    """Return the kernel family's operation for an operator, as elementwise.h lists it, or None.

    Raises:
        InputError: The header has no such list.
    """
    structured = operator.structured
    if structured is None or not structured.over_iterator or not header.exists():
        return None
    if any(argument.type != "const at::Tensor&" for argument in structured.arguments):
        return None
    family = _FAMILIES.get(len(structured.arguments))
    if family is None:
        return None
    enum = f"{family.title()}Op"
    attributes = r"(\[\[.*?\]\]\s*)*"
    listed = re.search(
        rf"enum class\s+{attributes}{enum}\b[^;{{]*\{{(?P<members>[^}}]*)\}}",
        header.read_text("utf-8"),
    )
    if listed is None:
        raise InputError(
            f"'{header}' has no 'enum class {enum}', which op add reads: restore it with git"
        )
    name = "k" + "".join(w.title() for w in operator.base.removeprefix("special_").split("_"))
    member = re.search(rf"\b({name})\b[^,\n]*,?[ ]*(// bool)?", listed["members"], re.I)
    if member is None:
        return None
    return Fit(family, f"device::{enum}::{member[1]}", bool(member[2]))


def kernel_code(operator: Operator, file: str, package: str, fitting: Fit | None) -> str:
    """Return the C++ file; ``file`` is its name in the project."""
    template = "structured" if operator.structured else "functions"
    # By kind: functional, in-place, out.
    functions = sorted(operator.functions, key=attrgetter("kind"))
    return _TEMPLATES.get_template(f"{template}.cpp.jinja").render(
        operator=operator, functions=functions, file=file, package=package, fit=fitting
    )


def test_code(operator: Operator) -> str:
    """Return the test: the device against the CPU, over the samples that PyTorch has."""
    return _TEMPLATES.get_template("test.py.jinja").render(operator=operator)
