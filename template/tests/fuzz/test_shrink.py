"""What the fuzzer leaves of a failing program: nothing that is not needed, as a script that runs."""

from __future__ import annotations

from pathlib import Path

from fuzz.program import Program, Statement
from fuzz.shrink import shrink
from support import run_python


def program(*lines: str, batch: int = 1) -> Program:
    return Program(tuple(map(Statement, lines)), batch)


def test_only_the_statements_that_a_failure_needs_are_left() -> None:
    lines = [f"v{number} = torch.ones({number}, device=d0)" for number in range(200)]
    needed = {lines[3], lines[77], lines[199]}

    def fails(candidate: Program) -> bool:
        return needed <= {statement.code for statement in candidate.statements}

    short = shrink(program(*lines, batch=8), fails)
    assert {statement.code for statement in short.statements} == needed
    assert short.batch == 1


def test_waiting_stays_rare_where_the_failure_needs_that() -> None:
    short = shrink(program("v1 = 1", "v2 = 2", batch=8), lambda candidate: candidate.batch == 8)
    assert short == program("v1 = 1", batch=8) or short == program("v2 = 2", batch=8)


def test_a_wrong_operator_is_found_and_the_script_shows_it(tmp_path: Path) -> None:
    """An operator that is wrong on the device, and a generator's program that uses it."""
    broken = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        import torch
        from backend import DEVICE
        flip = torch.Tensor.flip
        def wrong(tensor, *dims):
            result = flip(tensor, *dims)
            return result.logical_not() if tensor.device.type == DEVICE else result
        torch.Tensor.flip = wrong
    """
    found = run_python(
        broken
        + """
        from fuzz.search import search
        print(search(range(1000)))
        """
    ).stdout
    script = found[found.index("import torch") :]
    statements = [line.strip() for line in script.splitlines() if line.startswith("    v")]
    assert "flip" in statements[-1]
    assert len(statements) <= 4
    path = tmp_path / "script.py"
    path.write_text(script)
    shown = run_python(broken + f"\n        exec(open({str(path)!r}).read(), {{}})\n").stdout
    host, device = shown.strip().split("[tensor(")[1:]
    assert host.split("device=")[0] != device.split("device=")[0]
