"""Generates random programs, each from its seed, and runs them meanwhile."""

from __future__ import annotations

import torch
from fuzz.choice import Choice, Nothing
from fuzz.known import Known
from fuzz.program import Program, Statement
from fuzz.session import Divergence, Session, reset
from fuzz.steps import LARGEST, STEPS, create

LENGTH = 200
"""Statements in a program, besides those that delete variables."""

BATCHES = (1, 8, 32, 32)
"""The numbers of statements after which a program waits for the devices, by seed."""

MOST_VARIABLES = 14
WILD = 1e3
"""Tensors with larger numbers are deleted: rounding of these hides other differences."""


def run(seed: int, known: Known, length: int = LENGTH) -> tuple[Program, Divergence | None]:
    """Generate and run the program of a seed, until its first unknown divergence."""
    batch = BATCHES[seed % len(BATCHES)]
    session = Session(batch, known.has)
    choice = Choice(seed, session)
    statements: list[Statement] = []

    def execute(statement: Statement) -> None:
        statements.append(statement)
        session.execute(statement)

    found = None
    try:
        for _ in range(length):
            execute(next_statement(choice))
            for name in superfluous(choice, statements[-1]):
                execute(Statement(f"del {name}"))
        session.compare()
    except Divergence as divergence:
        found = divergence
    finally:
        reset()
    return Program(tuple(statements), batch), found


def next_statement(choice: Choice) -> Statement:
    """Generate a statement that the current variables allow."""
    while len(choice.variables) > 3:
        kind = choice.random.choices(list(STEPS), list(STEPS.values()))[0]
        try:
            return kind(choice)
        except Nothing:
            continue
    return create(choice)


def superfluous(choice: Choice, statement: Statement) -> list[str]:
    """Return the variables to delete after a statement: large or wild ones, or one too many."""
    variables = choice.variables
    names = [name for name in statement.names if name in variables and is_wild(variables.pop(name))]
    if len(variables) > MOST_VARIABLES:
        names.append(choice.random.choice(list(variables)))
    return names


def is_wild(tensor: torch.Tensor) -> bool:
    if tensor.numel() > LARGEST or tensor.dim() > 8:
        return True
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return False
    size = tensor.detach().abs()
    return bool((size.isnan() | (size > WILD)).sum() > tensor.numel() // 3) or bool(
        (size.isfinite() & (size > 100 * WILD)).any()
    )
