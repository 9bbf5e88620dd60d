"""The fuzzer finds an operator that is wrong, and the script that it leaves shows it."""

from __future__ import annotations

from pathlib import Path

from support import run_python


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
