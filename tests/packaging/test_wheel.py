"""The wheel contains the template, and renders the same as the repository."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from commanding import Ended, run, succeed
from rendering import ROOT, Renderer, commit, contents, git
from torchsmith import __version__, catalog, template

TEMPLATE = ("copier.yml", "generator/catalog", "template")


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ended]:
    """Return a function that runs `make release-check` in its own folders."""
    folder = tmp_path_factory.mktemp("release")
    command = ["make", "-o", f"{sys.prefix}/ready", f"VENV={sys.prefix}", "release-check"]
    command += [f"DIST={folder / 'dist'}", f"TRIAL={folder / 'trial'}", "RELEASES="]
    return lambda tag="": run(*command, f"TAG={tag}", cwd=ROOT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel, built from the checkout's files that git knows."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    succeed(*pip, "--wheel-dir", folder, ROOT)
    (built,) = folder.glob("torchsmith-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel and its dependencies, without this checkout."""
    environment = tmp_path_factory.mktemp("installed") / "environment"
    succeed(sys.executable, "-m", "venv", "--without-pip", environment)
    site = next((environment / "lib").glob("python3*/site-packages"))
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    succeed(*pip, "install", "--quiet", "--no-deps", wheel)
    theirs = next((Path(sys.prefix) / "lib").glob("python3*/site-packages"))
    # Only dependencies: Python does not read .pth files in a folder that a .pth file adds.
    (site / "dependencies.pth").write_text(f"{theirs}\n")
    return environment / "bin" / "python"


@pytest.fixture(scope="module")
def offline(python: Path) -> Path:
    """Return the same environment without a network: connections fail."""
    site = next((python.parents[1] / "lib").glob("python3*/site-packages"))
    (site / "offline.py").write_text(
        "import os, sys\n"
        "def refuse(event, arguments):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'):\n"
        "        raise OSError(f'no network: {arguments}')\n"
        "sys.addaudithook(refuse)\n"
        "os.environ['GIT_ALLOW_PROTOCOL'] = 'file'\n"
    )
    (site / "offline.pth").write_text("import offline\n")
    return python


def torchsmith(python: Path, *arguments: str, cwd: Path) -> Ended:
    return run(python, "-I", "-m", "torchsmith", *arguments, cwd=cwd)


def listed(*folders: str) -> set[str]:
    """Return the files of some folders that git knows."""
    names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders)
    return {name for name in names.split("\0") if name and (ROOT / name).exists()}


def test_the_wheel_contains_only_the_command_and_the_template(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = {name.removeprefix("generator/") for name in listed("generator/torchsmith")}
    assert names == package | {f"torchsmith/_template/{name}" for name in listed(*TEMPLATE)}
    tools = {path.stem for path in (ROOT / "generator" / "maintenance").iterdir()} - {"__init__"}
    assert {"compat", "pages", "release", "site"} <= tools
    modules = {name.split("/")[1].removesuffix(".py") for name in package}
    assert not modules & tools, "a tool of the template's maintainers"
    assert not [
        name for name in package
        if re.search(r"(import|from) maintenance", (ROOT / "generator" / name).read_text("utf-8"))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--help",), "Render, build and update"),
        (("--version",), f"torchsmith {__version__}"),
        (("features",), "Mixed precision"),
        (("dtypes",), "brain floating point"),
        (("names", "acme"), "yes"),
        (("new", "--help"), "--git"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_commands_work_without_a_network(
    arguments: tuple[str, ...], words: str, offline: Path, tmp_path: Path
) -> None:
    done = torchsmith(offline, *arguments, cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert words in done.out


def test_new_renders_a_project_without_a_network(offline: Path, tmp_path: Path) -> None:
    """The tests of each command cover what the project does later."""
    tag = f"v{__version__}"
    done = torchsmith(
        offline, "new", "torch-acme", "-d", "preset=minimal", "--to", tag, "--git", cwd=tmp_path
    )
    done.passed()
    project = tmp_path / "torch-acme"
    assert git(project, "log", "--format=%s") == "Render torch-acme\n"
    torchsmith(offline, "device", "new", "acme", cwd=project).passed()
    assert (project / "device" / "acme" / "runtime.cpp").exists()
    done = torchsmith(offline, "features", "--json", cwd=project)
    assert not any(row["enabled"] for row in done.json)
    done = torchsmith(offline, "new", "torch-bolt", "--to", "v99.0", cwd=tmp_path)
    done.refused(f"this torchsmith has {tag} of the template and no other version")


def test_new_renders_a_project_without_git(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = torchsmith(python, "new", "torch-acme", "-d", "preset=minimal", cwd=tmp_path)
    done.passed()
    assert "Warning" not in done.err
    torchsmith(python, "new", "torch-bolt", "--git", cwd=tmp_path).refused("git is not installed")
    assert not (tmp_path / "torch-bolt").exists()


def test_the_wheel_and_the_repository_render_the_same_files(
    python: Path, render: Renderer, tmp_path: Path
) -> None:
    torchsmith(python, "new", "torch-foo", "--defaults", cwd=tmp_path).passed()
    expected, actual = contents(render()), contents(tmp_path / "torch-foo")
    theirs = yaml.safe_load(expected.pop(".copier-answers.yml"))
    mine = yaml.safe_load(actual.pop(".copier-answers.yml"))
    assert actual == expected
    assert mine == {**theirs, "_commit": f"v{__version__}", "_src_path": template.REPOSITORY}


def test_projects_can_be_updated_without_a_network(
    offline: Path, render: Renderer, tmp_path: Path
) -> None:
    project = tmp_path / "torch-foo"

    def do(*arguments: str) -> str:
        return torchsmith(offline, *arguments, cwd=project).passed().out

    torchsmith(offline, "new", "torch-foo", "--defaults", cwd=tmp_path).passed()
    commit(project, "rendered")
    with (project / "README.md").open("a") as file:
        file.write("ours\n")
    commit(project, "edited")
    assert "+ csrc/graphs/" in do("preview", "--add", "graphs")
    do("add", "graphs", "--yes")
    commit(project, "graphs")
    do("remove", "amp", "--yes")
    commit(project, "no amp")
    assert "Nothing to do" in do("update", "--yes")
    assert "\n+ours\n" in do("diff")
    drift = torchsmith(offline, "doctor", "--json", cwd=project).json["drift"]
    assert [row["path"] for row in drift["differences"]] == ["README.md"]
    do("doctor", "--restore", "README.md")
    expected = contents(render(features=catalog.presets()["standard"] - {"amp"} | {"graphs"}))
    actual = contents(project)
    answers = yaml.safe_load(actual.pop(".copier-answers.yml"))
    assert (answers["_commit"], answers["_src_path"]) == (template.TAG, template.REPOSITORY)
    del expected[".copier-answers.yml"]
    assert actual == expected


@pytest.mark.nightly
def test_release_check_builds_and_installs_the_distributions(
    check: Callable[..., Ended],
) -> None:
    done = check().passed()
    assert done.out.count("PASSED") == 2, done.out  # from twine, for wheel and sdist
    assert f"torchsmith {__version__}\n" in done.out
    for preset in ("minimal", "standard", "full"):
        assert f"torch-{preset} is rendered" in done.err, done.err


@pytest.mark.parametrize(
    ("tag", "reason"),
    [("v0.0.7", "the tag is v0.0.7"), (f"v{__version__}", "CHANGELOG.md has no dated heading")],
)
def test_release_check_refuses_a_wrong_tag_or_an_undated_changelog(
    tag: str, reason: str, check: Callable[..., Ended]
) -> None:
    done = check(tag)
    assert done.status != 0
    assert reason in done.out
