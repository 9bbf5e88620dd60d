"""A device without some functions of runtime.h: calls that need them raise an error."""

from __future__ import annotations

from pathlib import Path

from backend import DEVICE
from changed_device import changed_device
from support import run_python

SOURCE = Path(__file__).parent / "reduced_device.cpp"


def test_the_package_works_without_optional_functions(tmp_path: Path) -> None:
    code = f"""
        import torch
        x = torch.arange(6.0).reshape(2, 3).to("{DEVICE}")
        assert (x @ x.t()).cpu().tolist() == [[5.0, 14.0], [14.0, 50.0]]
        stream = torch.Stream("{DEVICE}")
        with stream:
            y = x + 1
        event = torch.Event("{DEVICE}")
        event.record(stream)
        event.synchronize()
        torch.accelerator.synchronize()
        assert y.sum().item() == 21
        first, last = (torch.Event("{DEVICE}", enable_timing=True) for _ in range(2))
        first.record()
        last.record()
        last.synchronize()
        try:
            first.elapsed_time(last)
        except (RuntimeError, NotImplementedError) as error:
            print(error)
    """
    said = run_python(code, changed_device(SOURCE, tmp_path, ABSENT="native_handle")).stdout
    assert said.startswith("this device has no elapsed_ms: write the function")


def test_a_missing_required_function_is_named_at_the_first_use(tmp_path: Path) -> None:
    code = f"import torch; torch.ones(1, device='{DEVICE}')"
    done = run_python(code, changed_device(SOURCE, tmp_path, ABSENT="query_event"), check=False)
    assert done.returncode == 1
    assert f"the device library of {DEVICE} has no query_event: write these" in done.stderr
