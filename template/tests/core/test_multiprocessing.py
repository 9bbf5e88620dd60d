"""Other processes: tensors through queues, and what a fork allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from backend import DEVICE
from support import needs, run_python

SCRIPT = f"""
import torch, torch.multiprocessing as mp
from torch import nn

DEVICE = "{DEVICE}"
LAST = torch.device(DEVICE, torch.get_device_module(DEVICE).device_count() - 1)

def work(inbox, outbox):
    tensor, view, parameter, plain, storage = inbox.get(timeout=60)
    assert tensor.device == LAST, tensor.device
    assert tensor.tolist() == [0, 1, 2], tensor
    assert view.tolist() == [[0, 3], [1, 4], [2, 5]], view
    assert type(parameter) is nn.Parameter and parameter.requires_grad
    assert parameter.device.type == DEVICE
    assert plain.is_shared()
    assert storage.device.type == DEVICE and storage.nbytes() == 12
    outbox.put((tensor * 2, LAST.index))
    inbox.get(timeout=60)

if __name__ == "__main__":
    context = mp.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    child = context.Process(target=work, args=(inbox, outbox))
    child.start()
    tensor = torch.arange(3.0, device=LAST)
    view = torch.arange(6.0, device=DEVICE).view(2, 3).T
    parameter = nn.Parameter(torch.ones(2, device=DEVICE))
    inbox.put((tensor, view, parameter, torch.ones(2), tensor.untyped_storage()))
    doubled, index = outbox.get(timeout=60)
    assert doubled.device == LAST and doubled.tolist() == [0, 2, 4], doubled
    inbox.put(None)
    child.join()
    assert child.exitcode == 0
    print("exchanged")
"""


@needs(torch.float32)
def test_tensors_cross_queues_to_a_spawned_process_and_back(tmp_path: Path) -> None:
    script = tmp_path / "exchange.py"
    script.write_text(SCRIPT)
    result = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert "exchanged" in result.stdout


@needs(torch.float32)
def test_tensor_that_autograd_computed_is_refused() -> None:
    from multiprocessing.reduction import ForkingPickler

    value = torch.ones(2, device=DEVICE, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="detach"):
        ForkingPickler.dumps(value)


@needs(torch.float32)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_device_used_before_the_fork_is_refused_in_the_child() -> None:
    result = run_python(
        f"""
        import os, torch, warnings
        warnings.simplefilter("ignore")
        device = torch.{DEVICE}
        kept = torch.ones(1, device="{DEVICE}")
        uses = {{
            "factory": lambda: torch.ones(1, device="{DEVICE}"),
            "operator": lambda: kept + 1,
            "copy": lambda: kept.cpu(),
            "synchronize": device.synchronize,
            "init": device.init,
        }}
        child = os.fork()
        if child == 0:
            assert device._is_in_bad_fork()
            torch.manual_seed(0)
            for name, use in uses.items():
                try:
                    use()
                except RuntimeError as error:
                    print("refused", name, "spawn" in str(error), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (kept + 1).item() == 2
        assert not device._is_in_bad_fork()
        """
    )
    for name in ("factory", "operator", "copy", "synchronize", "init"):
        assert f"refused {name} True" in result.stdout


@needs(torch.float32)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_device_can_be_used_in_a_child_that_was_forked_before() -> None:
    result = run_python(
        f"""
        import os, torch, warnings
        warnings.simplefilter("ignore")
        assert torch.{DEVICE}.is_available()
        child = os.fork()
        if child == 0:
            print("sum", torch.ones(3, device="{DEVICE}").sum().item(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        """
    )
    assert "sum 3.0" in result.stdout
