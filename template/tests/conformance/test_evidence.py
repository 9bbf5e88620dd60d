"""What a run of the conformance tests leaves behind, whatever happened in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from backend import DEVICE
from conformance import evidence, report, routes
from support import run_python

PASSED = {"kind": "pass", "route": "native", "fallbacks": [], "samples": 3, "reason": ""}


def nodeid(test: str) -> str:
    return f"tests/conformance/{evidence.MODULE}::TestConformance::{test}"


def test_name_of_a_test_is_enough_to_place_it() -> None:
    test = nodeid(f"test_in_place_add_{DEVICE}_float32")
    assert evidence.decode(test) == ("add", "float32", "in_place")
    test = nodeid(f"test_forward_nn_functional_conv2d_{DEVICE}_bfloat16")
    assert evidence.decode(test) == ("nn.functional.conv2d", "bfloat16", "forward")


def test_worker_that_died_is_a_crash_and_a_skipped_test_is_none(
    pytestconfig: pytest.Config,
) -> None:
    plugin = evidence.Evidence(pytestconfig)
    test = nodeid(f"test_backward_sgn_{DEVICE}_float32")
    died = pytest.TestReport(test, ("", None, ""), {}, "failed", "worker crashed", "???")  # type: ignore[arg-type]
    passed = pytest.TestReport(
        nodeid(f"test_forward_sgn_{DEVICE}_float32"),
        ("", None, ""),
        {},
        "passed",
        None,
        "call",
        user_properties=[("conformance", PASSED)],
    )
    skipped = pytest.TestReport(
        nodeid(f"test_out_sgn_{DEVICE}_float32"), ("", None, ""), {}, "skipped", None, "call"
    )
    for one in (died, passed, skipped):
        plugin.pytest_runtest_logreport(one)
    document = plugin.document()
    assert document["results"]["sgn"]["float32"]["backward"] == {"kind": "crash"}
    assert document["results"]["sgn"]["float32"]["forward"] == PASSED
    assert document["results"]["sgn"]["float32"]["out"] == {"kind": "skip"}
    assert report.kinds(document["results"])["crash"] == 1
    assert "1 crashes" in " ".join(report.summary(document))


def test_stack_of_a_dying_interpreter_names_the_operator() -> None:
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


def test_report_tells_every_verdict(tmp_path: Path) -> None:
    cells = {
        "forward": PASSED,
        "out": {**PASSED, "route": "fallback", "fallbacks": ["aten::exp.out"]},
        "in_place": {**PASSED, "kind": "wrong"},
        "backward": {**PASSED, "kind": "raised", "category": "dtype", "reason": "no complex"},
        "memory": {**PASSED, "extra": 1.5},
    }
    document = {
        "versions": evidence.versions(),
        "overloads": {"native": 3, "computed": 4},
        "results": {"exp": {"float32": cells}},
    }
    text = report.markdown(document)
    assert "| `exp` | native 1 |  | fallback 1 | failed 1 | unsupported 1 |  |" in text
    assert "| native 1, 1.5 x |" in text
    assert "no complex: `exp` (1 tests)" in text
    assert "1 of the 1 pairs" in text
    assert "3 of the 4 overloads" in text
    assert "1 wrong results, 0 crashes" in text
    page = report.page(document)
    data = page.partition("const data = ")[2].partition(";\n")[0]
    assert json.loads(data)["rows"][0][0] == "exp"
    assert "@" not in page.partition("<script>")[0].partition("</style>")[2]


def test_operators_are_kernels_of_this_backend() -> None:
    """Most of what models dispatch to: too few mean that a file of operators did not register."""
    assert len(routes.native_overloads()) >= 300
    assert len(routes.computed_overloads()) > len(routes.native_overloads())
