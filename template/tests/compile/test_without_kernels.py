"""A device that has only kernels for fills and copies, with IREE as its graph compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from changed_device import changed_device
from support import EXAMPLES, needs, run_python

pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
pytestmark = [needs(torch.float32), pytest.mark.full]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which only two families have kernels and the CPU fallback is off."""
    source = HERE.parent / "core" / "declining_device.cpp"
    functions = backend._C.device_functions()
    families = {function for group, function, _ in functions if group == "families"}
    assert {"fill", "copy", "matmul"} <= families
    return changed_device(source, tmp_path_factory.mktemp("chip")) | {
        "DECLINED": ",".join(families - {"fill", "copy"}),
        f"{ENV_PREFIX}_FALLBACK": "error",
        f"{ENV_PREFIX}_TEST_FALLBACK": "refuse",
    }


def test_models_train_with_the_graph_compiler(chip: dict[str, str]) -> None:
    """The results and gradients of a perceptron, a ResNet block and a GPT block equal the CPU's."""
    tests = HERE / "test_graph_compiler.py"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
            *("-m", "full", "-k", "test_models or test_training", str(tests)),
        ],
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
        env=os.environ | chip,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "5 passed" in done.stdout and "skipped" not in done.stdout, done.stdout


def test_an_operator_without_a_kernel_raises_unless_the_fallback_is_on(
    chip: dict[str, str],
) -> None:
    """The eager operator raises without a kernel, unless the CPU fallback is on."""
    run_python(
        f"""
        import runpy, torch
        backend = torch.{DEVICE}
        runpy.run_path({str(EXAMPLES / "graph_compiler.py")!r})["register"]("{DEVICE}")
        x = torch.tensor([3.0, 1.0, 2.0]).to("{DEVICE}")
        program = torch.compile(lambda x: (x + 1).sort()[0] * 2)
        for name, call in ("add", lambda: x + 1), ("sort", lambda: program(x)):
            try:
                call()
            except NotImplementedError as error:
                assert f"aten::{{name}}." in str(error) and "cannot run on {DEVICE}" in str(error)
            else:
                raise AssertionError(name)
        backend.set_fallback_policy("silent")
        with backend.count_fallbacks() as fallbacks:
            result = program(x)
        assert list(fallbacks) == ["aten::sort.stable"], fallbacks
        assert result.cpu().tolist() == [4, 6, 8]
        """,
        chip,
    )
