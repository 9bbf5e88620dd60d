"""Runs the programs of many seeds, and shrinks the first one that fails."""

from __future__ import annotations

from collections.abc import Iterable

from fuzz import generate
from fuzz.known import Known
from fuzz.program import NAMES, Program
from fuzz.session import Divergence, divergence
from fuzz.shrink import shrink


def search(seeds: Iterable[int]) -> str:
    """Return the smallest failing program as a script, or an empty string."""
    known = Known.read()
    for seed in seeds:
        program, found = generate.run(seed, known)
        if found is not None:
            return f"# seed {seed}\n{smallest(program, found, known)}"
    return ""


def smallest(program: Program, found: Divergence, known: Known) -> str:
    """Return the smallest program that fails in the same way, at the same statement."""

    def fails(candidate: Program) -> bool:
        other = divergence(candidate, known.has)
        return other is not None and alike(other, found)

    end = program.statements.index(found.statement) + 1
    short = shrink(Program(program.statements[:end], program.batch), fails)
    last = divergence(short, known.has) or found
    return short.text(last.what)


def alike(one: Divergence, other: Divergence) -> bool:
    """Whether two divergences are equal except for the names of variables."""
    return form(one) == form(other)


def form(found: Divergence) -> list[str]:
    code = NAMES.sub("v", found.statement.code)
    return [code, *NAMES.sub("v", found.what).split()[:2]]
