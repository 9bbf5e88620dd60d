"""`torchsmith add`, `remove`, `update` and `preview` on a project with edits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commanding import Torchsmith
from rendering import Renderer, commit, contents, git
from torchsmith import catalog


def append(file: Path, text: str) -> None:
    file.write_text(file.read_text("utf-8") + text, "utf-8")


def test_add_adds_the_files_of_a_feature_and_keeps_edits(
    project: Path, torchsmith: Torchsmith, render: Renderer
) -> None:
    append(project / "README.md", "\nOur own words.\n")
    commit(project, "edited")
    done = torchsmith("add", "rng", "--yes", cwd=project).passed()
    assert "+ csrc/rng/generator.cpp" in done.out
    fresh, actual = contents(render(features=["amp", "rng"])), contents(project)
    assert actual.pop("README.md") == fresh.pop("README.md") + b"\nOur own words.\n"
    assert actual == fresh


def test_commands_without_a_change_need_no_render(
    project: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchsmith.update.renders", None)
    before = contents(project)
    for line in ("preview --add amp", "preview --remove rng,storage", "add amp --yes",
                 "remove rng storage --yes", "update --to current"):  # fmt: skip
        done = torchsmith(*line.split(), cwd=project).passed()
        assert done.out == "Nothing to do: torch-foo has all of v1.0.0 with these answers.\n"
    assert contents(project) == before


def test_features_can_be_separated_by_commas(project: Path, torchsmith: Torchsmith) -> None:
    done = torchsmith("preview", "--add", "rng, storage", "--add", "ipc", "--json", cwd=project)
    assert {"amp", "rng", "storage", "ipc"} == set(done.json["features"])
    for command in ("add", "remove"):
        done = torchsmith(command, "amp,rgn", "--yes", cwd=project)
        done.refused("there is no feature 'rgn': ", "; did you mean 'rng'?")


def test_preview_refuses_an_uncommitted_update(project: Path, torchsmith: Torchsmith) -> None:
    torchsmith("add", "rng", "--yes", cwd=project).passed()
    done = torchsmith("preview", "--add", "storage", cwd=project)
    done.refused("has an update that is not committed (.copier-answers.yml): commit it")


def test_preview_refuses_an_uncommitted_update_in_a_subfolder(
    project: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    inner = tmp_path / "repository" / "backend"
    shutil.copytree(project, inner, ignore=shutil.ignore_patterns(".git"))
    commit(inner.parent, "rendered")
    torchsmith("preview", "--add", "storage", cwd=inner).passed()
    torchsmith("add", "rng", "--yes", cwd=inner).passed()
    done = torchsmith("preview", "--add", "storage", cwd=inner)
    done.refused("has an update that is not committed", ".copier-answers.yml")


def test_a_project_without_a_commit_is_refused_with_a_fix(
    project: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    inner = outer / "backend"
    shutil.copytree(project, inner, ignore=shutil.ignore_patterns(".git"))
    git(tmp_path, "init", "--quiet", str(outer))
    words = f"the last commit lacks '{inner}/.copier-answers.yml'"
    fix = "git add -A . && git commit -m 'Start'"
    torchsmith("preview", "--add", "rng", cwd=inner).refused(f"{words}: {fix}")
    (outer / ".gitignore").write_text("backend/\n")
    commit(outer, "ours")
    for command in (("preview", "--add"), ("add", "--yes")):
        done = torchsmith(*command, "rng", cwd=inner)
        done.refused(f"{words}, as git ignores it: git init && {fix}")


def test_remove_keeps_edits_as_conflicts(
    project: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch, render: Renderer
) -> None:
    edited = project / "csrc" / "amp" / "autocast.cpp"
    append(edited, "// ours\n")
    commit(project, "edited")
    before = contents(project)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda _: False)
    done = torchsmith("remove", "amp", cwd=project).passed()
    assert "! csrc/amp/autocast.cpp  is removed; your edits stay" in done.out
    assert "- csrc/amp/grad_scaler.cpp\n" in done.out
    assert contents(project) == before

    monkeypatch.setattr("typer.confirm", lambda _: True)
    done = torchsmith("remove", "amp", cwd=project)
    assert done.status == 1
    assert done.err.endswith(
        "Move your edits of csrc/amp/autocast.cpp to other files, then git rm them.\n"
    )
    expected = contents(render(features=[]))
    kept = "csrc/amp/autocast.cpp"
    assert contents(project) == {**expected, kept: before[kept]}
    assert git(project, "status", "--porcelain", "--", kept) == f"UD {kept}\n"


def test_remove_with_discard_edits_discards_edits(
    project: Path, torchsmith: Torchsmith, render: Renderer
) -> None:
    append(project / "csrc" / "amp" / "autocast.cpp", "// ours\n")
    commit(project, "edited")
    done = torchsmith("remove", "amp", "--yes", "--discard-edits", cwd=project).passed()
    assert "- csrc/amp/autocast.cpp  with your edits in it" in done.out
    assert "git show HEAD:./csrc/amp/autocast.cpp" in done.out
    assert contents(project) == contents(render(features=[]))


def test_add_works_in_a_subfolder_of_the_project(project: Path, torchsmith: Torchsmith) -> None:
    done = torchsmith("add", "storage", "--json", cwd=project / "csrc" / "core")
    assert done.json["added"]
    assert done.json["applied"] is False
    assert git(project, "status", "--porcelain") == ""


def test_json_with_yes_applies_the_changes(project: Path, torchsmith: Torchsmith) -> None:
    done = torchsmith("remove", "amp", "--json", "--yes", cwd=project)
    report = done.json
    assert report["applied"] is True
    assert report["features"] == {}
    assert sorted(report["removed"]) == sorted(
        line[3:] for line in git(project, "status", "--porcelain").splitlines() if line[0] == "D"
    )


@pytest.mark.parametrize("command", [("add", "amp"), ("remove", "rng")])
def test_adding_a_present_or_removing_an_absent_feature_changes_nothing(
    command: tuple[str, str], project: Path, torchsmith: Torchsmith
) -> None:
    done = torchsmith(*command, cwd=project).passed()
    assert "Nothing to do" in done.out
    assert git(project, "status", "--porcelain") == ""


def test_preview_shows_the_diff_and_changes_nothing(project: Path, torchsmith: Torchsmith) -> None:
    before = contents(project)
    gone = "\n--- a/csrc/amp/grad_scaler.cpp\n+++ /dev/null\n"
    done = torchsmith("preview", "--remove", "amp", cwd=project).passed()
    assert gone not in done.out
    row = "| `amp` | torch.autocast with PyTorch's operator lists, and GradScaler |"
    assert f"\n-{row} yes |\n+{row} " in done.out
    whole = torchsmith("preview", "--remove", "amp", "--patch", cwd=project).passed()
    assert gone in whole.out
    lines = whole.out.splitlines()
    start = lines.index(next(line for line in lines if line.startswith("diff --git ")))
    came, went = (
        sum(
            line.startswith(sign)
            and not line.startswith((f"{sign * 3} a/", f"{sign * 3} b/", f"{sign * 3} /dev"))
            for line in lines[start:]
        )
        for sign in "+-"
    )
    assert f" files, +{came:,} -{went:,} lines\n" in whole.out
    assert contents(project) == before


def test_add_makes_the_changes_that_preview_shows(project: Path, torchsmith: Torchsmith) -> None:
    shown = torchsmith("preview", "--add", "storage", "--json", cwd=project).json
    torchsmith("add", "storage", "--yes", cwd=project).passed()
    git(project, "add", "--all")
    assert git(project, "diff", "--cached", "HEAD") == shown["diff"]


def test_remove_in_a_larger_repository_ignores_other_files(
    render: Renderer, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    project = render.fresh(tmp_path / "all" / "backends" / "foo", features=["amp"])
    (tmp_path / "all" / "other.txt").write_text("ours\n")
    commit(tmp_path / "all", "rendered")
    (tmp_path / "all" / "other.txt").write_text("uncommitted, and not the project's\n")
    torchsmith("remove", "amp", "--yes", cwd=project).passed()
    assert contents(project) == contents(render(features=[]))


def test_invalid_arguments_are_refused_in_one_sentence(
    project: Path, torchsmith: Torchsmith
) -> None:
    ids = ", ".join(catalog.features())

    def sentence(*arguments: str) -> str:
        return torchsmith(*arguments, cwd=project).refused()

    assert sentence("add", "rgn", "-y").startswith(f"there is no feature 'rgn': choose from {ids};")
    assert sentence("remove", "am", "-y").endswith("this project has amp; did you mean 'amp'?")
    assert sentence("add", "rng").startswith("there is no terminal to confirm on: pass --yes")
    assert sentence("update", "-y", "-d", "vender=x").endswith("did you mean 'vendor'?")
    assert "v99" in sentence("preview", "--to", "v99")
    append(project / "README.md", "\nOurs.\n")
    assert "has uncommitted changes (README.md): commit them" in sentence("add", "rng", "-y")


def test_a_required_feature_is_not_removed(project: Path, torchsmith: Torchsmith) -> None:
    manifest = project / ".torchsmith.yml"
    other = "parts:\n  graph:\n    requires: [amp]\n    paths: [csrc/graph]\n"
    manifest.write_text(manifest.read_text("utf-8").replace("parts:\n", other, 1))
    commit(project, "as if there were such a feature")
    torchsmith("remove", "amp", "-y", cwd=project).refused(
        "'amp' cannot be removed, as graph requires it: torchsmith remove amp graph"
    )


def test_the_default_device_is_not_removed(project: Path, torchsmith: Torchsmith) -> None:
    done = torchsmith(
        "update", "--to", "current", "-d", "device=opencl", "-y", cwd=project
    ).passed()
    assert (project / "device" / "opencl").is_dir()
    commit(project, "another device")
    done = torchsmith("remove", "opencl", "-y", cwd=project)
    words = "torchsmith update --to current -d device=starter"
    done.refused(f"'opencl' cannot be removed while it is the default device: {words}")
    torchsmith(*words.split()[1:], "-y", cwd=project).passed()
    assert not (project / "device" / "opencl").exists()


def test_features_are_added_by_group_and_removed_with_what_requires_them(
    project: Path, torchsmith: Torchsmith
) -> None:
    def would_be(*words: str) -> set[str]:
        return set(torchsmith("preview", "--json", *words, cwd=project).json["features"])

    tools = {row.id for row in catalog.features().values() if row.group == "Tools"}
    assert would_be("--add", "+tools") == catalog.closure(frozenset({"amp", *tools}))
    torchsmith("add", "networks,serving", "--yes", cwd=project).passed()
    commit(project, "added")
    torchsmith("remove", "networks", "--yes", cwd=project).refused(
        "cannot be removed, as serving requires it"
    )
    torchsmith("remove", "networks", "--with-dependents", "--yes", cwd=project).passed()
    commit(project, "removed")
    assert would_be() == {"amp"}
    torchsmith("add", "+tool", cwd=project).refused("there is no preset or group 'tool'")
