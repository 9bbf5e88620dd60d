"""`torchsmith add` and `remove` of each feature give what a fresh render gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from commanding import Torchsmith
from rendering import Renderer, commit, contents
from torchsmith import catalog


@pytest.mark.nightly
@pytest.mark.parametrize("feature", catalog.features())
def test_adding_and_removing_give_fresh_renders(
    feature: str, render: Renderer, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    project = render.project(tmp_path / "torch-foo", preset="minimal")
    torchsmith("add", feature, "--yes", cwd=project).passed()
    # A fresh render with the simulator builds it by default; a project keeps its default device.
    assert contents(project) == contents(render(features=[feature], device="starter"))
    commit(project, "added")
    torchsmith("remove", feature, "--yes", cwd=project).passed()
    assert contents(project) == contents(render(preset="custom", features=[]))
