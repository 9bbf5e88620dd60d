"""`torchsmith add`, `remove`, `update`, `preview` and `diff`.

A merge is first done outside the project. The plan shows its result.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchsmith.commands.checks import template_address
from torchsmith.commands.common import (
    FOUND,
    Data,
    Json,
    ProjectFolder,
    counted,
    parse,
    print_json,
    say,
    tell,
    working,
)
from torchsmith.commands.patch import of_changed_files, renames, show
from torchsmith.errors import InputError, require_choice
from torchsmith.shell import quoted

if TYPE_CHECKING:
    from torchsmith.project import Project
    from torchsmith.update import Plan

LISTED = 24
"""Files that a plan lists one by one; more are counted by folder."""
RENAMES = 5
"""Renamed files that a plan lists."""

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="VERSION",
        help="Tag, branch or commit of the template, or 'current'. The default is the newest "
        "release, or HEAD if the project is not from a release.",
        show_default=False,
    ),
]
Template = Annotated[
    str | None,
    typer.Option(
        "--template",
        metavar="URL",
        help="New address of the template, for this and later updates.",
        show_default=False,
    ),
]
Discard = Annotated[
    bool,
    typer.Option(
        "--discard-edits",
        help="Also remove files that you edited and the template no longer has.",
    ),
]
Features = Annotated[list[str], typer.Argument(metavar="FEATURE...", show_default=False)]


def add(
    features: Features, project: ProjectFolder = None, yes: Yes = False, as_json: Json = False
) -> None:
    """Add features to a project, and merge them with your edits.

    Example: torchsmith add rng,storage

    +NAME adds all features of a preset or of a group: +serving. The plan is shown first. --json
    shows the plan and stops, unless --yes is given.
    """
    from torchsmith.project import find
    from torchsmith.update import CURRENT

    found = find(project)
    answers = found.adding(_named(features))
    found.require_clean()
    _merge(found, Change(answers, CURRENT), yes=yes, as_json=as_json)


def remove(
    features: Features,
    project: ProjectFolder = None,
    discard_edits: Discard = False,
    with_dependents: Annotated[
        bool,
        typer.Option("--with-dependents", help="Also remove the features that require these."),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove features from a project, with their files.

    Example: torchsmith remove amp

    The plan is shown first. Files that you edited are kept as conflicts, and the status is 1,
    unless --discard-edits is given. --json shows the plan and stops, unless --yes is given.
    """
    from torchsmith.project import find
    from torchsmith.update import CURRENT

    found = find(project)
    named = _named(features)
    answers = found.removing(found.with_dependents(named) if with_dependents else named)
    found.require_clean()
    change = Change(answers, CURRENT, discard_edits=discard_edits)
    _merge(found, change, yes=yes, as_json=as_json)


def update(
    project: ProjectFolder = None,
    to: To = None,
    data: Data = None,
    template: Template = None,
    discard_edits: Discard = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Merge a new version of the template with your edits.

    Example: torchsmith update --to v1.2.0

    The status is 1 if there are conflicts. A file that you edited and the template no longer has
    is a conflict, unless --discard-edits is given.
    """
    from torchsmith.project import find

    found = find(project)
    found.require_clean()
    if template is not None:
        template = template_address(template)
        found = replace(found, source=template)
    change = Change(parse(data), _version_to_reach(found, to), template, discard_edits)
    _merge(found, change, yes=yes, as_json=as_json)


def preview(
    project: ProjectFolder = None,
    to: To = None,
    data: Data = None,
    add: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE", help="Feature to preview as added.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE", help="Feature to preview as removed.")
    ] = None,
    patch: Annotated[
        bool, typer.Option("--patch", help="Also show the text of new and deleted files.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the changes of an update, and change nothing. The status is 1 if there are conflicts.

    Example: torchsmith preview --add rng

    The preview uses committed files only. The diff has the changed files; on a terminal, it opens
    in your pager. With --add or --remove, the version does not change unless --to is given.
    """
    from torchsmith.project import find

    found = find(project)
    answers: dict[str, Any] = parse(data)
    if add and remove:
        raise InputError("preview takes --add or --remove, not both: run it twice")
    if add or remove:
        answers |= found.adding(_named(add)) if add else found.removing(_named(remove or []))
        to = to or "current"
    with _trying(found, Change(answers, _version_to_reach(found, to))) as plan:
        if as_json:
            print_json({**_report(plan), "diff": plan.diff})
        else:
            _show_plan(found, plan)
            show(plan.diff if patch else of_changed_files(plan.diff))
        if plan.conflicts:
            raise typer.Exit(FOUND)


def diff(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Files to show, relative to the project; by default all.",
            show_default=False,
        ),
    ] = None,
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Show your edits to the files that the project's version of the template renders.

    Example: torchsmith diff README.md

    Uncommitted changes are included. Files that the template does not have are not shown.
    """
    from torchsmith.drift import text_diff
    from torchsmith.project import find

    found = find(project)
    with working("Rendering the project's answers"):
        text = text_diff(found, files or [])
    if as_json:
        print_json({"diff": text})
    else:
        show(text)


def _named(words: Sequence[str]) -> list[str]:
    """Return the features in words: `a,b` names two, `+serving` those of a preset or a group.

    Raises:
        InputError: There is no such preset or group.
    """
    from torchsmith import catalog

    groups = {group.lower(): ids for group, ids in catalog.groups().items()}
    sets: dict[str, Iterable[str]] = {**catalog.presets(), **groups}
    found = []
    for word in (part.strip() for each in words for part in each.split(",")):
        if word.startswith("+"):
            name = word[1:].lower()
            require_choice("preset or group", name, sets, f"choose from {', '.join(sets)}")
            found += [id for id in catalog.features() if id in sets[name]]
        elif word:
            found.append(word)
    if not found:
        raise InputError("no feature is named: `torchsmith features` lists all")
    return found


def _version_to_reach(project: Project, to: str | None) -> str:
    from torchsmith.update import CURRENT, newest

    return CURRENT if to == "current" else to or newest(project)


@dataclass(frozen=True)
class Change:
    """The arguments of a merge: see `update.trying`."""

    answers: Mapping[str, Any]
    ref: str
    template: str | None = None
    discard_edits: bool = False

    @property
    def nothing(self) -> bool:
        """Whether nothing would change."""
        from torchsmith.update import CURRENT

        return not self.answers and self.ref == CURRENT and self.template is None


@contextmanager
def _trying(project: Project, change: Change) -> Iterator[Plan]:
    """Yield the plan; show on a terminal that the merge is running."""
    from torchsmith.update import standing, trying

    if change.nothing:
        yield standing(project)
        return
    with ExitStack() as stack:
        with working("Trying the update"):
            plan = stack.enter_context(
                trying(
                    project,
                    change.answers,
                    ref=change.ref,
                    discard_edits=change.discard_edits,
                )
            )
        yield plan


def _merge(project: Project, change: Change, *, yes: bool, as_json: bool) -> None:
    """Show the plan, ask for confirmation, and apply it."""
    from torchsmith.update import apply

    if not change.nothing and not yes and not as_json and not sys.stdin.isatty():
        raise InputError("there is no terminal to confirm on: pass --yes, or run preview")
    with _trying(project, change) as plan:
        if not as_json:
            _show_plan(project, plan)
        if plan.blocked:
            raise InputError(
                f"{plan.blocked[0]} would be overwritten, and git does not track it: move it away"
            )
        go_on = not plan.empty and (yes or (not as_json and typer.confirm("Go on?")))
        if go_on:
            apply(project, plan)
    if as_json:
        print_json({**_report(plan), "applied": go_on})
    elif not go_on and not plan.empty:
        say("Nothing was changed.")
    elif go_on and not plan.conflicts:
        say("Done, and staged. Read `git diff --cached`, rebuild, run pytest, commit.")
    if go_on and plan.conflicts:
        kept = [*plan.kept.values()]
        merged = [path for path in plan.conflicts if path not in kept]
        if merged:
            say(f"Resolve the conflicts in {', '.join(merged)}, then git add them.")
        if kept:
            say(f"Move your edits of {', '.join(kept)} to other files, then git rm them.")
        raise typer.Exit(FOUND)


def _report(plan: Plan) -> dict[str, Any]:
    shown = ("before", "after", "features", "added", "changed", "removed", "moved", "renamed",
             "deleted", "own", "lost", "conflicts")  # fmt: skip
    return {name: getattr(plan, name) for name in shown}


def _folded(paths: Sequence[str], left_out: set[str], named: set[str]) -> list[str]:
    """Return lines for paths; if there are many, count them by folder, except those ``named``."""
    shown = [path for path in paths if path not in left_out]
    if len(shown) <= LISTED:
        return shown
    single, folders = [], Counter[str]()
    for path in shown:
        parts = path.split("/")
        if path in named or len(parts) < 3:
            single.append(path)
        else:
            folders["/".join(parts[:2])] += 1
    return single + [f"{folder}/  {counted(many, 'file')}" for folder, many in folders.items()]


def _show_plan(project: Project, plan: Plan) -> None:
    if plan.empty:
        tell(f"Nothing to do: {project.root.name} has all of {plan.after} with these answers.")
        return
    if plan.after != plan.before:
        tell(f"{plan.before} → {plan.after}")
    tell("Features: " + (", ".join(plan.features) or "none, the core alone"))
    went = renames(plan.diff)
    named = {*plan.lost, *plan.conflicts}
    for mark, style, paths in (
        ("+", "green", _folded(plan.added, {*went.values()}, named)),
        ("~", "yellow", _folded(plan.changed, {*went.values()}, named)),
        ("-", "red", _folded(plan.removed, {*went}, named)),
    ):
        for path in paths:
            note = "  with your edits in it" if path in plan.lost else ""
            note = "  conflicts with your edits" if path in plan.conflicts else note
            tell(f"  {mark} {path}{note}", style)
    if went:
        for old, new in list(went.items())[:RENAMES]:
            tell(f"  → {old} is {new}", "cyan")
        if len(went) > RENAMES:
            tell(f"  → and {len(went) - RENAMES:,} more files are renamed", "cyan")
    files, inserted, gone = plan.totals
    tell(f"{counted(files, 'file')}, +{inserted:,} -{gone:,} lines")
    for old, new in plan.moved.items():
        tell(f"  your edits of {old} follow it to {new}", "green")
    for old, new in plan.renamed.items():
        tell(f"  you renamed {old}; {new} takes what the template changed in it", "green")
    for path in plan.deleted:
        tell(f"  ! you deleted {path}, which the template changed: it stays deleted", "yellow")
    for path, reason in plan.own.items():
        tell(f"  ! {path} {reason}", "yellow")
    for path, kept in plan.kept.items():
        where = "" if kept == path else f" in {kept}"
        tell(f"  ! {path}  is removed; your edits stay as a conflict{where}", "red")
    if plan.kept:
        tell(
            "Move your edits of these to other files, then git rm them; --discard-edits removes "
            "them at once.",
            "bold red",
        )
    elif plan.lost:
        tell(
            f"{len(plan.lost)} of the removed files have your edits. Git keeps them: "
            f"git show {quoted(f'HEAD:./{plan.lost[0]}')}",
            "bold red",
        )
