"""`torchsmith features`, `dtypes` and `names`: the catalog as tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from torchsmith.commands.common import FOUND, Json, ProjectFolder, print_json, print_table


def features(
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Show the features that a backend can have and, in a project, why one is on.

    Example: torchsmith features --project torch-foo
    """
    from torchsmith import catalog
    from torchsmith.project import current, find

    here = None
    if project or current():
        here = find(project, updatable=False)
    on = {id: here.reason(id) for id in here.features} if here else {}
    rows = catalog.features().values()
    if as_json:
        print_json([{**asdict(row), "enabled": row.id in on if here else None,
                     "because": on.get(row.id)} for row in rows])  # fmt: skip
        return
    parts = catalog.sizes()["parts"]
    columns = ["group", "feature", "what it is", "requires", "lines"]
    groups = [row.group for row in rows]
    cells = [
        ["" if row.group == before else row.group, row.id, row.title, ", ".join(row.requires),
         f"{parts[row.id]['lines']:,}"]
        for before, row in zip(["", *groups], rows, strict=False)
    ]  # fmt: skip
    if here:
        columns.append("in this project")
        for line in cells:
            line.append(f"yes, {on[line[1]]}" if line[1] in on else "no")
    print_table(columns, cells)
    if not here:
        print_table(
            ["preset", "files", "lines", "CPU time to build"],
            [[id, f"{size['files']:,}", f"{size['lines']:,}",
              f"{size['build']} s" if "build" in size else ""]
             for id, size in catalog.sizes()["presets"].items()],
        )  # fmt: skip


def dtypes(as_json: Json = False) -> None:
    """Show the element types that a backend can calculate with; tensors can be of any other.

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
        ("dtype", "what it is", "calculated with"),
        [(row["name"], row["title"], chosen[row["default"], row["required"]]) for row in rows],
    )


def names(
    check: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Names to check.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Say whether a name will work for a backend; the status is 1 if one will not.

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
