"""Each pair of answers is rendered and built, and passes the tests of its features."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from feature_sets import answers, features_of, rows
from maintenance.installing import Installed
from torchsmith import catalog

pytestmark = pytest.mark.nightly


def label(row: Mapping[str, Any]) -> str:
    others = (
        row["license"],
        row["ci_provider"],
        str(len(row["dtypes"])),
        *sorted(features_of(row)),
    )
    return "+".join(("hostile", *others) if row["hostile"] else others)


def own_tests(row: Mapping[str, Any], project: Installed) -> list[str]:
    """Return the project's smoke tests, and those of its features."""
    package = f"torch_{answers(row).get('backend_name', 'foo')}"
    places = {
        place.as_posix()
        for id in features_of(row)
        for place in catalog.features()[id].places(package)
        if "tests" in place.parts[:2]
        and (place.name.startswith("test_") or any((project.project / place).rglob("test_*.py")))
    }
    return ["tests/smoke", *sorted(place for place in places if (project.project / place).exists())]


@pytest.fixture
def place(shared: Path, worker_id: str) -> Iterator[str]:
    """Yield the name of a project, the same for each row, so that the compiler's cache is used."""
    name = f"combination-{worker_id}"
    yield name
    shutil.rmtree(shared / "projects" / name)


@pytest.mark.parametrize("row", rows(), ids=label)
def test_the_tests_of_each_combination_pass(
    row: dict[str, Any], install: Callable[..., Installed], place: str
) -> None:
    project = install(place, **answers(row))
    tests = own_tests(row, project)
    for folder in ("tests", "device/tests"):
        if chosen := [place for place in tests if place.startswith(folder)]:
            done = project.run(
                "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", *chosen
            )
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[:6000]
    done = project.run("examples/quickstart.py")
    assert done.returncode == 0, done.stdout + done.stderr
