"""Interfaces of programs: queues, pools, and workers of a data loader."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from backend import DEVICE, backend
from ipc import remote
from ipc.partner import TIMEOUT, context
from support import run_python
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset[torch.Tensor]):
    """Numbers that workers compute on the device."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((1000,), float(index), device=DEVICE) ** 2


def double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 2


def add_in_place(tensor: torch.Tensor) -> torch.Tensor:
    tensor.add_(1)
    backend.synchronize()
    return tensor


def test_pool_workers_receive_and_return_tensors() -> None:
    before = remote.allocated()
    with context().Pool(2) as pool:
        tensors = [torch.full((100,), float(number), device=DEVICE) for number in range(6)]
        doubled = pool.map_async(double, tensors).get(TIMEOUT)
        assert [int(tensor[0]) for tensor in doubled] == [0, 2, 4, 6, 8, 10]
        changed = pool.map_async(add_in_place, tensors).get(TIMEOUT)
        assert [tensor.data_ptr() for tensor in changed] == [
            tensor.data_ptr() for tensor in tensors
        ]
        assert [int(tensor[0]) for tensor in tensors] == [1, 2, 3, 4, 5, 6]
        del doubled, changed, tensors
    assert remote.allocated() == before


@pytest.mark.parametrize("persistent", [False, True])
def test_data_loader_workers_return_device_tensors(persistent: bool) -> None:
    files = remote.descriptors()
    loader: DataLoader[torch.Tensor] = DataLoader(
        Squares(),
        batch_size=2,
        num_workers=2,
        multiprocessing_context=context(),
        persistent_workers=persistent,
        timeout=TIMEOUT,
    )
    for _ in range(2 if persistent else 1):
        batches = list(loader)
        assert [batch[:, 0].tolist() for batch in batches] == [[0, 1], [4, 9], [16, 25], [36, 49]]
        assert all(batch.device.type == DEVICE for batch in batches)
    del batches, loader
    assert remote.descriptors() == files


SCRIPT = f"""
import torch, torch.multiprocessing as mp

def work(inbox, outbox):
    tensor = inbox.get(timeout=60)
    tensor.add_(1)
    torch.{DEVICE}.synchronize()
    outbox.put(tensor.sum().item())
    inbox.get(timeout=60)

if __name__ == "__main__":
    context = mp.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    child = context.Process(target=work, args=(inbox, outbox), daemon=True)
    child.start()
    tensor = torch.zeros(1000, device="{DEVICE}")
    inbox.put(tensor)
    print("their sum", outbox.get(timeout=60), "mine", tensor.sum().item())
    inbox.put(None)
    child.join(60)
    assert child.exitcode == 0
"""


def test_a_queue_shares_a_tensor_with_a_spawned_process(tmp_path: Path) -> None:
    script = tmp_path / "share.py"
    script.write_text(SCRIPT)
    result = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert "their sum 1000.0 mine 1000.0" in result.stdout


def test_importing_the_backend_starts_no_ipc_resources() -> None:
    result = run_python(
        f"""
        import multiprocessing, os, torch
        backend = torch.{DEVICE}
        print("started", backend.is_initialized(), len(multiprocessing.active_children()))
        backend.ipc_collect()
        print("after", backend.is_initialized())
        print([name for name in os.listdir("/proc/self/fd")
               if "ipc" in os.path.realpath("/proc/self/fd/" + name).rpartition("/")[2]])
        """
    )
    assert result.stdout.splitlines() == ["started False 0", "after False", "[]"]
