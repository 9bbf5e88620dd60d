"""Operators whose kernel family returns "unsupported": other tests, on a device without some."""

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
    # Composed of plain products and elementwise families.
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


def test_arguments_are_restored_if_a_later_step_is_unsupported(tmp_path: Path) -> None:
    """``linalg.lu`` computes one factor in the memory of both."""
    code = f"""
        import torch
        matrices = torch.randn(2, 4, 4)
        factors = torch.linalg.lu(matrices.to("{DEVICE}"))
        for one, other in zip(factors, torch.linalg.lu(matrices)):
            torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-5)
    """
    run_python(code, declining("unpack_pivots", tmp_path))


def test_a_copy_writes_no_bytes_between_elements(tmp_path: Path) -> None:
    """Another thread may write the elements between, and its writes would be lost."""
    code = f"""
        import threading, torch
        from functools import partial
        width, height = 4, 64
        x = torch.zeros(height, width, device="{DEVICE}")
        columns = [torch.arange(float(height)) + 100 * i for i in range(width)]

        def write(i):
            for _ in range(20):
                x[:, i].zero_()
                x[:, i].copy_(columns[i].to("{DEVICE}"))
            torch.{DEVICE}.synchronize()

        threads = [threading.Thread(target=partial(write, i)) for i in range(width)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert x.cpu().equal(torch.stack(columns, 1)), x.cpu()
        for place in (lambda t: t[1::2, ::3].mT, lambda t: t[..., 0], lambda t: t.unfold(0, 3, 4)):
            before = torch.randn(9, 7, 5)
            for values in (torch.randn(9, 7, 5), torch.arange(315).view(9, 7, 5)):
                here, there = before.to("{DEVICE}"), before.clone()
                place(here).copy_(place(values.to("{DEVICE}")))
                place(there).copy_(place(values))
                assert here.cpu().equal(there)
    """
    run_python(code, declining("copy", tmp_path))


@pytest.mark.parametrize(
    "case", ["products", *(pytest.param(name, marks=pytest.mark.full) for name in list(CASES)[1:])]
)
def test_values_are_the_same(case: str, tmp_path: Path) -> None:
    families, names = CASES[case]
    files = [path for name in names if (path := HERE / f"test_{name}.py").exists()]
    if not files:
        pytest.skip("this project has none of the features with these operators")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    done = subprocess.run(
        [*command, *files],
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
        env=os.environ | declining(families, tmp_path),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
