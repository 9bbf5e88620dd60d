"""Runs steps of a rendered workflow as GitHub does: with bash, in a checkout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from commanding import Ended, run
from rendering import Renderer, git


def workflow(project: Path, name: str) -> dict[str, Any]:
    """Return a workflow of a project."""
    file = project / ".github" / "workflows" / name
    content: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return content


def step(job: dict[str, Any], words: str) -> dict[str, Any]:
    """Return the only step of a job whose script has some words."""
    (found,) = [each for each in job["steps"] if words in each.get("run", "")]
    assert isinstance(found, dict)
    return found


@dataclass(frozen=True)
class Checkout:
    """A checkout of a project on one of GitHub's machines."""

    project: Path
    machine: Path

    @classmethod
    def of(cls, render: Renderer, folder: Path) -> Checkout:
        """Create a checkout of a project with the features `release` and `relay`."""
        project = render.project(folder / "checkout", features=["release", "relay"])
        machine = folder / "machine"
        machine.mkdir()
        return cls(project, machine)

    def run(self, script: str, event: Any = None, **variables: str) -> Ended:
        """Run a step's script with an event, given as an object or as bytes."""
        path = self.machine / "event.json"
        path.write_bytes(event if isinstance(event, bytes) else json.dumps(event).encode())
        for name in ("output", "summary"):
            (self.machine / name).write_text("", "utf-8")
        variables = {
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_OUTPUT": str(self.machine / "output"),
            "GITHUB_STEP_SUMMARY": str(self.machine / "summary"),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "acme/torch-foo",
            "GITHUB_RUN_ID": "9071",
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_WORKFLOW": "relay",
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }
        return run("bash", "-eo", "pipefail", "-c", script, cwd=self.project, **variables)

    @property
    def outputs(self) -> dict[str, str]:
        """Return the outputs of the last step, as GitHub reads them."""
        lines = (self.machine / "output").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def summary(self) -> str:
        """Return the summary of the last step."""
        return (self.machine / "summary").read_text("utf-8")

    def untouched(self) -> bool:
        """Whether no file of the checkout was made or changed."""
        return git(self.project, "status", "--porcelain") == ""
