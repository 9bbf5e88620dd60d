"""A project with edits can be updated from every release of the template to this checkout.

Past releases are the repository's tags, and an invented one. That differs from this checkout as
releases do: in lines, and in added, removed and moved files.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from rendering import (
    ROOT,
    Renderer,
    answers_in,
    commit,
    contents,
    contents_but_for_answers,
    git,
    snapshot,
)
from torchsmith.project import find
from torchsmith.render import Job, render
from torchsmith.update import apply, trying
from torchsmith.versions import releases

ANSWERS: dict[str, Any] = {"vendor": "Acme", "preset": "custom", "features": ["amp", "rng"]}
PAST, NOW = "v0.0.1", "v9999.0.0"
# The user's changes: a device, an operator and prose.
EDITS: dict[str, Callable[[str], str]] = {
    "README.md": lambda text: text + "\nOur own words.\n",
    "csrc/aten/fill.cpp": lambda text: text.replace("\n#include", "\n// Ours.\n#include", 1),
    "tests/support.py": lambda text: text + "\n\nOURS = 1\n",
}
OWN = {
    "device/acme/runtime.cpp": "// our device\n",
    "csrc/operators/gelu.cpp": "// our operator\n",
}


def edit(file: Path, change: Callable[[str], str]) -> None:
    before = file.read_text("utf-8")
    after = change(before)
    assert after != before, file
    file.write_text(after, "utf-8")


def make_past(template: Path) -> None:
    """Turn the present template into an invented release."""
    tree = template / "template"
    (tree / "docs" / "old.md").write_text("# A page that went\n")
    edit(tree / ".gitignore", lambda text: "/a-line-that-went/\n" + text)
    edit(tree / "CHANGELOG.md.jinja", lambda text: text.replace("\n\n", "\n\nAnother line.\n", 1))
    (tree / "docs" / "dtypes.md.jinja").rename(tree / "docs" / "moved.md.jinja")
    (tree / "tests" / "amp" / "test_grad_scaler.py").unlink()
    edit(tree / "csrc" / "aten" / "fill.cpp.jinja", lambda text: text + "// went\n")


@pytest.fixture(scope="session")
def history(shared: Path) -> Path:
    """Return a repository with every release as a tag, and this checkout as the last."""
    template = shared / "history"
    with FileLock(shared / "history.lock"):
        if not template.exists():
            making = template.with_suffix(".part")
            present = snapshot(shared / "present")
            replace(making, present)
            make_past(making)
            commit(making, PAST, tag=PAST)
            for tag in releases(str(ROOT)):
                archive = subprocess.run(
                    ["git", "archive", tag, "copier.yml", "generator/catalog", "template"],
                    cwd=ROOT,
                    capture_output=True,
                    check=True,
                ).stdout
                old = shared / "archive" / tag
                with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                    files.extractall(old, filter="data")
                replace(making, old)
                commit(making, tag, tag=tag)
            replace(making, present)
            commit(making, NOW, tag=NOW)
            making.rename(template)
    return template


def replace(repository: Path, tree: Path) -> None:
    """Replace the repository's files with those of ``tree``."""
    repository.mkdir(exist_ok=True)
    for entry in repository.iterdir():
        if entry.is_file():
            entry.unlink()
        elif entry.name != ".git":
            shutil.rmtree(entry)
    shutil.copytree(tree, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))


def rendered(template: Path, project: Path, ref: str, answers: Mapping[str, Any] = ANSWERS) -> Path:
    render(project, Job(answers, str(template), ref))
    commit(project, f"rendered from {ref}")
    return project


def with_edits(project: Path) -> Path:
    for path, change in EDITS.items():
        edit(project / path, change)
    for path, text in OWN.items():
        (project / path).parent.mkdir(parents=True)
        (project / path).write_text(text, "utf-8")
    commit(project, "edited")
    return project


def update(project: Path, ref: str) -> None:
    found = find(project)
    with trying(found, {}, ref=ref) as plan:
        apply(found, plan)


@pytest.mark.parametrize("release", [PAST, *releases(str(ROOT))])
def test_update_keeps_edits_and_otherwise_equals_a_fresh_render(
    release: str, history: Path, tmp_path: Path
) -> None:
    project = with_edits(rendered(history, tmp_path / "project", release))
    update(project, ref=NOW)

    fresh = contents(rendered(history, tmp_path / "fresh", NOW))
    expected = dict(fresh)
    for path, change in EDITS.items():
        expected[path] = change(fresh[path].decode()).encode()
    expected |= {path: text.encode() for path, text in OWN.items()}
    actual = contents(project)
    assert sorted(actual) == sorted(expected)
    assert [path for path in actual if actual[path] != expected[path]] == []
    assert git(project, "diff", "--name-only", "--diff-filter=U") == ""


def test_update_keeps_files_of_the_core_that_became_a_feature(tmp_path: Path) -> None:
    """A release splits the core: linalg becomes a feature."""
    present, template = snapshot(tmp_path / "present"), tmp_path / "template"
    replace(template, present)
    features = template / "generator" / "catalog" / "features"
    (features / "linalg.yml").unlink()
    edit(
        features.with_suffix(".yml"),
        lambda text: text.replace("[networks, linalg, ", "[networks, "),
    )
    commit(template, PAST, tag=PAST)
    replace(template, present)
    commit(template, NOW, tag=NOW)
    project = rendered(template, tmp_path / "project", PAST)
    edit(project / "csrc" / "aten" / "linalg" / "fft.cpp", lambda text: text + "// ours\n")
    commit(project, "edited")
    update(project, ref=NOW)

    answers = {**ANSWERS, "features": [*ANSWERS["features"], "linalg"]}
    fresh = rendered(template, tmp_path / "fresh", NOW, answers)
    edit(fresh / "csrc" / "aten" / "linalg" / "fft.cpp", lambda text: text + "// ours\n")
    assert contents(project) == contents(fresh)
    assert find(project).features == ["linalg", "rng", "amp"]


def test_update_keeps_the_features_if_the_preset_changes(tmp_path: Path) -> None:
    template = snapshot(tmp_path / "template")
    project = rendered(template, tmp_path / "project", "v1.0.0", {"preset": "standard"})
    features = find(project).features
    edit(
        template / "generator" / "catalog" / "features.yml",
        lambda text: re.sub(r"(?m)^    standard: \[.*\]$", "    standard: [linalg, graphs]", text),
    )
    commit(template, NOW, tag=NOW)
    update(project, ref=NOW)
    assert find(project).features == features
    fresh = rendered(template, tmp_path / "fresh", NOW, {"features": features})
    assert contents(project) == contents(fresh)


def test_update_keeps_the_answer_of_a_renamed_question(history: Path, tmp_path: Path) -> None:
    template = tmp_path / "template"
    subprocess.run(["git", "clone", "--quiet", str(history), str(template)], check=True)
    project = with_edits(rendered(history, tmp_path / "project", NOW))
    edit(project / ".copier-answers.yml", lambda text: text.replace(str(history), str(template)))
    commit(project, "the template moved")
    questions = template / "generator" / "catalog" / "questions.yml"
    edit(
        questions,
        lambda text: (
            text.replace("    - vendor\n", "    - maker\n")
            .replace("type: yaml\n  default: []", "type: yaml\n  default: [vendor]")
            .replace("\nvendor:", "\nmaker:")
            .replace("'vendor', vendor", "'maker', maker")
            .replace(
                "default: Example Vendor",
                "default: \"{= vendor if vendor is defined else 'Example Vendor' =}\"",
            )
        ),
    )
    licenses = (template / "generator" / "catalog" / "licenses").iterdir()
    for file in (*(template / "template").rglob("*.jinja"), *licenses):
        text = file.read_text("utf-8")
        file.write_text(re.sub(r"(\{=[^}]*)\bvendor\b", r"\1maker", text), "utf-8")
    commit(template, "rename a question", tag="v9999.1.0")
    before = contents_but_for_answers(project)
    update(project, ref="v9999.1.0")
    answers = answers_in(project)
    assert answers["maker"] == "Acme"
    assert "vendor" not in answers
    assert contents_but_for_answers(project) == before


def test_the_template_has_no_files_at_the_paths_of_user_operators(render: Renderer) -> None:
    project = render(preset="full")
    for folder in ("csrc/operators", "tests/operators", "docs/own-operators.md"):
        assert not (project / folder).exists()
