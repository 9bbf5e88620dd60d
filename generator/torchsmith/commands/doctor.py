"""`torchsmith doctor`: problems of the tools or the project, with their fixes."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchsmith.commands.common import (
    DRIFTED,
    FOUND,
    OUTDATED,
    BuildPython,
    Json,
    ProjectFolder,
    counted,
    print_json,
    print_table,
    tell,
    working,
)
from torchsmith.errors import InputError
from torchsmith.shell import quoted

if TYPE_CHECKING:
    from torchsmith.doctor import Finding
    from torchsmith.drift import Drift
    from torchsmith.project import Project


def doctor(
    project: ProjectFolder = None,
    python: BuildPython = None,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift",
            help="Only compare with the template: the status is 3 if you edited or deleted one of "
            "its files, 4 if only the template has changed.",
        ),
    ] = False,
    restore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Only restore a file, as the template renders it; may be repeated.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Only omit a file from later reports; may be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the build tools, and list the differences between a project and its template.

    Example: torchsmith doctor --project torch-foo

    Each problem has a fix, and the status is 1 if there is one. Your edits are not a problem.
    """
    from torchsmith.project import current, find

    found = None
    if project or drift or restore or ignore or current():
        found = find(project)
    if found and (restore or ignore):
        _change(found, restore or [], ignore or [], as_json=as_json)
        return
    with working("Checking the tools" + (" and the project" if found else "")):
        findings = [] if drift else _tools(python)
        more, drifted = _look_at(found) if found else ([], None)
        findings += more
    if as_json:
        shown = asdict(drifted) if drifted else None
        print_json({"findings": [asdict(finding) for finding in findings], "drift": shown})
    else:
        _show_findings(findings, drifted)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(FOUND)
    if drift and drifted and drifted.differences:
        raise typer.Exit(DRIFTED if drifted.yours else OUTDATED)


def _change(project: Project, back: list[str], unheard: list[str], *, as_json: bool) -> None:
    from torchsmith.drift import ignore, ignored, restore

    for name in {*back, *unheard}:
        _require_ever_there(project, name)

    def check() -> None:
        for name in back:
            _require_kept(project, name)

    with working("Rendering the project's answers"):
        if back:
            restore(project, back, check)
        if unheard:
            ignore(project, unheard)
    if as_json:
        done = {"restored": back, "version": project.version, "ignored": ignored(project)}
        print_json(done)
        return
    if back:
        tell(f"As {project.version} renders them: {', '.join(back)}")
    if unheard:
        tell(f"Ignored from now on: {', '.join(unheard)}")


def _require_ever_there(project: Project, name: str) -> None:
    """Refuse a file that does not exist and never did, before a render.

    Raises:
        InputError: The template has no such file.
    """
    from torchsmith import git
    from torchsmith.drift import no_file

    under_git = shutil.which("git") and git.root_of(project.root)
    parts = Path(name).parts
    inside = bool(parts) and not Path(name).is_absolute() and ".." not in parts
    if inside and ((project.root / name).exists() or not under_git):
        return
    if not inside or not git.git(project.root, "log", "-1", "--format=%h", "--all", "--", name):
        known = git.git(project.root, "ls-files").splitlines() if under_git else []
        raise no_file(name, known)


def _require_kept(project: Project, name: str) -> None:
    """Refuse to overwrite a file that git could not restore.

    Raises:
        InputError: Git could not restore it.
    """
    from torchsmith import git

    file = project.root / name
    if not file.is_file() and not file.is_symlink():
        return
    if not shutil.which("git") or git.root_of(project.root) is None:
        raise InputError(
            f"'{project.root}' is not a git repository, so your '{name}' could not be restored: "
            "move it away first"
        )
    # `git status` leaves out what the user's marks and settings hide.
    if file.is_symlink():
        content = git.git(project.root, "hash-object", "--stdin", text=str(file.readlink()))
    else:
        content = git.git(project.root, "hash-object", "--", name)
    found = ("log", "-1", "-m", "--format=%h", "--all", f"--find-object={content.strip()}")
    if not git.git(project.root, *found, "--", name):
        raise InputError(f"'{name}' has uncommitted changes, which would be lost: commit them")


def _tools(python: str | None) -> list[Finding]:
    from torchsmith.doctor import default_python, toolchain

    return toolchain(python or default_python())


def _look_at(project: Project) -> tuple[list[Finding], Drift | None]:
    from torchsmith import git
    from torchsmith.doctor import Finding

    if shutil.which("git") is None:
        fix = "install git, which updates need"
        return [Finding("template", "problem", "cannot be compared without git", fix)], None
    findings = []
    if git.root_of(project.root) is None:
        fix = f"{project.go_to}git init && git add -A && git commit -m 'Start'"
        findings.append(Finding("under git", "problem", "no, and updates need it", fix))
    elif dirty := git.changes(project.root):
        found = counted(len(dirty), "uncommitted change")
        findings.append(Finding("under git", "warning", found, "commit before an update"))
    else:
        findings.append(Finding("under git", "ok", "nothing uncommitted"))
    template, drifted = _compare(project)
    return [*findings, template], drifted


def _compare(project: Project) -> tuple[Finding, Drift | None]:
    """Compare with the template; report a failure as one of network, version or answers."""
    from torchsmith import git
    from torchsmith.doctor import Finding
    from torchsmith.drift import drift, ignored
    from torchsmith.project import ANSWERS
    from torchsmith.update import newest
    from torchsmith.versions import VersionError

    file, ignoring = project.root / ANSWERS, ignored(project)
    try:
        ref = newest(project)
    except InputError as error:
        if Path(project.source).is_absolute():
            found = f"is not at '{project.source}'"
            fix = f"correct _src_path or _commit in {file}"
        else:
            found = str(error)
            fix = f"git ls-remote {quoted(git.address(project.source))}"
        return Finding("template", "problem", found, fix), None
    try:
        project.require_answers_as_rendered()
        drifted = drift(project, ref, ignoring)
    except VersionError as error:
        return Finding("template", "problem", str(error), f"correct _commit in {file}"), None
    except InputError as error:
        return Finding("answers", "problem", str(error), f"correct them in {file}"), None
    if drifted.before == drifted.after:
        newest_what = "the last commit" if ref == "HEAD" else "the newest release"
        return Finding("template", "ok", f"{drifted.before}, {newest_what}"), drifted
    found = f"{drifted.before}, and {drifted.after} is there"
    return Finding("template", "warning", found, f"{project.go_to}torchsmith update"), drifted


def _show_findings(findings: list[Finding], drifted: Drift | None) -> None:
    from torchsmith.doctor import fixes

    marks = {"ok": "✓", "warning": "!", "problem": "✗"}
    print_table(
        ("", "check", "found"),
        [(marks[each.status], each.check, each.found) for each in findings],
    )
    # Users copy a fix: it must not wrap in a column.
    for check, fix in fixes(findings):
        print(f"{check}:\n  {fix}\n")
    if drifted is None:
        return
    if not drifted.differences:
        tell("All template files are those of the newest version.")
        return
    tell(f"Differences from {drifted.after}:")
    print_table(
        ("file", "part", "you", "the template"),
        [(each.path, each.part, each.yours, each.templates) for each in drifted.differences],
    )
