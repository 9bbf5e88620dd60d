"""Kernels whose C++ types differ from those in a release's headers are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintenance.compat.schemas import FOLLOWED, differing

HEADER = """
struct TORCH_API {name} {{
  using schema = at::Tensor (const at::Tensor &, {list});
  static constexpr const char* name = "aten::{name}";
  static constexpr const char* overload_name = "";
}};
struct TORCH_API {name}_out {{
  using schema = at::Tensor & (const at::Tensor &, {list}, at::Tensor &);
  static constexpr const char* name = "aten::{name}";
  static constexpr const char* overload_name = "out";
}};
"""
OLD, NEW = "at::TensorList", "const at::ITensorListRef &"
FOLLOWED_NAME, ALIAS = next(iter(FOLLOWED.items()))


def headers(root: Path, name: str, kind: str) -> Path:
    folder = root / "torch/include/ATen/ops"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_ops.h").write_text(HEADER.format(name=name, list=kind))
    return root


def source(root: Path, text: str) -> Path:
    (root / "csrc/aten").mkdir(parents=True)
    (root / "csrc/aten/kernels.cpp").write_text(text)
    return root / "csrc"


@pytest.mark.parametrize("overload", ["", ".out"])
def test_a_kernel_with_different_types_is_reported(tmp_path: Path, overload: str) -> None:
    tested = headers(tmp_path / "tested", "stack_all", OLD)
    other = headers(tmp_path / "other", "stack_all", NEW)
    csrc = source(tmp_path, f'm.impl("stack_all{overload}", &stack_all);')
    assert list(differing(csrc, tested, tested)) == []
    (problem,) = differing(csrc, tested, other)
    assert problem.startswith("aten/kernels.cpp: stack_all is ")
    assert NEW in problem


def test_boxed_kernels_are_not_compared(tmp_path: Path) -> None:
    tested = headers(tmp_path / "tested", "stack_all", OLD)
    other = headers(tmp_path / "other", "stack_all", NEW)
    csrc = source(tmp_path, 'm.impl("stack_all", torch::CppFunction::makeFromBoxed(&f));')
    assert list(differing(csrc, tested, other)) == []


@pytest.mark.parametrize("follows", [True, False])
def test_a_kernel_that_uses_the_compat_alias_is_accepted(tmp_path: Path, follows: bool) -> None:
    tested = headers(tmp_path / "tested", FOLLOWED_NAME, OLD)
    other = headers(tmp_path / "other", FOLLOWED_NAME, NEW)
    text = f"f(compat::{ALIAS} list);" if follows else "f(at::TensorList list);"
    csrc = source(tmp_path, f'{text}\nm.impl("{FOLLOWED_NAME}", &f);')
    assert bool(list(differing(csrc, tested, other))) is not follows
