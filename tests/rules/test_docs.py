"""What the documentation says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import units
from benchmarks.figures import STORE, Report
from maintenance import pages
from rendering import HOSTILE, ROOT, Renderer, files

TEST_ID = re.compile(r"`((?:device/)?tests/[\w/]+\.py)::(\w+)`")
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
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
    """Stale? `make docs` writes them."""
    text = page.read_text("utf-8")
    assert pages.current(text) == text


def test_the_readme_shows_every_generated_part() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert {"features", "tree", "figures"} <= set(re.findall(r"<!-- (\w+): begin -->", text))


def test_figures_are_those_of_the_run_that_they_came_from() -> None:
    """Stale? `python -m benchmarks --readme` measures and writes them."""
    report = Report.load(STORE)
    text = (ROOT / "README.md").read_text("utf-8")
    assert pages.replace_part(text, "figures", report.part()) == text
    assert (ROOT / "benchmarks" / "build-times.md").read_text("utf-8") == units.page(report.units)


def test_links_lead_somewhere(project: Path) -> None:
    broken = [
        f"{page.name}: {target}"
        for page in markdown(project)
        for target in LINK.findall(CODE.sub("", page.read_text("utf-8")))
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_the_site_builds_without_a_warning(project: Path, tmp_path: Path) -> None:
    mkdocs = Path(sys.executable).with_name("mkdocs")
    done = subprocess.run(
        [mkdocs, "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()


def test_named_tests_exist(project: Path) -> None:
    named = [
        (file, test)
        for page in markdown(project)
        for file, test in TEST_ID.findall(page.read_text("utf-8"))
    ]
    assert named
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
    read = set(re.findall(r'(?:environment|is_on)\("(\w+)"\)', sources))
    read |= set(re.findall(r'(?:kEnvPrefix,|DEVICE_ENV_PREFIX) "_(\w+)"', sources))
    read |= set(re.findall(r"\bFOO_(DEVICE\w*)", sources))
    read |= set(re.findall(r"\bENV_PREFIX}_(TEST_\w+)", sources))
    # Those that a feature reads stand on a feature's page.
    features = "".join(page.read_text("utf-8") for page in (project / "docs/features").glob("*.md"))
    documented |= read & set(re.findall(r"`FOO_(\w+)", features))
    assert len(read) > 5
    assert documented == read
