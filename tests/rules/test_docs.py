"""The documentation matches the code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import units
from benchmarks.figures import STORE, Report, Row
from commanding import succeed
from maintenance import pages, recording
from rendering import HOSTILE, ROOT, Renderer, files
from torchsmith import __version__, catalog
from torchsmith.template import REPOSITORY

TEST_ID = re.compile(r"`((?:device/)?tests/[\w/]+\.py)::(\w+)`")
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
# Not device/acme, the reader's own device.
PATH = re.compile(r"`((?:benchmarks|csrc|device(?!/acme)|python|tests)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.fixture(params=["ours", "full", "minimal", "hostile"])
def project(request: pytest.FixtureRequest, render: Renderer) -> Path:
    if request.param == "ours":
        return ROOT
    return render(**HOSTILE) if request.param == "hostile" else render(preset=request.param)


def markdown(project: Path) -> list[Path]:
    return [project / "README.md", *sorted((project / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_generated_parts_are_current(page: Path) -> None:
    """If they are stale, run `make docs`."""
    text = page.read_text("utf-8")
    assert pages.current(text) == text


def test_every_generated_part_is_in_a_page() -> None:
    text = "".join(page.read_text("utf-8") for page in pages.pages())
    assert set(re.findall(r"<!-- (\w+): begin -->", text)) == set(pages.PARTS)


@pytest.mark.parametrize("released", [False, True])
def test_first_commands_install_a_release_only_if_one_exists(
    released: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heading = f"## {__version__} ({'2030-01-02' if released else 'unreleased'})"
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n{heading}\n")
    monkeypatch.setattr(pages, "TEMPLATE", tmp_path)
    commands = pages.own() + pages.copying()
    assert (f"torchsmith=={__version__} new torch-acme" in commands) is released
    assert (f"--vcs-ref v{__version__} {REPOSITORY}" in commands) is released
    assert ("git clone" in pages.clone()) is released


def test_a_figure_beyond_its_limit_has_a_reason() -> None:
    rows = [row for row in Report.load(STORE).rows if row.is_missed]
    assert [row.figure for row in rows if row.verdict.endswith(": ?")] == []
    row = Row("add, 1 element, against the CPU", 1.5, 1.2, "x")
    assert row.verdict.startswith("25 % above: describing")
    assert Row("a figure", 1.2, 1.2, "x").verdict == "yes"


def test_the_build_times_page_matches_its_report() -> None:
    """If they are stale, run `python -m benchmarks --write`."""
    report = Report.load(STORE)
    assert (ROOT / "benchmarks" / "build-times.md").read_text("utf-8") == units.page(report.units)


def test_the_recording_matches_the_quickstart() -> None:
    """If it is stale, run `make recording`."""
    lines = drawn(recording.PICTURE.read_text("utf-8"))
    assert [line for line in lines if line.startswith("$ ")] == [
        f"$ {command}" for command in recording.COMMANDS
    ]
    quickstart = (ROOT / "template/examples/quickstart.py.jinja").read_text("utf-8")
    titles = re.findall(r'\btitle\("(.*)"\)', quickstart)
    assert len(titles) > 5
    assert [line for line in lines if line.startswith("== ")] == [f"== {it}" for it in titles]


def test_a_recording_keeps_every_character() -> None:
    said = ["$ echo '<a> & b'", "  two  blanks [bold] :+1:", "last"]
    assert [line for line in drawn(recording.draw(said)) if line in said] == said


def drawn(picture: str) -> list[str]:
    """Return the texts of a picture, which has non-breaking spaces."""
    texts = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return [(text.text or "").replace("\xa0", " ") for text in texts]


def broken_links(pages: Iterable[Path]) -> list[str]:
    return [
        f"{page.name}: {target}"
        for page in pages
        for target in LINK.findall(CODE.sub("", page.read_text("utf-8")))
        if not (page.parent / target).exists()
    ]


def test_links_have_existing_targets(project: Path) -> None:
    assert not broken_links(markdown(project))


@pytest.mark.parametrize("feature", catalog.features())
def test_links_have_existing_targets_in_a_project_with_one_feature(
    feature: str, render: Renderer
) -> None:
    assert not broken_links(render(features=[feature]).rglob("*.md"))


@pytest.mark.parametrize("feature", catalog.features())
def test_paths_on_a_feature_page_exist_or_name_their_feature(
    feature: str, render: Renderer
) -> None:
    project = render(features=[feature])
    own = "tests/operators/pytorch.toml"  # written by the user
    missing = [
        f"{page.name}: {path}"
        for page in (project / "docs" / "features").glob("*.md")
        for paragraph in page.read_text("utf-8").split("\n\n")
        for line in (paragraph.splitlines() if paragraph.startswith("|") else [paragraph])
        for path in PATH.findall(line)
        if not (project / path).exists() and "feature" not in line and path != own
    ]
    assert not missing


def test_the_site_builds_without_a_warning(project: Path, tmp_path: Path) -> None:
    succeed("mkdocs", "build", "--strict", "--site-dir", tmp_path, cwd=project)
    assert (tmp_path / "index.html").exists()


def test_named_tests_exist(project: Path) -> None:
    named = [
        (file, test)
        for page in markdown(project)
        for file, test in TEST_ID.findall(page.read_text("utf-8"))
    ]
    # A project names them only on the page of backend_tests.
    assert named or not (project == ROOT or (project / "docs" / "privateuse1-api.md").exists())
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (project / file).exists()
        or not re.search(rf"^def {test}\(", (project / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert not missing


def test_documented_environment_variables_are_those_that_are_read(render: Renderer) -> None:
    project = render(preset="full")
    page = (project / "docs" / "environment.md").read_text("utf-8")
    documented = set(re.findall(r"`FOO_(\w+)`", page))
    sources = "".join(
        (project / path).read_text("utf-8")
        for path in files(project)
        if path.parts[0] in ("csrc", "device", "python", "cmake", "tests")
        or path.name == "CMakeLists.txt"
    )
    read = set(re.findall(r'(?:environment|is_on|read_count)\("(\w+)"\)', sources))
    read |= set(re.findall(r'(?:kEnvPrefix,|DEVICE_ENV_PREFIX) "_(\w+)"', sources))
    read |= set(re.findall(r"\bFOO_(DEVICE\w*)", sources))
    read |= set(re.findall(r"\bENV_PREFIX}_(EXPECT|(?:TEST|WITHOUT)_\w+)", sources))
    # A feature's page has the variables that the feature reads.
    features = "".join(page.read_text("utf-8") for page in (project / "docs/features").glob("*.md"))
    documented |= read & set(re.findall(r"`FOO_(\w+)", features))
    assert len(read) > 5
    assert documented == read
