"""A rendered project can be updated and its features toggled, and keeps its edits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import copier
import pytest

from rendering import Renderer, answers_in, commit, contents, contents_but_for_answers, files, git
from torchsmith import catalog

# The docs toggle features with --vcs-ref=:current:.
CURRENT = copier.VcsRef.CURRENT


def update(project: Path, **options: Any) -> None:
    settings = copier.Settings()
    copier.run_update(
        project, defaults=True, overwrite=True, quiet=True, settings=settings, **options
    )


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.nightly
def test_update_to_the_same_version_changes_nothing(project: Path) -> None:
    update(project)
    assert git(project, "status", "--porcelain") == ""


def test_toggling_adds_and_deletes_whole_files_and_keeps_edits(
    project: Path, render: Renderer
) -> None:
    edit(project / "README.md", "\n", "\nOur own words.\n")
    (project / "device" / "acme").mkdir()
    (project / "device" / "acme" / "runtime.cpp").write_text("// ours\n")
    commit(project, "edited")
    update(project, vcs_ref=CURRENT, data={"preset": "custom", "features": ["rng", "storage"]})

    fresh = contents(render(features=["rng", "storage"]))
    actual = contents(project)
    assert actual.pop("device/acme/runtime.cpp") == b"// ours\n"
    readme = actual.pop("README.md").decode()
    assert "Our own words." in readme
    assert "<<<<<<<" not in readme
    assert sorted(actual) == sorted(path for path in fresh if path != "README.md")
    assert [path for path in actual if actual[path] != fresh[path]] == []
    gone = catalog.features()["amp"]
    assert not [path for path in files(project) if gone.owns(path, "torch_foo")]


@pytest.mark.nightly
def test_update_replaces_chosen_features_by_a_preset(project: Path, render: Renderer) -> None:
    update(project, vcs_ref=CURRENT, data={"preset": "full"})
    assert contents(project) == contents(render(preset="full", device="starter"))


@pytest.mark.nightly
def test_update_replaces_a_preset_by_chosen_features(render: Renderer, tmp_path: Path) -> None:
    """The answers of a project that was rendered with a preset then name its features."""
    path = render.project(tmp_path / "project", preset="standard")
    update(path, vcs_ref=CURRENT, data={"features": ["amp"], "device": "starter"})
    assert contents(path) == contents(render(features=["amp"]))


@pytest.mark.nightly
def test_update_to_a_release_keeps_edits(render: Renderer, tmp_path: Path) -> None:
    """The next release changes a file, adds one and drops a question; the user changed others."""
    template, project = render.apart(tmp_path, preset="minimal", vendor="Acme")
    releases = Renderer(template, tmp_path)
    edit(project / "LICENSE", "Apache License", "Apache License (ours)")
    edit(project / "CHANGELOG.md", "\n", "\nOur own words.\n")
    commit(project, "edited")

    questions = template / "generator" / "catalog" / "questions.yml"
    edit(questions, "    - ci_provider\n", "")
    edit(questions, "retired_answers:\n  when: false\n  type: yaml\n  default: []",
         "retired_answers:\n  when: false\n  type: yaml\n  default: [ci_provider]")  # fmt: skip
    edit(questions, "ci_provider:\n  type: str", "ci_provider:\n  when: false\n  type: str")
    edit(template / "template" / ".gitignore", "\n", "\n/new-in-this-release\n")
    (template / "template" / "docs" / "news.md").write_text("# News\n")
    commit(template, "release", tag="v1.1.0")
    update(project)

    fresh = contents(releases.fresh(tmp_path / "fresh", preset="minimal", vendor="Acme"))
    actual = contents(project)
    assert b"Apache License (ours)" in actual.pop("LICENSE")
    assert b"Our own words." in actual.pop("CHANGELOG.md")
    assert {path: fresh[path] for path in actual} == actual
    assert set(fresh) - set(actual) == {"LICENSE", "CHANGELOG.md"}
    assert "/new-in-this-release" in actual[".gitignore"].decode()


@pytest.mark.nightly
def test_update_keeps_the_other_features_if_one_is_retired(
    render: Renderer, tmp_path: Path
) -> None:
    template, project = render.apart(tmp_path, features=["amp", "rng"])
    releases = Renderer(template, tmp_path)
    for pattern in catalog.features()["rng"].paths:
        name = pattern.lstrip("/").replace("{package}", "{= package =}")
        for path in (template / "template" / name, template / "template" / f"{name}.jinja"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    table = template / "generator" / "catalog" / "features.yml"
    (table.with_suffix("") / "rng.yml").unlink()
    edit(table, "more_operators, rng, amp, low_precision", "more_operators, amp, low_precision")
    edit(table, "  default: [publishing]", "  default: [publishing, rng]")  # fmt: skip
    commit(template, "retire a feature", tag="v1.1.0")
    update(project)

    fresh = releases.fresh(tmp_path / "fresh", preset="custom", features=["amp"])
    assert answers_in(project)["features"] == ["amp"]
    assert contents_but_for_answers(project) == contents_but_for_answers(fresh)
