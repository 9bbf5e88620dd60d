"""What operators do whose family declines: other tests once more, on a device that lacks some."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from changed_device import changed_device
from support import needs, run_python

pytestmark = needs(torch.float32)

HERE = Path(__file__).parent
LINEAR_ALGEBRA = (
    "cholesky,lu,unpack_pivots,qr,ldl,solve_triangular,householder,ldl_solve,eigh,eig,svd"
)
CASES = {
    # Made of plain products and of elementwise families.
    "products": ("descriptors", ("scaled_mm", "grouped_mm", "quantized_weights")),
    "pivots": ("unpack_pivots", ("linalg", "linalg_edges")),
    "linear algebra": (LINEAR_ALGEBRA, ("linalg", "linalg_edges")),
    "attention": ("attention,attention_backward", ("attention", "serving")),
    "serving": ("append_to_cache,rotary,add_rms_norm,gated,sample", ("serving",)),
    "rows": ("softmax,softmax_backward,normalize,normalize_backward", ("softmax", "normalization")),
    "indices": ("gather,scatter,compact", ("indexing", "searching", "sparse")),
    "orders": ("sort,top_k,scan,arg_reduce", ("searching", "reductions", "counting")),
}


def declining(families: str, folder: Path) -> dict[str, str]:
    device = changed_device(HERE / "declining_device.cpp", folder)
    return device | {"DECLINED": families, f"{ENV_PREFIX}_TEST_FALLBACK": "allow"}


def test_what_was_written_before_a_part_was_declined_is_undone(tmp_path: Path) -> None:
    """Of ``linalg.lu`` one factor is made in the memory of both."""
    code = f"""
        import torch
        matrices = torch.randn(2, 4, 4)
        factors = torch.linalg.lu(matrices.to("{DEVICE}"))
        for one, other in zip(factors, torch.linalg.lu(matrices)):
            torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)
    """
    run_python(code, declining("unpack_pivots", tmp_path))


@pytest.mark.parametrize(
    "case", ["products", *(pytest.param(name, marks=pytest.mark.full) for name in list(CASES)[1:])]
)
def test_values_are_the_same(case: str, tmp_path: Path) -> None:
    families, files = CASES[case]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    done = subprocess.run(
        [*command, *(HERE / f"test_{name}.py" for name in files)],
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
        env=os.environ | declining(families, tmp_path),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
