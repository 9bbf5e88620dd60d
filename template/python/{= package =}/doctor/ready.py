"""Checks a project's readiness for PyTorch's relay, which tests PyTorch's changes in projects."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .. import __name__ as package
from .._absent import missing_feature_hint
from .._build import NAME, TORCH_VERSION
from .report import table

APP = "https://github.com/apps/pytorch-fdn-cross-repo-ci-relay"
LEVELS = ("L1", "L2", "L3")
SUITES = Path("pytorch-tests.json")
"""The results that ``tests/pytorch`` writes."""
SHARE = 0.9
"""The share of PyTorch's tests that must be exceeded at L3."""
MINUTES = 180
"""The time limit of a run in minutes."""
HOSTED = re.compile(r"(?:https://|ssh://git@|git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?\s*")


class State(str, enum.Enum):
    """The state of a requirement."""

    THERE = "there"
    MISSING = "missing"
    ASK = "by hand"
    """It cannot be checked here; the text says where to look."""


class NoProjectError(Exception):
    """The folder is not a project; the text names the expected folder."""


@dataclass(frozen=True)
class Requirement:
    """A requirement of a level, its state, and what was found or what to do."""

    level: str
    name: str
    state: State
    detail: str


@dataclass(frozen=True)
class Readiness:
    """All requirements, and the pull request for a level."""

    requirements: list[Requirement]
    level: str
    """The level of ``request``: the highest level without a missing requirement, or ``L1``."""
    request: str
    """Title and text of the pull request to pytorch/pytorch; empty if the repository is unknown."""

    @property
    def ready(self) -> bool:
        """Whether nothing is missing at any level."""
        return all(item.state is not State.MISSING for item in self.requirements)

    def json(self) -> str:
        """Return all fields as JSON."""
        return json.dumps(dataclasses.asdict(self) | {"ready": self.ready}, indent=2)

    def text(self) -> str:
        """Return the requirements as a table, and the pull request."""
        rows = [
            (item.level, item.state.value, item.name, item.detail) for item in self.requirements
        ]
        request = self.request or "There is no text for PyTorch's allowlist without a repository."
        return f"PyTorch's relay\n{table(rows)}\n\n{request}"


def examine(root: Path) -> Readiness:
    """Check the project in a folder.

    Raises:
        NoProjectError: the folder is not a project of this package.
    """
    if not (root / "python" / package).is_dir():
        raise NoProjectError(f"{root} has no python/{package}: run this in the project's folder")
    repository, devices = _repository(root), _devices()
    people = _people(root)
    found = [*_first(root, repository, devices), *_second(root, repository)]
    found += _third(root, repository, people)
    reached = "L1"
    for level in LEVELS:
        if any(item.level == level and item.state is State.MISSING for item in found):
            break
        reached = level
    request = _request(reached, repository, devices, people) if repository else ""
    return Readiness(found, reached, request)


def _first(root: Path, repository: str, devices: list[str]) -> Iterator[Requirement]:
    yield _item("L1", "repository on GitHub", repository, "set it: git remote add origin https://…")
    workflows = ", ".join(file.name for file in _workflows(root))
    wanted = (
        missing_feature_hint("relay")
        or "answer ci_provider=github: the relay starts GitHub's actions"
    )
    yield _item("L1", "workflow on repository_dispatch", workflows, wanted)
    licence = next((path.name for path in sorted(root.glob("LICENSE*"))), "")
    yield _item("L1", "licence", licence, "add a file LICENSE")
    real = [name for name in devices if "simulator" not in name.lower()]
    wanted = "this build is of the simulator; build it for the accelerator and run this there"
    yield _item("L1", "hardware that can be named", ", ".join(real), wanted)
    yield Requirement("L1", "GitHub App", State.ASK, f"install {APP} on the repository")


def _second(root: Path, repository: str) -> Iterator[Requirement]:
    texts = [file.read_text("utf-8") for file in _workflows(root)]
    reports = any("id-token: write" in text for text in texts)
    wanted = "let a job with id-token: write report to the relay"
    yield _item("L2", "results go back", "the workflow reports them" if reports else "", wanted)
    limits = [int(each) for text in texts for each in re.findall(r"timeout-minutes: (\d+)", text)]
    short = bool(limits) and max(limits) <= MINUTES
    wanted = f"set timeout-minutes of its jobs to {MINUTES} at most"
    yield _item("L2", "3 hours a run", f"{max(limits)} minutes at most" if short else "", wanted)
    variables = "the repository's variables: RELAY_LEVEL is L2, RELAY_CALLBACK the relay's address"
    yield Requirement("L2", "variables", State.ASK, variables)
    where = f"https://github.com/{repository or 'OWNER/REPOSITORY'}/actions"
    yield Requirement("L2", "over 70 % of a week's runs pass", State.ASK, where)


def _third(root: Path, repository: str, people: list[str]) -> Iterator[Requirement]:
    state, detail = _suites(root / SUITES)
    yield Requirement("L3", f"over {100 * SHARE:.0f} % of PyTorch's suites pass", state, detail)
    wanted = "write who answers for failures into .github/CODEOWNERS"
    yield _item("L3", "people on call", ", ".join(people), wanted)
    where = f"https://hud.pytorch.org/crcr/{repository or 'OWNER/REPOSITORY'}"
    lasting = "a month at L2, jobs over 90 %, under 1 % time out, queues under 30 minutes: "
    yield Requirement("L3", "PyTorch's figures", State.ASK, lasting + where)


def _item(level: str, name: str, found: str, wanted: str) -> Requirement:
    return Requirement(level, name, State.THERE if found else State.MISSING, found or wanted)


def _repository(root: Path) -> str:
    """Return ``owner/name`` of the remote `origin`, or "" if it is not on GitHub."""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    match = HOSTED.fullmatch(done.stdout)
    return match[1] if match else ""


def _workflows(root: Path) -> list[Path]:
    """Return the workflows that the relay starts."""
    files = sorted((root / ".github" / "workflows").glob("*.y*ml"))
    return [file for file in files if "repository_dispatch" in file.read_text("utf-8")]


def _devices() -> list[str]:
    backend: Any = torch.get_device_module(NAME)
    names = (backend.get_device_properties(i).name for i in range(backend.device_count()))
    return list(dict.fromkeys(names))


def _people(root: Path) -> list[str]:
    file = root / ".github" / "CODEOWNERS"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    words = [word for line in lines for word in line.partition("#")[0].split()[1:]]
    return list(dict.fromkeys(word for word in words if word.startswith("@")))


def _suites(report: Path) -> tuple[State, str]:
    wanted = "run python tests/pytorch, with PYTORCH_SOURCE naming a checkout of PyTorch"
    if not report.is_file():
        return State.MISSING, wanted
    try:
        told = json.loads(report.read_text("utf-8"))
        is_all, share = bool(told["source"]), float(told["share"])
    except (ValueError, TypeError, KeyError):
        return State.MISSING, f"{SUITES} has no figures: {wanted}"
    if not is_all:
        return State.MISSING, f"{SUITES} has only the tests of PyTorch's wheel: {wanted}"
    state = State.THERE if share > SHARE else State.MISSING
    return state, f"{100 * share:.1f} % of those that ran have passed"


def _request(level: str, repository: str, devices: Iterable[str], people: Iterable[str]) -> str:
    names = [name.removeprefix("@") for name in people]
    entry = {
        "L1": f"  - {repository}",
        "L2": f"  - {repository}",
        "L3": f"  {NAME}:\n    {repository}: [{', '.join(names)}]",
    }[level]
    contacts = ", ".join(f"@{name}" for name in names) or "those who review this pull request"
    return f"""\
The pull request to pytorch/pytorch

Add {repository} to the allowlist of the cross-repository CI relay at {level}

In .github/allowlist.yml, under {level}:

{entry}

[{repository}](https://github.com/{repository}) is an out-of-tree backend of the device `{NAME}` (PrivateUse1).

- Hardware: {", ".join(devices)}
- CI: a workflow on `repository_dispatch` builds PyTorch at the commit, builds the backend, and runs its tests within 3 hours
- Tested with PyTorch {TORCH_VERSION.partition("+")[0]}
- Contacts: {contacts}
- The GitHub App {APP} is installed on the repository
"""
