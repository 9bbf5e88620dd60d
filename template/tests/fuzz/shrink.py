"""Finds the smallest program that still fails, by leaving statements out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.program import Program, Statement

Fails = Callable[[Program], bool]
"""Runs a program; it should ask for one failure, not for any."""


def shrink(program: Program, fails: Fails) -> Program:
    """Return what is left of a failing program when nothing more can be left out.

    Halves go first, then quarters, down to single statements. Then statements go whose results may be
    replaced by what they were made from: that shortens the chains that led to the failure.
    """
    size = len(program.statements)
    while size > 1:
        size = (size + 1) // 2
        program = without_chunks(program, size, fails)
    while True:
        shorter = without_links(without_chunks(program, 1, fails), fails)
        if len(shorter.statements) == len(program.statements):
            break
        program = shorter
    patient = replace(program, batch=1)
    return patient if fails(patient) else program


def without_chunks(program: Program, size: int, fails: Fails) -> Program:
    """Leave out each ``size`` statements that the failure does not need, from the end, where nothing
    depends on them."""
    end = len(program.statements)
    while end > 0:
        start = max(end - size, 0)
        kept = program.statements[:start] + program.statements[end:]
        candidate = replace(program, statements=kept)
        if kept and fails(candidate):
            program = candidate
        end = start
    return program


def without_links(program: Program, fails: Fails) -> Program:
    """Leave out each statement whose result may be one of the variables that it was made from."""
    for position in reversed(range(len(program.statements) - 1)):
        for kept in bypasses(program.statements, position):
            candidate = replace(program, statements=kept)
            if fails(candidate):
                program = candidate
                break
    return program


def bypasses(statements: tuple[Statement, ...], position: int) -> Iterator[tuple[Statement, ...]]:
    """Return the statements without one, whose target another of its variables stands for."""
    statement = statements[position]
    for target in statement.targets:
        for source in statement.names:
            if source in statement.targets:
                continue
            name = re.compile(rf"\b{target}\b")
            later = (
                replace(one, code=name.sub(source, one.code)) for one in statements[position + 1 :]
            )
            yield (*statements[:position], *later)
