"""`torchsmith op add`: the files that it writes, and that they compile."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commanding import Torchsmith, succeed
from rendering import contents, git
from torchsmith.files import write_texts

# Operators are read from PyTorch's wheel.
pytestmark = pytest.mark.torch

SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture
def without_erfc(project: Path) -> Path:
    """Return a project without a kernel for erfc, although a family can compute it."""
    file = project / "csrc" / "aten" / "unary.cpp"
    lines = file.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if 'structured<"erfc"' not in line]
    assert len(kept) == len(lines) - 1
    file.write_text("".join(kept), "utf-8")
    return project


def test_an_operator_of_a_kernel_family_is_registered_with_one_call(
    without_erfc: Path, torchsmith: Torchsmith
) -> None:
    done = torchsmith("op", "add", "aten::erfc", cwd=without_erfc).passed()
    assert "A kernel family computes it" in done.out
    text = (without_erfc / "csrc/operators/erfc.cpp").read_text("utf-8")
    assert "device::UnaryOp::kErfc" in text
    assert 'structured<"erfc", "erfc_", "erfc.out", at::meta::structured_erfc, &erfc>(m);' in text
    assert "has no body yet" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("enum class UnaryOp : uint8_t {", "enum class [[nodiscard]] UnaryOp : std::uint8_t\n{"),
        ("  kErfc,", "  kErfc [[maybe_unused]] = 99,"),
        ("enum class UnaryOp : uint8_t {", "enum UnaryOp {"),
    ],
)
def test_an_enumeration_with_other_syntax_is_read_or_refused(
    old: str, new: str, without_erfc: Path, torchsmith: Torchsmith
) -> None:
    header = without_erfc / "device" / "include" / "foo" / "device" / "elementwise.h"
    text = header.read_text("utf-8")
    assert text.count(old) == 1
    header.write_text(text.replace(old, new), "utf-8")
    done = torchsmith("op", "add", "aten::erfc", cwd=without_erfc)
    if "enum class" in new or "kErfc" in new:
        assert "A kernel family computes it" in done.passed().out
    else:
        done.refused("elementwise.h' has no 'enum class UnaryOp', which op add reads: restore it")
        assert not (without_erfc / "csrc" / "operators").exists()


def test_the_report_has_the_line_of_the_missing_body(project: Path, torchsmith: Torchsmith) -> None:
    report = torchsmith("op", "add", "aten::special_airy_ai", "--json", cwd=project).json
    assert report["kind"] == "structured"
    lines = (project / report["kernel"]).read_text("utf-8").splitlines()
    assert "aten::special_airy_ai has no body yet: write it in" in lines[report["line"] - 1]
    test = (project / report["test"]).read_text("utf-8")
    assert 'OPERATOR = "aten::special_airy_ai"' in test
    row = "| `aten::special_airy_ai` | `csrc/operators/special_airy_ai.cpp` |"
    assert row in (project / report["docs"]).read_text("utf-8")
    assert report["feature"] == ""


def test_a_feature_that_has_the_operator_is_named(project: Path, torchsmith: Torchsmith) -> None:
    done = torchsmith("op", "add", "aten::cumsum", cwd=project).passed()
    assert "more_operators has this operator too (torchsmith add more_operators)" in done.out


def test_only_the_functional_variant_needs_a_body(project: Path, torchsmith: Torchsmith) -> None:
    report = torchsmith("op", "add", "frexp", "--json", cwd=project).json
    assert report["kind"] == "function"
    text = (project / report["kernel"]).read_text("utf-8")
    assert text.count("has no body yet") == 1
    assert 'm.impl("frexp.Tensor_out", &frexp_tensor_out);' in text


def test_a_second_operator_adds_a_row_and_changes_no_template_file(
    project: Path, torchsmith: Torchsmith
) -> None:
    for name in ("special_airy_ai", "segment_reduce"):
        torchsmith("op", "add", name, cwd=project).passed()
    page = (project / "docs/own-operators.md").read_text("utf-8")
    assert page.count("# Operators of our own") == 1
    assert page.count("| `aten::") == 2
    assert git(project, "status", "--porcelain").splitlines() == [
        "?? csrc/operators/", "?? docs/own-operators.md", "?? tests/operators/",
    ]  # fmt: skip


def test_a_row_is_added_after_rows_of_other_commands_and_on_a_line_of_its_own(
    project: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = project / "docs" / "own-operators.md"

    def write_later(*arguments: Any) -> Any:
        monkeypatch.setattr("torchsmith.operators.write.write_texts", write_texts)
        torchsmith("op", "add", "segment_reduce", cwd=project).passed()
        page.write_text(page.read_text("utf-8").rstrip("\n"), "utf-8")
        return write_texts(*arguments)

    monkeypatch.setattr("torchsmith.operators.write.write_texts", write_later)
    torchsmith("op", "add", "special_airy_ai", cwd=project).passed()
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == ["aten::segment_reduce", "aten::special_airy_ai"]


def test_a_broken_link_among_the_kernels_is_skipped(project: Path, torchsmith: Torchsmith) -> None:
    """Emacs makes one beside each file with unsaved changes."""
    (project / "csrc" / "core" / ".#dispatch.cpp").symlink_to("me@host.1:2")
    torchsmith("op", "add", "special_airy_ai", cwd=project).passed()


def test_a_failed_op_add_leaves_no_files(project: Path, torchsmith: Torchsmith) -> None:
    (project / "tests" / "operators").write_text("a file of ours, where tests are to go\n")
    before = git(project, "status", "--porcelain", "--ignored")
    done = torchsmith("op", "add", "special_airy_ai", cwd=project)
    assert done.refused().startswith(f"the system refuses '{project}/tests/operators")
    assert git(project, "status", "--porcelain", "--ignored") == before
    assert not (project / "csrc" / "operators").exists()


# test_swap.py tests each moment, with and without git.
@pytest.mark.parametrize("moment", [2, 6, 10])
@pytest.mark.parametrize("under_git", [True, False], ids=["git", "no-git"])
def test_the_next_command_undoes_an_interrupted_op_add(
    project: Path,
    torchsmith: Torchsmith,
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
    under_git: bool,
) -> None:
    if not under_git:
        shutil.rmtree(project / ".git")
    before = contents(project)
    steps = itertools.count(1)

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if next(steps) >= moment:
                raise KeyboardInterrupt
            return function(*arguments, **named)

        return step

    with monkeypatch.context() as patch:
        for name in ("replace", "rename", "unlink", "rmdir"):
            patch.setattr(Path, name, dying(getattr(Path, name)))
        status = torchsmith("op", "add", "special_airy_ai", cwd=project).status
    torchsmith("features", cwd=project).passed()
    if status == 130:
        assert contents(project) == before
        assert not (project / "csrc" / "operators").exists()
        torchsmith("op", "add", "special_airy_ai", cwd=project).passed()
    assert set(contents(project)) - set(before) == {
        "csrc/operators/special_airy_ai.cpp", "docs/own-operators.md",
        "tests/operators/test_special_airy_ai.py",
    }  # fmt: skip


def test_invalid_operators_are_refused_in_one_sentence(
    project: Path, torchsmith: Torchsmith
) -> None:
    def sentence(name: str) -> str:
        return torchsmith("op", "add", name, cwd=project).refused()

    assert sentence("aten::gelu").startswith(
        "'aten::gelu' is there already: csrc/aten/activations.cpp:"
    )
    assert sentence("gelux") == "PyTorch has no operator 'aten::gelux'; did you mean 'aten::gelu'?"
    assert sentence("aten::batch_norm").startswith("'aten::batch_norm' needs no kernel")
    assert sentence("aten::view").startswith("'aten::view' needs no kernel: it is a view")
    assert sentence("pow") == (
        "'aten::pow' has 3 forms: "
        "choose from aten::pow.Tensor_Tensor, aten::pow.Scalar, aten::pow.Tensor_Scalar"
    )
    assert sentence("add.Scalar").startswith(
        "'aten::add' has no overload 'Scalar' that needs a kernel"
    )
    torchsmith("op", "add", "segment_reduce", cwd=project).passed()
    assert sentence("segment_reduce").startswith(
        "'aten::segment_reduce' is there already: csrc/operators/segment_reduce.cpp:"
    )


def test_the_written_files_are_formatted_and_compile(
    without_erfc: Path, torchsmith: Torchsmith
) -> None:
    """Tests one operator of each kind and of each form of arguments, with PyTorch's headers."""
    names = (
        "erfc", "special_airy_ai", "frexp", "segment_reduce", "fractional_max_pool2d",
        "_spdiags", "multilabel_margin_loss_forward",
        "rrelu_with_noise",
        "fmod_",
    )  # fmt: skip
    found = [torchsmith("op", "add", name, "--json", cwd=without_erfc) for name in names]
    assert found.pop().err.startswith("torchsmith: 'aten::fmod.Tensor' is there already")
    files = [done.json["kernel"] for done in found]
    for command in (
        ["clang-format", "--dry-run", "--Werror", *files],
        ["ruff", "format", "--check", "tests/operators"],
        ["ruff", "check", "tests/operators"],
        ["cmake", "-G", "Ninja", "-S.", "-Bbuild", f"-DPython_EXECUTABLE={sys.executable}"],
    ):
        succeed(*command, cwd=without_erfc)
    together = without_erfc / "build" / "together.cpp"
    together.write_text("".join(f'#include "{without_erfc / file}"\n' for file in files))
    include = SITE / "torch" / "include"
    succeed(
        os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra",
        "-Werror", "-DAT_PER_OPERATOR_HEADERS", "-DNDEBUG", "-Icsrc", "-Idevice",
        "-Idevice/include", "-Ibuild/include", "-isystem", include,
        "-isystem", include / "torch/csrc/api/include", together, cwd=without_erfc,
    )  # fmt: skip
