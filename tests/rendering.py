"""Renders for the tests: the working tree's template, rendered once per set of answers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import copier
import yaml
from filelock import FileLock

from torchsmith.render import Job
from torchsmith.render import render as render_by_us

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]

# Git must not read the machine's configuration, and commits must be equal everywhere.
GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "tests",
    "GIT_AUTHOR_EMAIL": "tests@localhost",
    "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "tests",
    "GIT_COMMITTER_EMAIL": "tests@localhost",
    "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
}

# Legal answers that break code without quotes, or with a limit on names; the fewest dtypes.
HOSTILE: dict[str, Any] = {
    "backend_name": "zq_a_rather_long_but_legal_device_name",
    "display_name": 'Ünïcode "Quoted" {Braces} & Co',
    "vendor": "O'Neill \\ Söhne <x> #1: {{ no }} %(s)s",
    "description": "A \"device\" with \\n, {braces}, [brackets], # `ticks`, $HOME: 漢 😀 'quotes'",
    "license": "mit",
    "dtypes": ["bool", "int64", "float32"],
}


def git(folder: Path, *arguments: str) -> str:
    """Run git in ``folder`` and return what it prints."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **GIT_ENVIRONMENT},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def commit(folder: Path, message: str, tag: str | None = None) -> None:
    """Commit everything in ``folder``, and make it a repository if it is not one."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    if tag:
        git(folder, "tag", tag)


def snapshot(folder: Path) -> Path:
    """Copy the template to ``folder``, as release v1.0.0 in a repository of its own."""
    listed = git(
        ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate",
        "--", "copier.yml", "generator/catalog", "template",
    )  # fmt: skip
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        # A file behind a link is not in git.
        if source.exists() and source == source.resolve():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    commit(folder, "release", tag="v1.0.0")
    return folder


class Renderer:
    """Renders a template; equal answers share one folder, which tests must not change."""

    def __init__(self, template: Path, cache: Path) -> None:
        """Render ``template`` into folders under ``cache``, which several processes may share."""
        self.template = template
        self.cache = cache

    def __call__(self, **answers: Any) -> Path:
        """Return the folder rendered from ``answers``; features=… implies preset=custom."""
        if "features" in answers:
            answers = {"preset": "custom", **answers, "features": sorted(answers["features"])}
        key = hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()[:12]
        destination = self.cache / key
        with FileLock(self.cache / f"{key}.lock"):
            if not destination.exists():
                self.fresh(destination.with_suffix(".part"), **answers)
                destination.with_suffix(".part").rename(destination)
        return destination

    def project(self, destination: Path, **answers: Any) -> Path:
        """Copy a render to ``destination``, under git, for tests that change it."""
        shutil.copytree(self(**answers), destination)
        commit(destination, "rendered")
        return destination

    def apart(self, folder: Path, **answers: Any) -> tuple[Path, Path]:
        """Copy the template and a render of it to ``folder``, for tests that change both."""
        template, project = folder / "template", folder / "torch-foo"
        git(self.cache, "clone", "--quiet", str(self.template), str(template))
        shutil.copytree(self(**answers), project)
        file = project / ".copier-answers.yml"
        text = file.read_text("utf-8").replace(str(self.template), str(template))
        file.write_text(text, "utf-8")
        commit(project, "rendered")
        return template, project

    def fresh(self, destination: Path, **answers: Any) -> Path:
        """Render into ``destination``."""
        render_by_us(destination, Job(answers, str(self.template)))
        return destination

    def by_copier(self, destination: Path, **answers: Any) -> Path:
        """Render into ``destination`` with copier."""
        copier.run_copy(
            str(self.template),
            destination,
            data=answers,
            vcs_ref="HEAD",
            defaults=True,
            quiet=True,
            settings=copier.Settings(),
        )
        return destination


def files(folder: Path) -> Iterator[PurePosixPath]:
    """Yield the files under ``folder``, relative to it, in order."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_dir() and relative.parts[0] != ".git":
            yield PurePosixPath(relative)


def toml(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    return tomllib.loads(file.read_text("utf-8"))


def answers_in(project: Path) -> dict[str, Any]:
    """Return the content of a project's answers file."""
    found: dict[str, Any] = yaml.safe_load((project / ".copier-answers.yml").read_text("utf-8"))
    return found


class Content(bytes):
    """A file's bytes with a short repr, as pprint takes minutes for a whole tree."""

    def __repr__(self) -> str:
        """Return the size and a digest."""
        return f"<{len(self)} bytes {hashlib.sha256(self).hexdigest()[:8]}>"


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file under ``folder`` with its bytes."""
    return {str(path): Content((folder / path).read_bytes()) for path in files(folder)}


def contents_but_for_answers(folder: Path) -> dict[str, bytes]:
    """Return every file with its bytes, without the answers, which are in two files."""
    tree = contents(folder)
    del tree[".copier-answers.yml"]
    manifest = tree[".torchsmith.yml"]
    tree[".torchsmith.yml"] = re.sub(rb"(?m)^answers:\n(  .*\n)+", b"", manifest)
    return tree
