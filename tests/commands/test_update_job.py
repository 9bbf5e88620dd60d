"""The script of the rendered job `update`, run against a fake CI."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from commanding import succeed
from rendering import GIT_ENVIRONMENT, ROOT, Renderer, commit, git

PROVIDERS = ("github", "gitlab")
# Records the arguments of a CI program, one a line, with the content of files among them.
RECORD = """#!/bin/sh
for word in "$@"; do
  echo "$word" >> "$LOG"
  case $word in description@*) cat "${word#description@}" >> "$LOG" ;; esac
  if [ "$before" = --body-file ]; then cat "$word" >> "$LOG"; fi
  before=$word
done
"""
# ASKED is the output of `gh pr list`: a request that exists.
GH = RECORD + 'case "$*" in "pr list"*) echo "$ASKED" ;; esac\n'
CURL = (
    RECORD
    + 'case "$*" in *"state=all"*) if [ "$ASKED" ]; then echo "[{}]"; else echo "[]"; fi ;; esac\n'
)
TITLE = "Update from the template to v1.1.0"
WITH_CONFLICTS = {
    "github": f"{TITLE}, with conflicts to resolve",
    "gitlab": f"Draft: {TITLE}, with conflicts to resolve",
}


@dataclass(frozen=True)
class Job:
    """CI's checkout, the repository that it came from, and the template."""

    template: Path
    checkout: Path
    origin: Path
    script: list[str]
    log: Path

    def run(self, asked: str = "") -> str:
        """Run the script, and return the calls of CI's program."""
        for step in self.script:
            variables = {**GIT_ENVIRONMENT, **self.environment, "ASKED": asked}
            succeed("bash", "-eo", "pipefail", "-c", step, cwd=self.checkout, **variables)
        return self.log.read_text("utf-8") if self.log.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that CI sets."""
        folder = self.log.parent
        return {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "RUNNER_TEMP": str(folder),
            "GITLAB_USER_NAME": "somebody",
            "GITLAB_USER_EMAIL": "somebody@localhost",
            "UPDATE_TOKEN": "secret",
            "CI_SERVER_FQDN": "gitlab.invalid",
            "CI_PROJECT_PATH": "acme/foo",
            "CI_DEFAULT_BRANCH": "main",
            "REQUESTS": "https://gitlab.invalid/requests",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{self.origin}.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://oauth2:secret@gitlab.invalid/acme/foo.git",
        }

    def branches(self) -> list[str]:
        """Return the branches of the repository that the checkout came from."""
        return git(self.origin, "branch", "--format=%(refname:short)").split()


def script(project: Path, provider: str) -> list[str]:
    """Return the scripts of the job: one for each step on GitHub, one for all on GitLab."""
    if provider == "github":
        file = project / ".github" / "workflows" / "update.yml"
        steps = yaml.safe_load(file.read_text("utf-8"))["jobs"]["update"]["steps"]
        return [step["run"] for step in steps if "run" in step]
    file = project / ".gitlab" / "update.yml"
    return ["\n".join(yaml.safe_load(file.read_text("utf-8"))["update"]["script"])]


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def job(provider: str, render: Renderer, tmp_path: Path) -> Job:
    """Return the job in a project of v1.0.0."""
    template, project = render.apart(tmp_path, features=["release"], ci_provider=provider)
    origin, checkout = tmp_path / "origin.git", tmp_path / "checkout"
    git(tmp_path, "clone", "--quiet", "--bare", str(project), str(origin))
    git(tmp_path, "clone", "--quiet", str(origin), str(checkout))
    git(checkout, "checkout", "--quiet", "--detach")
    programs = tmp_path / "bin"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    torchsmith = (
        f'#!/bin/sh\nPYTHONPATH={ROOT / "generator"} exec {python} -m torchsmith.cli "$@"\n'
    )
    for name, text in {"pip": RECORD, "gh": GH, "curl": CURL, "torchsmith": torchsmith}.items():
        (programs / name).write_text(text, "utf-8")
        (programs / name).chmod(0o755)
    return Job(template, checkout, origin, script(project, provider), tmp_path / "log")


def release(template: Path) -> None:
    """Publish v1.1.0, which ignores another folder."""
    ignored = template / "template" / ".gitignore"
    text = ignored.read_text("utf-8")
    ignored.write_text(text.replace("/site/\n", "/site-of-the-template/\n"), "utf-8")
    commit(template, "release", tag="v1.1.0")


def test_a_release_opens_a_request_with_the_preview_as_its_text(job: Job) -> None:
    release(job.template)
    asked = job.run()
    assert f"git+{job.template}" in asked
    assert TITLE in asked
    assert "with conflicts" not in asked
    assert "v1.0.0 → v1.1.0" in asked
    assert "\n+/site-of-the-template/\n" in asked
    assert job.branches() == ["main", "template-v1.1.0"]
    assert git(job.origin, "log", "-1", "--format=%s", "template-v1.1.0").strip() == TITLE
    changed = git(job.origin, "diff", "--name-only", "main", "template-v1.1.0").split()
    assert changed == [".copier-answers.yml", ".gitignore"]


def test_without_a_release_nothing_happens(job: Job) -> None:
    asked = job.run()
    assert "Update from" not in asked
    assert job.branches() == ["main"]


def test_a_release_is_offered_once(job: Job) -> None:
    release(job.template)
    asked = job.run(asked="https://there.is/one")
    assert "Update from" not in asked
    assert job.branches() == ["main"]


def test_conflicts_are_on_the_branch_and_in_the_title(job: Job, provider: str) -> None:
    ignored = job.checkout / ".gitignore"
    ignored.write_text(ignored.read_text("utf-8").replace("/site/\n", "/ours/\n"), "utf-8")
    commit(job.checkout, "ours")
    release(job.template)
    asked = job.run()
    assert WITH_CONFLICTS[provider] in asked
    assert ".gitignore  conflicts with your edits" in asked
    there = git(job.origin, "show", "template-v1.1.0:.gitignore")
    assert "<<<<<<<" in there
    assert "/ours/" in there
    assert "/site-of-the-template/" in there
