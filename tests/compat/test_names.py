"""Names of PyTorch that a release lacks are found without importing it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from maintenance.compat.names import Library, Use, missing, uses
from rendering import Renderer

SITE = Path(sysconfig.get_path("purelib"))


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Return a package that binds names in every way that PyTorch does."""
    files = {
        "torch/__init__.py": (
            "from torch import nn as nn\n"
            "from torch._impl import *\n"
            "from .functional import einsum\n"
            "import torch.utils as helpers\n"
            "if True:\n    inside = 1\n"
            "try:\n    import json\nexcept ImportError:\n    pass\n"
        ),
        "torch/_impl.py": "shared, (first, *rest) = 1, (2, 3)\ndef made(): ...\n",
        "torch/functional.py": "def einsum(): ...\n",
        "torch/nn/__init__.py": "from . import functional\nclass Module: ...\n",
        "torch/nn/functional.py": "def relu(): ...\n",
        "torch/utils/__init__.py": "",
        "torch/_C/__init__.pyi": "float32: int\ndef mm(): ...\n",
        "torch/_C/_VariableFunctions.pyi": "def _neg_view(): ...\n",
        "torch/lazy.py": "def __getattr__(name): ...\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return Library(tmp_path)


BOUND = {
    "inside", "shared", "first", "rest", "made", "einsum", "helpers", "nn.Module",
    "nn.functional.relu", "float32", "mm", "_neg_view", "nn.Module.anything", "lazy.anything",
    "utils",
}  # fmt: skip


def test_bound_names_are_found_and_other_names_are_not(library: Library) -> None:
    names = {*BOUND, "absent", "nn.absent", "nn.functional.gelu", "utils.data"}
    assert {name for name in names if library.has(f"torch.{name}")} == BOUND


def test_uses_follow_imports_and_their_aliases(tmp_path: Path, library: Library) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text(
        "import numpy, torch\n"
        "from torch import nn\n"
        "from torch.nn import functional as F, Missing\n"
        "F.relu(torch.foo.anything, torch.absent, numpy.torch)\n"
        "nn.gone.further()\n"
    )
    (project / "_compat.py").write_text(
        "import torch\nif torch.inside:\n    torch.newer\nelse:\n    torch.older\n"
    )
    found = missing(project, "foo", library)
    assert [(use.line, use.name) for use in found] == [
        (3, "torch.nn.Missing"),
        (4, "torch.absent"),
        (5, "torch.nn.gone.further"),
        (5, "torch.nn.gone"),
    ]


def test_conditional_names_are_allowed_only_in_compat_py(tmp_path: Path) -> None:
    text = "import torch\nvalue = torch.new if hasattr(torch, 'new') else torch.old\n"
    for name, expected in (
        ("_compat.py", ["torch"]),
        ("other.py", ["torch", "torch.new", "torch.old"]),
    ):
        (tmp_path / name).write_text(text)
        assert [use.name for use in uses(tmp_path / name)] == expected


def test_the_installed_pytorch_has_every_name_that_a_render_uses(render: Renderer) -> None:
    project = render(preset="full")
    assert len([use for file in project.rglob("*.py") for use in uses(file)]) > 1000
    assert missing(project, "foo", Library(SITE)) == []


def test_an_unknown_name_of_pytorch_is_reported(render: Renderer, tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text("import torch\n\ntorch.accelerator.no_such_thing()\n")
    assert missing(tmp_path, "foo", Library(SITE)) == [
        Use(file, 3, "torch.accelerator.no_such_thing")
    ]
