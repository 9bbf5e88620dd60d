"""One row, rendered, built and tested."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintenance.smoke import STAGES
from maintenance.smoke.installing import Installed, environment, link_packages
from torchsmith.errors import InputError
from torchsmith.render import render

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
class Outcome:
    """The last stage of a trial, and its output if it failed."""

    stage: str
    passed: bool
    seconds: float
    log: str = ""


@dataclass(frozen=True)
class Extent:
    """How far a trial goes."""

    until: str = "test"
    whole_suite: bool = False
    on_stage: Callable[[str], None] = lambda stage: None


def attempt(answers: dict[str, Any], folder: Path, extent: Extent) -> Outcome:
    """Try some answers in ``folder``, which is emptied first.

    Rows tried in the same folder share the compiler's cache.
    """
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    stage, log = "render", ""

    def outcome(passed: bool) -> Outcome:
        return Outcome(stage, passed, time.monotonic() - began, log)

    extent.on_stage(stage)
    folder.mkdir(parents=True)
    project = folder / "project"
    try:
        with _RENDERING:
            render(project, answers)
    except InputError as error:
        log = str(error)
        return outcome(passed=False)
    steps = {"build": _build, "test": _test}
    installed = None
    for stage in STAGES[1 : STAGES.index(extent.until) + 1]:
        extent.on_stage(stage)
        if installed is None:
            python = environment(folder / "environment", link_packages(folder / "packages"))
            installed = Installed(folder.name, project, python)
        passed, log = steps[stage](installed, extent)
        if not passed:
            return outcome(passed=False)
    return outcome(passed=True)


def _build(installed: Installed, extent: Extent) -> tuple[bool, str]:
    done = installed.build()
    return done.returncode == 0, done.stdout + done.stderr


def _test(installed: Installed, extent: Extent) -> tuple[bool, str]:
    tests = ["tests"] if extent.whole_suite else [f"tests/core/{name}" for name in QUICK]
    done = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    if done.returncode == 0:
        done = installed.run("examples/quickstart.py")
    return done.returncode == 0, done.stdout + done.stderr
