"""`torchsmith add`, `remove`, `update` and `preview`: three-way merges, shown before they are done.

The plan that is shown is no guess: it is the merge itself, done to a clone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchsmith.commands.common import (
    FOUND,
    Json,
    ProjectFolder,
    console,
    parse,
    print_json,
    say,
    working,
)
from torchsmith.errors import InputError

if TYPE_CHECKING:
    from torchsmith.merge import Plan
    from torchsmith.project import Project

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Go on without being asked.")]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="VERSION",
        help="Tag, branch or commit of the template, or 'current'. By default a release goes to "
        "the last release, anything else to the template's HEAD.",
        show_default=False,
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", "-d", metavar="KEY=VALUE", help="An answer to change; may be repeated."),
]
Features = Annotated[list[str], typer.Argument(metavar="FEATURE...", show_default=False)]


def add(
    features: Features, project: ProjectFolder = Path(), yes: Yes = False, as_json: Json = False
) -> None:
    """Add features to a project, as a merge with your edits.

    Example: torchsmith add rng storage

    The plan is shown first. With --json it is all that happens, unless --yes is given.
    """
    from torchsmith.project import find
    from torchsmith.render import CURRENT
    from torchsmith.toggle import adding

    found = find(project)
    found.require_clean()
    answers = adding(found, features)
    _merge(found, answers, ref=CURRENT, yes=yes, as_json=as_json, idle=not answers)


def remove(
    features: Features, project: ProjectFolder = Path(), yes: Yes = False, as_json: Json = False
) -> None:
    """Remove features from a project, with their files.

    Example: torchsmith remove amp

    The plan is shown first, with the files that hold edits of yours. With --json it is all that
    happens, unless --yes is given.
    """
    from torchsmith.project import find
    from torchsmith.render import CURRENT
    from torchsmith.toggle import removing

    found = find(project)
    found.require_clean()
    answers = removing(found, features)
    _merge(found, answers, ref=CURRENT, yes=yes, as_json=as_json, idle=not answers)


def update(
    project: ProjectFolder = Path(),
    to: To = None,
    data: Data = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take a new version of the template, as a merge with your edits.

    Example: torchsmith update --to v1.2.0

    The status is 1 where the merge left conflict markers.
    """
    from torchsmith.project import find

    found = find(project)
    found.require_clean()
    _merge(found, parse(data), ref=_version(found, to), yes=yes, as_json=as_json)


def preview(
    project: ProjectFolder = Path(),
    to: To = None,
    data: Data = None,
    add: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE", help="As if this were added.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE", help="As if this were removed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an update would change, and touch nothing; the status is 1 if it would conflict.

    Example: torchsmith preview --add rng

    Only what is committed counts. With --add or --remove the version stays, unless --to is given.
    """
    from torchsmith.merge import plan
    from torchsmith.project import find
    from torchsmith.toggle import adding, removing

    found = find(project)
    answers: dict[str, Any] = parse(data)
    if add and remove:
        raise InputError("preview takes --add or --remove: look at one after the other")
    if add or remove:
        answers |= adding(found, add) if add else removing(found, remove or [])
        to = to or "current"
    with working("Trying the update on a clone"):
        tried = plan(found, answers, ref=_version(found, to))
    if as_json:
        print_json({**_report(tried), "diff": tried.diff})
    else:
        _show(found, tried)
        _show_diff(tried.diff)
    if tried.conflicts:
        raise typer.Exit(FOUND)


def _version(project: Project, to: str | None) -> str:
    from torchsmith.merge import newest
    from torchsmith.render import CURRENT

    return CURRENT if to == "current" else to or newest(project)


def _merge(
    project: Project,
    answers: Mapping[str, Any],
    *,
    ref: str,
    yes: bool,
    as_json: bool,
    idle: bool = False,
) -> None:
    """Show the plan, ask, and do it; `idle` says that there is nothing to try."""
    from torchsmith.merge import apply, plan, standing

    if not idle and not yes and not as_json and not sys.stdin.isatty():
        raise InputError("nobody is there to be asked: pass --yes to go on, or look with preview")
    with working("Trying it on a clone"):
        tried = standing(project) if idle else plan(project, answers, ref=ref)
    if not as_json:
        _show(project, tried)
    go_on = not tried.empty and (yes or (not as_json and typer.confirm("Go on?")))
    conflicts = []
    if go_on:
        with working("Merging"):
            conflicts = apply(project, answers, ref=ref)
    if as_json:
        print_json({**_report(tried), "applied": go_on})
    elif go_on:
        say("Done. Read `git diff`, rebuild, run pytest, commit.")
    if conflicts:
        say(f"Resolve the conflict markers in {', '.join(conflicts)}.")
        raise typer.Exit(FOUND)


def _report(plan: Plan) -> dict[str, Any]:
    return {
        "before": plan.before,
        "after": plan.after,
        "features": plan.features,
        "added": plan.added,
        "changed": plan.changed,
        "removed": plan.removed,
        "lost": plan.lost,
        "conflicts": plan.conflicts,
    }


def _show(project: Project, plan: Plan) -> None:
    out = console()
    if plan.empty:
        out.print(f"Nothing to do: {project.root.name} has all of {plan.after} with these answers.")
        return
    if plan.after != plan.before:
        out.print(f"{plan.before} → {plan.after}")
    out.print("Features: " + (", ".join(plan.features) or "none, the core alone"))
    for mark, style, paths in (
        ("+", "green", plan.added),
        ("~", "yellow", plan.changed),
        ("-", "red", plan.removed),
    ):
        for path in paths:
            note = "  with your edits in it" if path in plan.lost else ""
            note = "  conflicts with your edits" if path in plan.conflicts else note
            out.print(f"  {mark} {path}{note}", style=style, soft_wrap=True)
    if plan.lost:
        out.print(
            f"{len(plan.lost)} of the files that go away hold edits of yours. Git keeps them: "
            f"git show HEAD:{plan.lost[0]}",
            style="bold red",
            soft_wrap=True,
        )


def _show_diff(diff: str) -> None:
    out = console()
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.splitlines():
        if out.is_terminal:
            out.print(line, style=styles.get(line[:1]), soft_wrap=True)
        else:
            print(line)
