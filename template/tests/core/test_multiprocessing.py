"""Other processes: tensors in queues, and forks."""

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
def test_a_result_of_autograd_is_refused() -> None:
    from multiprocessing.reduction import ForkingPickler

    value = torch.ones(2, device=DEVICE, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="detach"):
        ForkingPickler.dumps(value)


@needs(torch.float32)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_forked_child_ends_without_waiting_for_threads_of_autograd(device: str) -> None:
    """The parent's threads do not exist in the child. PyTorch would wait ten seconds for them."""
    result = run_python(
        f"""
        import os, signal, sys, torch, warnings
        warnings.simplefilter("ignore")
        torch.ones(3, device="{device}", requires_grad=True).sum().backward()
        child = os.fork()
        if child == 0:
            print("ends", flush=True)
            sys.exit(3)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.alarm(8)
        print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert result.stdout == "ends\nstatus 3\n"


@needs(torch.float32)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_can_delete_inherited_objects(end: str) -> None:
    result = run_python(
        f"""
        import gc, os, sys, torch, warnings
        warnings.simplefilter("ignore")
        device = torch.{DEVICE}
        stream = device.Stream()

        def use():
            pinned = torch.ones(10_000).pin_memory()
            moved = pinned.to("{DEVICE}", non_blocking=True)
            host = torch.empty(10_000, pin_memory=True)
            host.copy_(moved, non_blocking=True)
            moved.record_stream(stream)
            stream.wait_stream(device.current_stream())
            with device.stream(stream):
                result = moved * 2
            event = device.Event(enable_timing=True)
            event.record(stream)
            lazy = result._lazy_clone()
            gradient = torch.ones(3, device="{DEVICE}", requires_grad=True)
            (gradient * 2).sum().backward()
            return [pinned, moved, host, result, event, lazy, gradient, host[5:], moved[5:],
                    device.Stream(), torch.Event("{DEVICE}"), moved.untyped_storage(),
                    torch.utils.dlpack.to_dlpack(moved)]

        inherited = use()
        child = os.fork()
        if child == 0:
            while inherited:
                del inherited[-1]
                gc.collect()
            print("dropped", flush=True)
            {end}
        assert os.waitpid(child, 0)[1] == 0
        inherited.clear()
        inherited = use()
        device.synchronize()
        assert inherited[3].cpu().eq(2).all()
        """
    )
    assert "dropped" in result.stdout


@needs(torch.float32)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_data_loader_workers_can_delete_inherited_objects() -> None:
    result = run_python(
        f"""
        import torch, warnings
        from torch.utils.data import DataLoader, Dataset
        warnings.simplefilter("ignore")
        stream = torch.{DEVICE}.Stream()

        class Squares(Dataset):
            def __init__(self):
                self.source = torch.ones(1000).pin_memory()
                self.cache = self.source.to("{DEVICE}", non_blocking=True)
                self.cache.record_stream(stream)

            def __len__(self):
                return 4

            def __getitem__(self, i):
                self.source = self.cache = None
                return torch.tensor(float(i * i))

        loader = DataLoader(
            Squares(), num_workers=2, pin_memory=True, multiprocessing_context="fork"
        )
        print([batch.item() for batch in loader])
        """
    )
    assert "[0.0, 1.0, 4.0, 9.0]" in result.stdout
