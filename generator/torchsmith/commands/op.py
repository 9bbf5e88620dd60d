"""`torchsmith op`: operators of a project's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from torchsmith.commands.common import Command, Commands, Json, ProjectFolder, print_json, tell

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def op() -> None:
    """Write the files of a PyTorch operator in a project.

    Example: torchsmith op add aten::special_airy_ai
    """


@app.command("add", cls=Command)
def add_operator(
    operator: Annotated[
        str,
        typer.Argument(
            metavar="OPERATOR",
            help="aten::gelu, or aten::pow.Scalar for one overload.",
            show_default=False,
        ),
    ],
    project: ProjectFolder = None,
    as_json: Json = False,
) -> None:
    """Write an operator's kernel, registration, test and docs row, from its schema.

    Example: torchsmith op add aten::special_airy_ai

    If a kernel family computes the operator, you write nothing. Otherwise the file compiles, and
    the test fails with the name of the file in which to write the function's body.
    """
    from torchsmith.operators.schema import operator_named
    from torchsmith.operators.write import write_operator
    from torchsmith.project import find

    added = write_operator(find(project), operator_named(operator))
    if as_json:
        print_json(asdict(added))
        return
    tell(f"{added.operator}: wrote {added.kernel}, {added.test} and a row of {added.docs}")
    if added.line:
        tell(f"Write the body at {added.kernel}:{added.line}, then rebuild and run:")
    else:
        tell("A kernel family computes it. Rebuild and run:")
    print(f"  pytest {added.test}")
    if added.feature:
        tell(
            f"The feature {added.feature} has this operator too (torchsmith add {added.feature}). "
            "A project can have one of the two."
        )
