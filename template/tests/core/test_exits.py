"""A process can end while its devices are busy, and keeps its exit status."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE
from core.exits import ENDS, end
from support import needs, run_python


@pytest.mark.parametrize("how", ENDS)
def test_a_process_ends_while_its_devices_work(how: str) -> None:
    end(how)


@needs(torch.float32)
def test_waits_end_although_another_thread_goes_on_enqueueing() -> None:
    """As at the exit, when daemon threads may be in the middle of training.

    The exit status is not checked, because the interpreter stops the threads at any point.
    """
    result = run_python(
        f"""
        import threading
        import torch

        model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).to("{DEVICE}")

        def train():
            while True:
                model(torch.ones(256, 256, device="{DEVICE}")).sum().backward()

        for _ in range(3):
            threading.Thread(target=train, daemon=True).start()
        for _ in range(5):
            torch.{DEVICE}.synchronize()
            torch.ones(2, device="{DEVICE}").cpu()
            torch.{DEVICE}.current_stream().synchronize()
        print("waited", flush=True)
        """,
        check=False,
    )
    assert result.stdout == "waited\n"
