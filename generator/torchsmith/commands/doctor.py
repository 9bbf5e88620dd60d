"""`torchsmith doctor`: what is wrong with the tools or the project, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchsmith.commands.common import FOUND, Json, print_json, print_table, working
from torchsmith.errors import InputError

if TYPE_CHECKING:
    from torchsmith.drift import Drift
    from torchsmith.toolchain import Finding


def doctor(
    folder: Annotated[
        Path, typer.Argument(help="A project, if there is one to look at.", show_default=False)
    ] = Path(),
    python: Annotated[
        str | None,
        typer.Option(help="The Python that builds; by default the active environment's."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the tools that a build needs, and how a project differs from its template.

    Example: torchsmith doctor torch-foo

    Each finding comes with a fix. The status is 1 if there is a problem; your edits are none.
    """
    from torchsmith.project import is_project
    from torchsmith.toolchain import default_python, toolchain

    with working("Looking at the tools"):
        findings = toolchain(python or default_python())
    drifted = None
    if is_project(folder):
        with working("Rendering what the answers give"):
            more, drifted = _project(folder)
        findings += more
    elif not folder.exists():
        raise InputError(f"'{folder}' does not exist: name a project, or nothing")
    if as_json:
        print_json(
            {
                "findings": [asdict(finding) for finding in findings],
                "drift": asdict(drifted) if drifted else None,
            }
        )
    else:
        _show(findings, drifted)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(FOUND)


def _project(folder: Path) -> tuple[list[Finding], Drift | None]:
    from torchsmith import git
    from torchsmith.drift import drift
    from torchsmith.project import find
    from torchsmith.toolchain import Finding

    project = find(folder)
    findings = []
    if git.root_of(project.root) is None:
        fix = "git init && git add -A && git commit -m 'Start'"
        findings.append(Finding("under git", "problem", "no, and updates need it", fix))
    elif dirty := git.changes(project.root):
        found = f"{len(dirty)} uncommitted changes"
        findings.append(Finding("under git", "warning", found, "commit before an update"))
    else:
        findings.append(Finding("under git", "ok", "nothing uncommitted"))
    try:
        drifted = drift(project)
    except InputError as error:
        fix = f"correct _src_path or _commit in {project.root / '.copier-answers.yml'}"
        return [*findings, Finding("template", "problem", str(error), fix)], None
    if drifted.before == drifted.after:
        findings.append(Finding("template", "ok", f"{drifted.before}, the newest"))
    else:
        found = f"{drifted.before}, and {drifted.after} is there"
        findings.append(Finding("template", "warning", found, "torchsmith update"))
    return findings, drifted


def _show(findings: list[Finding], drifted: Drift | None) -> None:
    marks = {"ok": "✓", "warning": "!", "problem": "✗"}
    print_table(
        ("", "check", "found", "fix"),
        [(marks[each.status], each.check, each.found, each.fix) for each in findings],
    )
    if drifted is None:
        return
    if not drifted.differences:
        print("Every file of the template's is as the newest version renders it.")
        return
    print_table(
        ("file", "part", "you", "the template"),
        [(each.path, each.part, each.yours, each.templates) for each in drifted.differences],
        title=f"Differs from what the answers render with {drifted.after}",
    )
