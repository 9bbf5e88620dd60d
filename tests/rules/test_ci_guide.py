"""What docs/ci.md says to paste is valid, and what it says to type works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from commanding import run_python
from rendering import ROOT, Renderer
from torchsmith import catalog

GUIDE = (ROOT / "docs" / "ci.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n# (\.\S+?),?( .*)?\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = [
    line.split("  #")[0].split(" # ")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize(("name", "note", "text"), BLOCKS, ids=[block[0] for block in BLOCKS])
def test_a_workflow_to_paste_is_valid_beside_what_is_there(
    name: str, note: str, text: str, tmp_path: Path, render: Renderer
) -> None:
    schema = "vendor.github-workflows" if "github" in name else "vendor.gitlab-ci"
    there = render(preset="full", ci_provider="gitlab") / name
    whole = (there.read_text("utf-8") + text) if note else text
    (tmp_path / "workflow.yml").write_text(whole, "utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", schema,
         tmp_path / "workflow.yml"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    releases = set(re.findall(r'"(2\.\d+)"', text))
    assert releases <= set(catalog.torch_window()["versions"])
    assert "test" in yaml.safe_load(whole).get("jobs", yaml.safe_load(whole))


def test_there_is_one_for_each_provider() -> None:
    assert [block[0] for block in BLOCKS] == [".github/workflows/device.yml", ".gitlab-ci.yml"]


@pytest.mark.depends_on(
    "docs/ci.md", "generator/catalog", "generator/maintenance/smoke", "generator/torchsmith"
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works_as_it_is_written(command: str, tmp_path: Path) -> None:
    """In an empty folder."""
    words = shlex.split(command)
    assert words[:2] == ["torchsmith", "smoke"]
    done = run_python("-m", "torchsmith.cli", *words[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr
    named = {word for word in words if word.endswith((".xml", ".html"))}
    assert {path.name for path in tmp_path.iterdir()} == named


def test_targets_that_it_names_exist() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make (\w+)", GUIDE)) == {"compat", "site"} <= set(targets)
