"""Finds a smallest program that still fails, by removing statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.program import Program, Statement

Fails = Callable[[Program], bool]
"""Runs a program. It should accept one failure only."""


def shrink(program: Program, fails: Fails) -> Program:
    """Return a failing program from which nothing more can be removed.

    Removes halves first, then quarters, down to single statements. Then it removes statements whose
    results can be replaced by one of their inputs, which shortens chains of statements.
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
    """Remove chunks of ``size`` statements that the failure does not need, starting at the end,
    where nothing depends on them."""
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
    """Remove each statement whose result can be replaced by one of its inputs."""
    for position in reversed(range(len(program.statements) - 1)):
        for kept in bypasses(program.statements, position):
            candidate = replace(program, statements=kept)
            if fails(candidate):
                program = candidate
                break
    return program


def bypasses(statements: tuple[Statement, ...], position: int) -> Iterator[tuple[Statement, ...]]:
    """Yield the statements without one, with one of its inputs in place of its target."""
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
