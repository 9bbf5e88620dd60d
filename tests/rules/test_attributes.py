"""The effects of .gitattributes on git and its hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rendering import Renderer, files, git

OWN = (
    "NOTICE", "README.md", "csrc/operators/gelu.cpp", "device/acme/kernels/unary.cpp",
    "device/acme/runtime.cpp", "docs/own-operators.md", "pyproject.toml",
    "tests/operators/test_gelu.py",
)  # fmt: skip


@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_hosts_collapse_template_files_in_pull_requests(
    host: str, render: Renderer, tmp_path: Path
) -> None:
    project = render.project(tmp_path / "torch-foo", preset="full", ci_provider=host)
    mark = {"github": "linguist-generated", "gitlab": "gitlab-generated"}[host]

    def folded(*paths: str) -> set[str]:
        said = git(project, "check-attr", "-z", mark, "--", *paths).split("\0")
        return {path for path, value in zip(said[::3], said[2::3], strict=False) if value == "set"}

    deep = {str(path) for path in files(project) if len(path.parts) > 1 and str(path)[0] != "."}
    assert folded(*deep) == deep
    assert folded(*OWN) == set()


def test_line_endings_are_the_same_on_every_machine(render: Renderer, tmp_path: Path) -> None:
    project = render.project(tmp_path / "torch-foo", features=[])
    (project / "firmware.bin").write_bytes(b"\r\n" * 8)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "firmware")
    git(tmp_path, "clone", "--quiet", "--config", "core.autocrlf=true", str(project), "windows")
    listed = git(tmp_path / "windows", "ls-files", "--eol").splitlines()
    endings = {line.split("\t")[1]: line.split()[:2] for line in listed}
    assert endings.pop("firmware.bin") == ["i/crlf", "w/crlf"]
    assert {ending for each in endings.values() for ending in each} <= {
        "i/lf",
        "w/lf",
        "i/none",
        "w/none",
    }
    assert git(tmp_path / "windows", "status", "--porcelain") == ""
