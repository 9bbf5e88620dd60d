"""DTensor reads and writes generator states as 16 bytes: the seed and the offset."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import needs, run_python

pytestmark = [
    needs(torch.float32),
    pytest.mark.skipif(
        not torch.distributed.is_available(), reason="PyTorch was built without torch.distributed"
    ),
]


def test_dtensor_reads_and_sets_the_offset() -> None:
    from torch.distributed.tensor._random import _PhiloxState

    backend.manual_seed(77)
    torch.rand(16, device=DEVICE)
    expected = torch.rand(16, device=DEVICE).cpu()
    backend.manual_seed(77)
    start = _PhiloxState(backend.get_rng_state())
    assert int(start.seed) == 77
    assert int(start.offset) == 0
    torch.rand(16, device=DEVICE)
    state = _PhiloxState(backend.get_rng_state())
    start.offset = state.offset
    backend.set_rng_state(start.state)
    assert torch.rand(16, device=DEVICE).cpu().equal(expected)


@needs(torch.uint8)  # which DTensor sends the generator's state in
def test_dtensor_draws_from_the_generator_of_the_device() -> None:
    run_python(f"""
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.tensor import Shard, rand
        from torch.testing._internal.distributed.fake_pg import FakeStore

        dist.init_process_group("cpu:fake,{DEVICE}:fake", rank=0, world_size=2, store=FakeStore())
        mesh = DeviceMesh("{DEVICE}", [0, 1])
        torch.manual_seed(3)
        first = rand(8, 4, device_mesh=mesh, placements=[Shard(0)]).to_local()
        second = rand(8, 4, device_mesh=mesh, placements=[Shard(0)]).to_local()
        assert first.device.type == "{DEVICE}" and first.shape == (4, 4)
        assert not first.cpu().equal(second.cpu())
        torch.manual_seed(3)
        again = rand(8, 4, device_mesh=mesh, placements=[Shard(0)]).to_local()
        assert again.cpu().equal(first.cpu())
        dist.destroy_process_group()
    """)
