"""Choosing a compiler, and adding one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import is_simulator, needs, run_python, since

PAGE = Path(__file__).parents[2] / "docs" / "features" / "compile.md"


def test_importing_the_backend_imports_no_compiler() -> None:
    run_python(
        f"""
import sys, torch
torch.ones(2, device="{DEVICE}").sin().cpu()
assert not {{"torch._dynamo", "torch._inductor"}} & set(sys.modules)
"""
    )


def test_the_example_of_the_page_runs() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    (example,) = (each for each in examples if "register_compiler" in each)
    run_python(
        f"""device = "{DEVICE}"
{example}
from torch._inductor.utils import run_and_get_code
x, y = torch.randn(3, 4), torch.randn(4)
compiled = torch.compile(lambda x, y: torch.relu(x + y) * 2)
result, code = run_and_get_code(compiled, x.to(device), y.to(device))
torch.testing.assert_close(result.cpu(), torch.relu(x + y) * 2)
assert "vendor.add_relu" in code[0] and "relu.default(" not in code[0].replace("add_relu", "")
"""
    )


def test_the_page_lists_the_fields_of_dialect() -> None:
    (table,) = re.findall(
        r"\| field of `Dialect` .*?\n\n", PAGE.read_text("utf-8"), flags=re.DOTALL
    )
    rows = [line.split("|")[1] for line in table.splitlines()[2:] if line]
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    dialect = backend.Dialect
    known = {*dialect.__annotations__, *vars(dialect)}
    assert named <= known, named - known
    assert dialect.__abstractmethods__ <= named


def test_a_second_dialect_for_a_code_format_is_refused() -> None:
    class Again(backend.Dialect):  # type: ignore[name-defined,misc]
        code_format = "opencl-c"

    Again.__abstractmethods__ = frozenset()
    with pytest.raises(ValueError, match="a dialect for 'opencl-c' already"):
        backend.register_dialect(Again())


@pytest.mark.full
def test_a_compiler_of_whole_graphs_is_called() -> None:
    run_python(
        f"""
import torch
backend = torch.get_device_module("{DEVICE}")
seen = []

def compile(graph, inputs):
    seen.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
    return graph.forward if len(seen) == 1 else None

backend.register_compiler(backend.Compiler("whole", compile=compile))
x = torch.randn(4, requires_grad=True)
held = x.detach().to("{DEVICE}").requires_grad_()
for each in (x, held):
    program = torch.compile(lambda x: x.sin().sum()) if each is held else lambda x: x.sin().sum()
    program(each).backward()
torch.testing.assert_close(held.grad.cpu(), x.grad)
assert len(seen) == 2 and "aten.sin.default" in seen[0], seen
"""
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fastest", "no compiler is named 'fastest'"),
        ("never", "cannot be used on this device"),
        ("triton", "triton is not installed: install it, and its|Triton needs PyTorch"),
    ],
)
def test_an_invalid_compiler_choice_raises(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "never" not in backend.compilers():
        backend.register_compiler(backend.Compiler("never", usable=lambda: False))
    monkeypatch.setitem(sys.modules, "triton", None)  # as if it were not installed
    monkeypatch.setenv(f"{ENV_PREFIX}_COMPILER", name)
    with pytest.raises(Exception, match=message):
        torch.compile(lambda x: x + 1)(torch.ones(2, device=DEVICE))


@pytest.mark.skipif(not is_simulator(), reason="another device's driver compiles its kernels")
def test_the_reason_why_the_kernels_cannot_be_used_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}_COMPILER", "kernels")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Exception, match="this machine has no compiler for CppDialect"):
        torch.compile(lambda x: x + 1)(torch.ones(2, device=DEVICE))


def test_a_second_compiler_with_the_same_name_is_refused() -> None:
    with pytest.raises(ValueError, match="choose another name"):
        backend.register_compiler(backend.Compiler("operators"))
    assert backend.compilers()[-3:] == ["kernels", "operators", "triton"]


def test_an_operation_that_cannot_be_captured_warns() -> None:
    compiled = torch.compile(lambda x: x.sin() + x.cpu().sum(), mode="reduce-overhead")
    with pytest.warns(UserWarning, match="runs without a graph: it uses cpu"):
        compiled(torch.ones(2, device=DEVICE))


@pytest.mark.full
@needs(torch.int32)
@since((2, 13), "has kernels in the device's language")
@pytest.mark.skipif(not is_simulator(), reason="only the simulator can lose dtypes")
def test_cached_code_is_not_used_with_other_dtypes(tmp_path: Path) -> None:
    """The first process calls operators, as its device lacks int32. The second has a kernel."""
    code = f"""
import os
import torch
from torch._inductor.utils import run_and_get_code
x = torch.arange(50, dtype=torch.int32, device="{DEVICE}")
result, code = run_and_get_code(torch.compile(lambda x: x * 2 + x), x)
assert result.cpu().eq(torch.arange(50) * 3).all()
assert ("define_kernel(" in code[0]) == ("{ENV_PREFIX}_SIMULATOR_DTYPES" not in os.environ)
"""
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    allowed = {f"{ENV_PREFIX}_FALLBACK": "silent", f"{ENV_PREFIX}_SIMULATOR_DTYPES": "float32"}
    run_python(code, cache | allowed)
    run_python(code, cache)
