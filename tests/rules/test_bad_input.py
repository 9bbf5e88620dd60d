"""Invalid answers are refused in one sentence, by copier and by torchsmith, and write no file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rendering import Renderer, contents, git
from torchsmith import cli
from torchsmith.commands.common import parse
from torchsmith.errors import InputError
from torchsmith.render import Job, read_answers
from torchsmith.render import render as render_for_cli

Mistake = tuple[dict[str, object], str, str]

MISTAKES: dict[str, Mistake] = {
    "upper case": ({"backend_name": "Foo"}, "not a device name", "try 'foo'"),
    "clashing name": ({"backend_name": "cuda"}, "device type of PyTorch", "try 'my_cuda'"),
    "name of an attribute": ({"backend_name": "matmul"}, "torch.matmul", "try 'matmul_chip'"),
    "long name": ({"backend_name": "x" * 51}, "longer than 50 letters", "try 'xxx'"),
    "boolean typo": ({"amp": "flase"}, "there is no question 'amp'", "features=[amp]"),
    "unknown question": ({"color": "red"}, "there is no question 'color'", "backend_name"),
    "computed value": ({"package": "evil"}, "there is no question 'package'", "backend_name"),
    "unknown feature": (
        {"features": "[ampp]"},
        "no feature 'ampp'",
        "networks, linalg, more_operators",
    ),
    "features as a mapping": (
        {"features": {"amp": 1}},
        "features is a list",
        "features=[networks]",
    ),
    "features beside a preset": (
        {"preset": "full", "features": ["amp"]},
        "preset=custom only",
        "leave preset=full out",
    ),
    "no dtypes": ({"dtypes": []}, "dtypes is empty", "dtypes=[bool, int64, float32]"),
    "no bool": ({"dtypes": ["int64", "float32"]}, "dtypes lacks bool:", "add what is missing"),
    "an empty text for dtypes": ({"dtypes": ""}, "dtypes is a list", "dtypes=[bool]"),
    "unknown dtype": ({"dtypes": "[float33]"}, "no dtype 'float33'", "float32"),
    "dtypes without a list": ({"dtypes": "bool,int8"}, "dtypes is a list", "dtypes=[bool,int8]"),
    "unknown preset": ({"preset": "medium"}, "'medium'", "minimal"),
    "unknown licence": ({"license": "gpl"}, "'gpl'", "apache-2.0"),
    "unknown provider": ({"ci_provider": "jenkins"}, "'jenkins'", "gitlab"),
    "empty vendor": ({"vendor": " "}, "vendor is empty", ""),
    "two lines": ({"description": "one\ntwo"}, "description must be one line", ""),
    "long text": ({"display_name": "x" * 41}, "longer than 40 characters", ""),
}


def refused(ours: bool, folder: Path, answers: dict[str, object], render: Renderer) -> str:
    """Render with our command or with copier, which must refuse, and return the message."""
    with pytest.raises(InputError if ours else ValueError) as caught:  # noqa: PT012
        if ours:
            render_for_cli(folder, Job(answers, str(render.template)))
        else:
            render.by_copier(folder, **answers)
    return str(caught.value)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
@pytest.mark.parametrize("ours", [False, True], ids=["copier", "torchsmith"])
def test_an_invalid_answer_is_refused_in_one_sentence_and_writes_nothing(
    ours: bool, mistake: Mistake, render: Renderer, tmp_path: Path
) -> None:
    answers, problem, remedy = mistake
    said = refused(ours, tmp_path / "new", answers, render)
    assert problem in said
    assert remedy in said
    assert "\n" not in said
    assert not (ours and "Validation error" in said)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("preset=Full", "there is no preset 'Full': choose from standard, minimal, serving, full, "
         "custom; did you mean 'full'?"),
        ("license=MIT", "there is no license 'MIT': choose from apache-2.0, bsd-3-clause, mit, "
         "proprietary; did you mean 'mit'?"),
        ("device=opncl", "there is no device 'opncl': choose from starter, simulator, opencl, "
         "vulkan; did you mean 'opencl'?"),
        ("ci_provider=none2", "there is no ci_provider 'none2': choose from github, gitlab, none; "
         "did you mean 'none'?"),
        ("license=it's", "there is no license 'it's': choose from apache-2.0, bsd-3-clause, mit, "
         "proprietary"),
        ("dtypes=bool,Float32", "; did you mean 'float32'?"),
        ("features=AMP", "; did you mean 'amp'?"),
    ],
)  # fmt: skip
def test_an_unknown_choice_is_refused_with_the_closest_valid_one(
    given: str, sentence: str, render: Renderer, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        render_for_cli(tmp_path / "new", Job(parse([given]), str(render.template)))
    assert str(caught.value).endswith(sentence)


@pytest.mark.parametrize("ours", [False, True], ids=["copier", "torchsmith"])
@pytest.mark.parametrize("entry", ["README.md", ".hidden", "src/main.c", "a/b/c", ".config/file"])
def test_a_destination_with_files_is_refused(
    ours: bool, entry: str, render: Renderer, tmp_path: Path
) -> None:
    occupied = tmp_path / "odd [name]*"
    (occupied / entry).parent.mkdir(parents=True)
    (occupied / entry).write_text("mine")
    assert "is not empty: name a new folder" in refused(ours, occupied, {}, render)
    assert contents(occupied) == {entry: b"mine"}


@pytest.mark.parametrize("folder", ["a/b/c/d/e", "empty"])
def test_torchsmith_refuses_a_destination_that_contains_only_folders(
    folder: str, render: Renderer, tmp_path: Path
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    assert "is not empty: name a new folder" in refused(True, tmp_path, {}, render)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.nightly
def test_copier_renders_into_an_empty_repository_and_over_a_project(
    render: Renderer, tmp_path: Path
) -> None:
    git(tmp_path, "init", "--quiet", "new")
    project = render.by_copier(tmp_path / "new", features="[rng]")
    answers = read_answers(project / ".copier-answers.yml")
    assert (answers["preset"], answers["features"]) == ("custom", ["rng"])
    before = contents(project)
    render.by_copier(project)
    assert contents(project) == before


def test_an_unexpected_exception_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The traceback shows a defect of the generator."""

    def defect(*_: object, **__: object) -> None:
        raise AssertionError("defect")

    monkeypatch.setattr("torchsmith.renderer.Renderer.write", defect)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["torchsmith", "new", "does-not-exist-yet", "--defaults"])
    with pytest.raises(AssertionError, match="defect"):
        cli.main()
