"""The steps of a release's rehearsal that need neither a network nor a compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintenance.release import channels, conflicts, running, tags, wheels
from rendering import ROOT, Renderer, commit, git
from torchsmith import __version__
from torchsmith.errors import InputError


@pytest.mark.nightly
def test_the_rehearsal_tags_copies_and_not_the_checkout(tmp_path: Path) -> None:
    before = git(ROOT, "tag")
    template = tags.tag_template(ROOT, tmp_path)
    assert f"v{__version__}" in git(template, "tag").split()
    project = tags.tag_project(template, tmp_path)
    assert git(project, "describe", "--tags").strip() == "v0.1.0"
    assert not git(project, "status", "--porcelain")
    assert git(ROOT, "tag") == before
    recipe = wheels.read_recipe(project)
    assert "torch==$TORCH" in recipe.before_build
    assert "examples/quickstart.py" in recipe.test


def test_rehearse_refuses_a_channel_with_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(channels.CHANNELS, "pip", lambda *_: "torchsmith 0.0.1\n")
    with pytest.raises(InputError, match=f"pip runs another torchsmith than {__version__}"):
        channels.rehearse("pip", tmp_path, tmp_path)


def test_the_error_of_a_failed_step_has_its_command_and_output(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"this failed: sh -c 'echo why; exit 3'\nwhy$"):
        running.run("sh", "-c", "echo why; exit 3", cwd=tmp_path)


def test_an_update_with_too_many_conflicts_is_refused(
    render: Renderer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "template"
    git(tmp_path, "clone", "--quiet", str(render.template), str(template))
    git(template, "tag", "v0.0.1")
    readme = template / "template" / "README.md.jinja"
    title, _, *rest = readme.read_text("utf-8").splitlines()
    readme.write_text("\n".join([title, "Another first sentence.", *rest, ""]), "utf-8")
    commit(template, "the next release")
    assert conflicts.last_release(template) == "v0.0.1"
    user = conflicts.USERS["edited README, CHANGELOG and CI"]
    conflicts.require_few(template, "v0.0.1", {"texts": user})
    assert capsys.readouterr().out == "texts: 1 conflicts, 1 allowed\n"
    with pytest.raises(InputError, match=r"too many conflicts for texts \(README.md\): "):
        conflicts.require_few(template, "v0.0.1", {"texts": replace(user, limit=0)})
    own = replace(conflicts.USERS["own device and operators"], answers={"preset": "minimal"})
    assert conflicts.conflicting(own, template, "v0.0.1") == []
