"""The report of a crash in the conformance tests, and the kernels that they find."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance import routes
from conformance.declared import HAS_ALL_OPERATORS
from support import run_python


@pytest.mark.full
def test_the_stack_of_a_crashed_interpreter_names_the_operator() -> None:
    result = run_python(
        f"""
        import faulthandler, os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        import torch
        from conformance import aspects
        faulthandler.enable()
        aspects.ASPECTS["forward"] = lambda run, sample: os.kill(os.getpid(), signal.SIGSEGV)
        from torch.testing._internal.common_methods_invocations import op_db
        op = next(op for op in op_db if op.full_name == "exp")
        aspects.compare_with_cpu("forward", op, torch.float32, {{}})
        """,
        check=False,
    )
    assert result.returncode != 0
    assert "forward of exp torch.float32" in result.stderr


def test_operators_are_kernels_of_this_backend() -> None:
    """Too few overloads mean that a source file of operators did not register."""
    assert len(routes.native_overloads()) >= (500 if HAS_ALL_OPERATORS else 240)
    assert len(routes.computed_overloads()) > len(routes.native_overloads())
