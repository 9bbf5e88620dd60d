"""The text of an operator's kernel, its test and its row in the docs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchsmith.operators.schema import Function, Operator, Structured

# Which enum of kernels.h an elementwise operator of so many tensors would stand in, and the call.
_FAMILIES = {
    1: (
        "UnaryOp",
        "kernels::unary(launch, {op}, operands.out(), operands.input(0).view, "
        "device::UnaryParams())",
    ),
    2: (
        "BinaryOp",
        "kernels::binary(launch, {op}, operands.out(), operands.input(0), operands.input(1), "
        "device::Scalar())",
    ),
}
# The kinds of functions in the order in which they are registered, and what ends their C++ names.
_SUFFIXES = {"functional": "", "in-place": "_in_place", "out": "_out"}


@dataclass(frozen=True)
class Fit:
    """The operation of a kernel family that computes an operator."""

    op: str
    """Its C++ name, "device::UnaryOp::kErf"."""
    call: str
    truth: bool
    """Whether its result is bool whatever its inputs are."""


def fit(operator: Operator, kernels_header: Path) -> Fit | None:
    """Return the operation of a family that the operator is, by what kernels.h lists."""
    structured = operator.structured
    if structured is None or not structured.over_iterator:
        return None
    if any(type != "const at::Tensor&" for type, _ in structured.arguments):
        return None
    enum, call = _FAMILIES.get(len(structured.arguments), ("", ""))
    listed = re.search(rf"enum class {enum} : uint8_t \{{(.*?)\n\}};", _read(kernels_header), re.S)
    name = "k" + "".join(w.title() for w in operator.base.removeprefix("special_").split("_"))
    member = re.search(rf"\b({name}),?[ ]*(// bool)?", listed[1], re.I) if enum and listed else None
    if member is None or member[1].lower() != name.lower():
        return None
    op = f"device::{enum}::{member[1]}"
    return Fit(op, call.format(op=op), bool(member[2]))


def kernel(operator: Operator, file: str, package: str, fitting: Fit | None) -> str:
    """Return the C++ file; ``file`` is its name in the project."""
    if operator.structured is not None:
        return _structured_kernel(operator, operator.structured, file, package, fitting)
    return _host_functions(operator, file, package)


def _structured_kernel(
    operator: Operator, structured: Structured, file: str, package: str, fitting: Fit | None
) -> str:
    kernel = "at::TensorIteratorBase& iter" if structured.over_iterator else "at::impl::MetaBase&"
    if fitting:
        result = "c10::ScalarType::Bool" if fitting.truth else "type"
        unnamed = ", ".join(type for type, _ in structured.arguments)
        body = f"""\
// The kernel family does it: {fitting.op}.
device::Answer {operator.identifier}({kernel}, at::Tensor&, {unnamed}) {{
  const auto type = iter.common_dtype();
  return iterate(iter, type, {result}, [](const auto& launch, const Operands& operands) {{
    return {fitting.call};
  }});
}}
"""
    else:
        arguments = _list([("at::Tensor&", "out"), *structured.arguments], named=False)
        iterator = kernel.replace(" iter", " /*iter*/")
        body = f"""\
// Writes the elements of `out`, to which ATen gave sizes, strides and type. Where it answers
// device::Answer::unsupported("why") before it has written any, the operator runs on the CPU.
device::Answer {operator.identifier}({iterator}, {arguments}) {{
  {_throw(operator, file)}
}}
"""
    quoted = ", ".join(f'"{function.name}"' for function in _sorted(operator))
    iterate = '#include "aten/iterate.h"\n' if structured.over_iterator else ""
    return f"""\
// {operator.name}. ATen checks its arguments and makes its output; what is computed is here.
#include <ATen/ops/{operator.base}_meta.h>
#include <c10/util/Exception.h>

{iterate}#include "aten/structured.h"

namespace {package}::aten {{
namespace {{

{body}
const Operators {operator.identifier}_operators([](Operators& m) {{
  structured<{quoted}, at::meta::{structured.meta}, &{operator.identifier}>(m);
}});

}}  // namespace
}}  // namespace {package}::aten
"""


def _host_functions(operator: Operator, file: str, package: str) -> str:
    """Return one function to be written, from which the variants follow where there is one."""
    base = operator.get("functional")
    functions, lines = [], []
    for each in _sorted(operator):
        name = (
            operator.identifier
            + {"functional": "", "in-place": "_in_place", "out": "_out"}[each.kind]
        )
        lines.append(f'  m.impl("{each.name}", &{name});')
        if base is None or each is base:
            functions.append(
                f"{each.result} {name}({_list(each.arguments, named=False)}) {{\n"
                f"  {_throw(operator, file)}\n}}\n"
            )
        elif each.kind == "in-place":
            given = ", ".join(argument for _, argument in each.arguments)
            functions.append(
                f"{each.result} {name}({_list(each.arguments)}) {{\n"
                f"  return self.copy_({operator.identifier}({given}));\n}}\n"
            )
        else:
            functions.append(_out(operator, each, name))
    needs_resize = base is not None and operator.get("out") is not None
    resize = "#include <ATen/native/Resize.h>\n" if needs_resize else ""
    tuple_header = (
        "#include <tuple>\n\n" if any("tuple" in f.result for f in operator.functions) else ""
    )
    body = "\n".join(functions)
    return f"""\
// {operator.name}.
#include <ATen/core/Tensor.h>
{resize}#include <c10/util/Exception.h>

{tuple_header}#include "core/operators.h"

namespace {package}::aten {{
namespace {{

// Check that the arguments share a device, make the result there, and call a kernel family through
// launch() of core/launch.h. csrc/aten has examples.
{body}
const Operators {operator.identifier}_operators([](Operators& m) {{
{chr(10).join(lines)}
}});

}}  // namespace
}}  // namespace {package}::aten
"""


def _sorted(operator: Operator) -> list[Function]:
    return sorted(operator.functions, key=lambda function: list(_SUFFIXES).index(function.kind))


def _out(operator: Operator, function: Function, name: str) -> str:
    inputs = [argument for argument in function.arguments if argument[1] not in function.outputs]
    call = f"{operator.identifier}({', '.join(argument for _, argument in inputs)})"
    if len(function.outputs) == 1:
        (out,) = function.outputs
        steps = [
            f"const auto result = {call};",
            f"at::native::resize_output({out}, result.sizes());",
            f"return {out}.copy_(result);",
        ]
    else:
        steps = [f"const auto results = {call};"]
        for index, out in enumerate(function.outputs):
            steps.append(f"at::native::resize_output({out}, std::get<{index}>(results).sizes());")
            steps.append(f"{out}.copy_(std::get<{index}>(results));")
        steps.append(f"return {{{', '.join(function.outputs)}}};")
    body = "\n".join(f"  {step}" for step in steps)
    return f"{function.result} {name}({_list(function.arguments)}) {{\n{body}\n}}\n"


def _list(arguments: Sequence[tuple[str, str]], *, named: bool = True) -> str:
    """Return a parameter list; names that nothing uses yet stand in comments."""
    return ", ".join(f"{type} {name if named else f'/*{name}*/'}" for type, name in arguments)


def _throw(operator: Operator, file: str) -> str:
    said = f"{operator.name} has no body yet: write it in {file}"
    return f'C10_THROW_ERROR(NotImplementedError, "{said}");'


def _read(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""


def test(operator: Operator) -> str:
    """Return the test: the device against the CPU, over the samples that PyTorch has."""
    return f'''\
"""{operator.name} on the device against the CPU, over the samples of PyTorch's OpInfo."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import supported
from torch.testing._internal.common_methods_invocations import op_db

OPERATOR = "aten::{operator.base}"
CASES = [
    pytest.param(info, dtype, id=f"{{info.formatted_name}}-{{dtype}}")
    for info in op_db
    if f"aten::{{info.aten_name}}" == OPERATOR
    for dtype in supported()
    if dtype in info.supported_dtypes("cpu")
]


def to_device(value: Any) -> Any:
    return value.to(DEVICE) if isinstance(value, torch.Tensor) else value


def test_there_are_samples() -> None:
    assert CASES, f"PyTorch has no OpInfo for {{OPERATOR}}: write cases of your own here"


@pytest.mark.parametrize(("info", "dtype"), CASES)
def test_the_device_gives_what_the_cpu_gives(info: Any, dtype: torch.dtype) -> None:
    backend.reset_fallback_stats()
    for sample in info.sample_inputs("cpu", dtype):
        expected = info(sample.input, *sample.args, **sample.kwargs)
        moved = sample.transform(to_device)
        actual = info(moved.input, *moved.args, **moved.kwargs)
        torch.testing.assert_close(actual, expected, check_device=False, equal_nan=True)
    declined = [name for name in backend.fallback_stats() if name.split(".")[0] == OPERATOR]
    assert not declined, "the device declined, and the CPU did it"
'''


DOCS_HEADER = """\
# Operators of our own

Kernels that this project has beyond those of its template.

| operator | kernel | test |
|---|---|---|
"""


def docs_row(operator: Operator, kernel_file: str, test_file: str) -> str:
    """Return the operator's row in the docs."""
    return f"| `{operator.name}` | `{kernel_file}` | `{test_file}` |\n"
