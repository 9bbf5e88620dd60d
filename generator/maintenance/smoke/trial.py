"""One row, rendered, built and tested."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintenance.smoke import STAGES
from maintenance.smoke.installing import Installed, link_packages, make_environment
from torchsmith.building import StepError
from torchsmith.errors import InputError
from torchsmith.render import Job, render

# The tests that fail first if a combination of features is broken. They save minutes over the whole
# suite, which nightly runs use.
QUICK = (
    "test_device_module.py",
    "test_factories.py",
    "test_features_left_out.py",
    "test_generated_methods.py",
    "test_registration.py",
)

# Copier is not thread-safe.
_RENDERING = threading.Lock()


@dataclass(frozen=True)
class TrialResult:
    """How a trial ended: "passed", or as "build failed" with the output of that stage."""

    state: str
    seconds: float
    log: str = ""


@dataclass(frozen=True)
class Extent:
    """How far a trial goes."""

    until: str = "test"
    whole_suite: bool = False
    on_stage: Callable[[str], None] = lambda stage: None


def try_answers(answers: dict[str, Any], folder: Path, extent: Extent) -> TrialResult:
    """Try some answers in ``folder``, which is emptied first.

    Rows tried in the same folder share the compiler's cache.
    """
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    project = folder / "project"
    for stage in STAGES[: STAGES.index(extent.until) + 1]:
        extent.on_stage(stage)
        try:
            if stage == "render":
                with _RENDERING:
                    render(project, Job(answers))
            elif stage == "build":
                python = make_environment(
                    folder / "environment", link_packages(folder / "packages")
                )
                installed = Installed(folder.name, project, python)
                _require(installed.build())
            else:
                _test(installed, extent)
        except (InputError, StepError) as error:
            return TrialResult(f"{stage} failed", time.monotonic() - began, str(error))
    return TrialResult("passed", time.monotonic() - began)


def _test(installed: Installed, extent: Extent) -> None:
    tests = ["tests"] if extent.whole_suite else [f"tests/core/{name}" for name in QUICK]
    _require(installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests))
    _require(installed.run("examples/quickstart.py"))


def _require(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise StepError(done.stdout + done.stderr)
