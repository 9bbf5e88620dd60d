"""The worked example of docs/adding-an-operator.md, applied, built and run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from maintenance.installing import Installed
from rendering import Renderer

BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.M | re.S)
PAGE = "docs/adding-an-operator.md"


def apply(project: Path) -> None:
    """Apply the diffs of the page: the old lines of each must occur once in its file."""
    for kind, path, text in BLOCK.findall((project / PAGE).read_text("utf-8")):
        file = project / path
        if kind != "diff":
            file.write_text(text, "utf-8")
            continue
        lines = [(line[:1], line[1:]) for line in text.splitlines(keepends=True)]
        old = "".join(line for mark, line in lines if mark != "+")
        new = "".join(line for mark, line in lines if mark != "-")
        content = file.read_text("utf-8")
        assert content.count(old) == 1, f"{path} has {content.count(old)} times:\n{old}"
        file.write_text(content.replace(old, new), "utf-8")


def test_the_diffs_of_the_page_apply(render: Renderer, tmp_path: Path) -> None:
    project = render.project(tmp_path / "project", preset="full")
    apply(project)
    assert "kEntr" in (project / "csrc/aten/unary.cpp").read_text("utf-8")
    assert "kEntr" in (project / "device/reference/unary_floating.cpp").read_text("utf-8")


@pytest.mark.nightly
def test_the_worked_example_builds_and_passes_its_tests(install: Callable[..., Installed]) -> None:
    done = install("example", edit=apply, preset="full")
    new = done.run("-m", "pytest", "-q", "tests/core/test_special_entr.py")
    assert new.returncode == 0, new.stdout[-6000:] + new.stderr[-6000:]
    assert "2 passed" in new.stdout
    conformance = done.run("-m", "pytest", "-q", "device/tests/kernels/test_unary.py", "-k", "entr")
    assert conformance.returncode == 0, conformance.stdout[-6000:] + conformance.stderr[-6000:]
    assert re.search(r"^\d+ passed", conformance.stdout.splitlines()[-1])
