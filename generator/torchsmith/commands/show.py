"""`torchsmith features`, `dtypes` and `names`: the catalog as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from torchsmith.commands.common import (
    FOUND,
    Json,
    ProjectFolder,
    console,
    print_json,
    print_table,
    tell,
)
from torchsmith.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from torchsmith.catalog import Feature


def features(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="A feature, to show its details; a group or a word, to limit the list.",
            show_default=False,
        ),
    ] = None,
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """List the features of a backend and, in a project, which of them are enabled.

    Example: torchsmith features serving
    """
    from torchsmith import catalog
    from torchsmith.project import current, find

    here = find(project, updatable=False) if project or current() else None
    on = {id: here.reason(id) for id in here.features} if here else {}
    rows = [row for row in catalog.features().values() if word is None or _has(row, word)]
    if not rows:
        raise InputError(
            f"no feature has '{word}' in its name, group or description: `torchsmith features` "
            f"lists all{did_you_mean(word or '', catalog.features())}"
        )
    if as_json:
        print_json([{**asdict(row), "enabled": row.id in on if here else None,
                     "because": on.get(row.id)} for row in rows])  # fmt: skip
    elif word in catalog.features():
        _print_feature(catalog.features()[word], on if here else None)
    else:
        _print_features(rows, on if here else None)
        if word is None:
            _print_presets()


def _has(row: Feature, word: str) -> bool:
    """Whether a word is the feature's id or, if it is no feature's, occurs in its texts."""
    from torchsmith import catalog

    if word in catalog.features():
        return row.id == word
    return word.lower() in f"{row.id} {row.group} {row.title} {row.help}".lower()


def _print_features(rows: Sequence[Feature], on: Mapping[str, str] | None) -> None:
    """Print a line for each feature, in groups, and mark those that are on."""
    from torchsmith import catalog

    parts, out = catalog.sizes()["parts"], console()
    mark = "✓" if "utf" in (out.encoding or "").lower() else "*"
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            out.print(f"\n{group}", style="bold")
        title = f"{row.title:<30}" if out.width >= 64 else ""
        is_on = on is not None and row.id in on
        line = f"{mark if is_on else ' '} {row.id:<21}{title}{parts[row.id]['lines']:>7,}"
        out.print(line, soft_wrap=True)
    if on is not None:
        tell(f"\n{mark} is on in this project. torchsmith features NAME says why.")


def _print_presets() -> None:
    from torchsmith import catalog

    print_table(
        ["preset", "files", "lines", "CPU s to build"],
        [[id, f"{size['files']:,}", f"{size['lines']:,}", str(size.get("build", ""))]
         for id, size in catalog.sizes()["presets"].items()],
    )  # fmt: skip


def _print_feature(row: Feature, on: Mapping[str, str] | None) -> None:
    """Print the details of a feature."""
    from torchsmith import catalog

    size = catalog.sizes()["parts"][row.id]
    facts = {
        "group": row.group,
        "size": f"{size['files']:,} files, {size['lines']:,} lines",
        "requires": ", ".join(row.requires),
        "required by": ", ".join(catalog.users(row.id)),
        "in presets": ", ".join(id for id, ids in catalog.presets().items() if row.id in ids),
        "adds": ", ".join(f"torch.NAME.{name}" for name in row.provides),
        "files": "\n".join(
            path.lstrip("/").replace("{package}", "torch_NAME") for path in row.paths
        ),
    }
    if on is not None:
        facts["in this project"] = f"yes, {on[row.id]}" if row.id in on else "no"
    tell(f"{row.id}: {row.title}\n{row.help}\n")
    for name, fact in facts.items():
        if fact:
            tell(f"{name}: {fact}" if "\n" not in fact else f"{name}:\n{fact}")


def dtypes(as_json: Json = False) -> None:
    """List the element types that a backend can have kernels for; all others are storage-only.

    Example: torchsmith dtypes --json
    """
    from torchsmith import catalog

    rows = [
        {
            "name": name,
            "title": row["title"],
            "default": row["default"],
            "required": row.get("required", False),
        }
        for name, row in catalog.dtypes().items()
    ]
    if as_json:
        print_json(rows)
        return
    chosen = {(True, True): "always", (True, False): "by default", (False, False): "on request"}
    print_table(
        ("dtype", "what it is", "kernels"),
        [(row["name"], row["title"], chosen[row["default"], row["required"]]) for row in rows],
    )


def names(
    check: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Names to check.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Check names for a backend. The status is 1 if one of them cannot be used.

    Example: torchsmith names acme cuda
    """
    from torchsmith.catalog import name_problem

    problems = {name: name_problem(name) for name in check}
    if as_json:
        print_json(
            [
                {"name": name, "works": not text, "problem": text or None}
                for name, text in problems.items()
            ]
        )
    else:
        print_table(
            ("name", "works", "because"),
            [(name, "no" if text else "yes", text) for name, text in problems.items()],
        )
    if any(problems.values()):
        raise typer.Exit(FOUND)
