"""Tags releases in copies: of this repository, and of a rendered project."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from maintenance.release.running import run
from torchsmith import __version__
from torchsmith.errors import InputError

_AUTHOR = ("-c", "user.name=Rehearsal", "-c", "user.email=rehearsal@localhost")


def tag_template(checkout: Path, folder: Path) -> Path:
    """Tag a clone of the checkout, render the tag with copier, and return the clone.

    Raises:
        InputError: The project records another version than the tag.
    """
    copy, project, tag = folder / "template", folder / "of-the-tag", f"v{__version__}"
    run("git", "clone", "--quiet", checkout, copy)
    run("git", *_AUTHOR, "tag", "--annotate", "--force", tag, "--message", tag, cwd=copy)
    copier = (sys.executable, "-m", "copier", "copy", "--quiet", "--defaults")
    run(*copier, "--data", "backend_name=foo", "--vcs-ref", tag, copy, project)
    answers = yaml.safe_load((project / ".copier-answers.yml").read_text("utf-8"))
    if answers["_commit"] != tag:
        raise InputError(f"a project of the tag {tag} says that it is of {answers['_commit']}")
    return copy


def tag_project(template: Path, folder: Path) -> Path:
    """Render a project with every feature, tag its first release, and return it.

    Raises:
        InputError: The version in pyproject.toml is not the tag's.
    """
    project = folder / "foo"
    copier = (sys.executable, "-m", "copier", "copy", "--quiet", "--defaults")
    data = ("--data", "backend_name=foo", "--data", "preset=full")
    run(*copier, *data, "--vcs-ref", f"v{__version__}", template, project)
    run("git", "init", "--quiet", cwd=project)
    run("git", "add", "--all", cwd=project)
    run("git", *_AUTHOR, "commit", "--quiet", "--message", "The first version", cwd=project)
    tag = "v0.1.0"
    run("git", *_AUTHOR, "tag", "--annotate", tag, "--message", tag, cwd=project)
    if f'version = "{tag[1:]}"\n' not in (project / "pyproject.toml").read_text("utf-8"):
        raise InputError(f"pyproject.toml of a new project has another version than {tag}")
    return project
