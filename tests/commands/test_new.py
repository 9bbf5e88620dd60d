"""`torchsmith new`: the version, the name and the answers of a render."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import copier
import pytest

from commanding import Torchsmith, new, run_python, succeed
from rendering import Renderer, answers_in, commit, contents, git, snapshot
from torchsmith.errors import InputError


def test_new_without_git_warns_that_the_project_cannot_be_updated(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "template"
    shutil.copytree(render.template, plain, ignore=shutil.ignore_patterns(".git"))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = torchsmith("new", "out", "--template", "template", "-d", "preset=minimal", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "has no version, so it cannot be updated" in done.err
    assert (tmp_path / "out" / "CMakeLists.txt").exists()


def test_a_relative_template_path_is_recorded_as_absolute(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template").symlink_to(render.template)
    done = torchsmith("new", "out", "--template", "template", "-d", "preset=minimal", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "cannot be updated" not in done.err
    assert answers_in(tmp_path / "out")["_src_path"] == f"{tmp_path}/template"


def test_a_version_of_a_template_without_git_is_refused(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    plain = tmp_path / "template"
    shutil.copytree(render.template, plain, ignore=shutil.ignore_patterns(".git"))
    done = torchsmith("new", "out", "--template", "template", "--to", "v1.0.0", cwd=tmp_path)
    assert done.status == 2
    assert f"'{plain}' is not a git repository, so it has no version 'v1.0.0'" in done.err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """Return a template with releases, the newest of which is not its last commit."""
    folder = snapshot(tmp_path / "template")
    for tag in ("v1.9.0", "v1.10.0", "v2.0.0rc1", None):
        (folder / "template" / "docs" / "news.md").write_text(f"# News of {tag}\n")
        commit(folder, "news", tag=tag)
    return folder


def test_the_newest_release_is_rendered_unless_another_version_is_named(
    template: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    for number, (arguments, commit_) in enumerate(
        (
            ((), "v1.10.0"),
            (("--to", "v1.9.0"), "v1.9.0"),
            (("--to", "HEAD"), git(template, "describe", "--tags", "--long", "HEAD").strip()),
        )
    ):
        name = f"torch-{'abc'[number]}"
        done = torchsmith(
            "new", name, "--template", "template", "-d", "preset=minimal", *arguments, cwd=tmp_path
        )
        assert done.status == 0, done.err
        assert answers_in(tmp_path / name)["_commit"] == commit_


def test_a_template_without_a_release_renders_its_head(
    torchsmith: Torchsmith, tmp_path: Path
) -> None:
    folder = snapshot(tmp_path / "template")
    git(folder, "tag", "--delete", "v1.0.0")
    done = torchsmith("new", "a", "--template", "template", "-d", "preset=minimal", cwd=tmp_path)
    assert done.status == 0, done.err
    assert (
        answers_in(tmp_path / "a")["_commit"] == git(folder, "rev-parse", "--short", "HEAD").strip()
    )


@pytest.mark.parametrize(
    ("version", "hint"),
    [("v1.9", "; did you mean 'v1.9.0'?"), ("nosuch", "v1.0.0, v1.9.0, v1.10.0\n")],
)
@pytest.mark.parametrize("address", ["template", "file://{}/template"])
def test_a_missing_version_is_refused_before_rendering(
    address: str, version: str, hint: str, template: Path, torchsmith: Torchsmith, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("torchsmith.render.Renderer", None)
    place = address.format(tmp_path)
    done = torchsmith("new", "out", "--template", place, "--to", version, cwd=tmp_path)
    assert done.status == 2
    assert f"has no version '{version}': its releases are v1.0.0, v1.9.0, v1.10.0" in done.err
    assert f"the template '{place if ':' in place else template}' has no" in done.err
    assert hint in done.err
    assert not (tmp_path / "out").exists()


def test_a_commit_missing_in_a_remote_template_is_named(
    template: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    address = f"git+file://{template}"
    done = torchsmith("new", "out", "--template", address, "--to", "abcdef123", cwd=tmp_path)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert f"the template '{address}' has no version 'abcdef123': its releases are" in done.err


def test_a_file_url_of_a_template_is_cloned(
    template: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    address = f"file://{template}"
    done = torchsmith("new", "out", "--defaults", "--template", address, cwd=tmp_path)
    assert done.status == 0, done.err
    found = answers_in(tmp_path / "out")
    assert (found["_src_path"], found["_commit"]) == (address, "v1.10.0")


@pytest.mark.parametrize(
    ("folder", "given", "name"),
    [
        ("torch-acme", (), "acme"),
        ("torch_acme", (), "acme"),
        ("PyTorch-acme", (), "acme"),
        ("torch.acme", (), "acme"),
        ("Acme NPU", (), "foo"),
        ("torch-acme-npu", (), "acme_npu"),
        ("a/b/torch-x", (), "x"),
        ("2027", (), "foo"),
        (".", (), "here"),
        ("torch-cuda", ("-d", "backend_name=acme"), "acme"),
        ("torch-cuda", ("--answers", "acme.yml"), "acme"),
    ],
)
def test_the_folder_name_determines_the_backend_name(
    folder: str, given: tuple[str, ...], name: str, torchsmith: Torchsmith, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    asked: list[dict[str, Any]] = []

    def answers(_: object, given: dict[str, Any], *, offered: dict[str, Any], **__: object) -> None:
        asked.append({"backend_name": "foo", **offered, **given})
        raise InputError("enough")

    monkeypatch.setattr("torchsmith.renderer.Renderer.answers", answers)
    here = tmp_path / "torch-here"
    here.mkdir()
    if "--answers" in given:
        (tmp_path / "acme.yml").write_text("backend_name: acme\n")
        given = ("--answers", str(tmp_path / "acme.yml"))
    torchsmith("new", folder, "--defaults", *given, cwd=here)
    assert [row["backend_name"] for row in asked] == [name]


@pytest.mark.parametrize(
    "folder",
    ["my work/torch-acme", "./-z", 'it\'s "$HOME"', "a\nb", "s\udcfcd", "none/../torch-acme"],
)
def test_the_cd_command_of_the_next_steps_can_be_copied(
    folder: str, tmp_path: Path, render: Renderer
) -> None:
    done = run_python(
        "-m", "torchsmith", "new", folder, "--template", str(render.template), "-d",
        "preset=minimal", "-d", "backend_name=acme", cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.err
    (line,) = (line for line in done.err.splitlines() if line.startswith("  cd "))
    assert succeed("bash", "-c", f"{line}\ngrep name .copier-answers.yml", cwd=tmp_path) == (
        'backend_name: "acme"\ndisplay_name: "Acme"\n'
    )


@pytest.mark.parametrize(
    ("answer", "environment"),
    [
        ("vendor=M\udcfcller", {}),
        ("description=\udcff", {}),
        ("vendor=Müller", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_an_answer_that_is_not_utf_8_is_refused(
    answer: str, environment: dict[str, str], tmp_path: Path, render: Renderer
) -> None:
    key = answer.partition("=")[0]
    done = run_python(
        "-m", "torchsmith", "new", "out", "--template", str(render.template), "-d", answer,
        cwd=tmp_path, **environment,
    )  # fmt: skip
    done.refused(f"{key} is '", "', which is not UTF-8: save it as UTF-8, or set LC_ALL=C.UTF-8")
    assert [*tmp_path.iterdir()] == []


def test_a_template_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t\udcfc").mkdir()
    (tmp_path / "t\udcfc" / "copier.yml").write_text("{}\n")
    done = run_python("-m", "torchsmith", "new", "out", "--template", "t\udcfc", cwd=tmp_path)
    done.refused("t\\udcfc' is not UTF-8, in which a project records it: rename the folder")


@pytest.mark.nightly
def test_the_cd_command_of_copier_is_quoted(
    render: Renderer, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for folder, word in ((tmp_path / "my work", f"'{tmp_path}/my work'"), (Path("-z"), "./-z")):
        copier.run_copy(
            str(render.template), folder, data={"preset": "minimal"}, vcs_ref="HEAD",
            defaults=True, settings=copier.Settings(),
        )  # fmt: skip
        assert f"cd {word}" in map(str.strip, capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("given", ["features=amp,rng", "features=rng, amp", "features=[amp, rng]"])
def test_features_can_be_separated_by_commas(
    given: str, torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    key, _, words = given.partition("=")
    (tmp_path / "answers.yml").write_text(f"{key}: {words}\n")
    for name, arguments in (("a", ("-d", given)), ("b", ("--answers", "answers.yml"))):
        done = torchsmith(
            "new", name, "--template", str(render.template), "-d", "dtypes=bool,int64,float32",
            *arguments, cwd=tmp_path,
        )  # fmt: skip
        assert done.status == 0, done.err
        assert answers_in(tmp_path / name)["features"] == ["rng", "amp"]
        assert answers_in(tmp_path / name)["dtypes"] == ["bool", "int64", "float32"]


def test_options_override_an_answers_file(
    torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    (tmp_path / "answers.yml").write_text("backend_name: nova\nvendor: Acme\n")
    done = torchsmith(*new(render, "--answers", "answers.yml", "-d", "vendor=Bolt"), cwd=tmp_path)
    assert done.status == 0, done.err
    found = answers_in(tmp_path / "torch-acme")
    assert (found["backend_name"], found["vendor"]) == ("nova", "Bolt")


@pytest.mark.parametrize("in_git", [True, False], ids=["a clone", "a folder"])
def test_new_renders_into_the_current_folder(
    in_git: bool, torchsmith: Torchsmith, tmp_path: Path, render: Renderer
) -> None:
    here = tmp_path / "torch-here"
    here.mkdir()
    if in_git:
        git(here, "init", "--quiet")
    before = here.stat().st_ino
    arguments = ("--defaults", "--template", str(render.template), "-d", "preset=minimal")
    done = torchsmith("new", ".", *arguments, cwd=here)
    assert done.status == 0, done.err
    assert here.stat().st_ino == before, "whoever is in it is in another folder now"
    assert answers_in(here)["backend_name"] == "here"
    assert (here / ".git").exists() == in_git
    done = torchsmith("new", ".", *arguments, cwd=here)
    assert done.status == 2
    assert "is not empty" in done.err


def test_new_keeps_an_empty_folder_that_exists(
    torchsmith: Torchsmith, six_releases: Path, tmp_path: Path
) -> None:
    """It may be a mount point, or in a folder that is closed to writing."""
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    (out / ".torchsmith-new-killed").mkdir(parents=True)
    out.chmod(0o2770)
    before = out.stat()
    for folder in (out, fresh):
        arguments = ("--defaults", "--template", str(six_releases))
        torchsmith("new", str(folder), *arguments).passed()
    after = out.stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert contents(out) == contents(fresh)
    assert list(out.glob(".torchsmith-new-*")) == []
