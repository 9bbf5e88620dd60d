"""Tensors that two processes share."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from ipc import remote
from ipc.partner import Partner, RemoteError
from support import assert_same, needs, supported
from torch import nn


class Tagged(torch.Tensor):
    """A subclass without own members."""


def test_both_processes_read_and_write_the_same_memory(partner: Partner) -> None:
    tensor = torch.zeros(1000, device=DEVICE)
    partner.call(remote.keep_and_add, tensor, 1)
    assert tensor.tolist() == [1] * 1000
    tensor += 1
    backend.synchronize()
    assert partner.call(remote.values_of_kept) == [[2.0] * 1000]


def test_a_received_tensor_can_be_written(partner: Partner) -> None:
    tensor = partner.call(remote.make_and_keep, 1, 2, 3)
    assert tensor.device == torch.device(DEVICE, 0)
    tensor.mul_(10)
    backend.synchronize()
    assert partner.call(remote.values_of_kept) == [[10, 20, 30]]


@pytest.mark.parametrize("dtype", supported(), ids=str)
def test_every_dtype_can_be_shared(partner: Partner, dtype: torch.dtype) -> None:
    values = torch.tensor([0, 1, 1, 0]).to(dtype)
    shared = partner.call(remote.give_back, values.to(DEVICE))[0]
    assert_same(shared, values)


def test_views_of_one_storage_are_received_as_views_of_one(partner: Partner) -> None:
    base = torch.arange(24.0, device=DEVICE).view(4, 6)
    views = (base[1:3, ::2], base.T, base.view(-1)[5:6])
    partner.call(remote.keep, *views)
    partner.call(remote.keep, base)
    assert len(set(partner.call(remote.storages, base, *views))) == 1
    partner.call(remote.add_to_kept, 100)
    base[3, 5] = -1
    backend.synchronize()
    expected = torch.arange(24.0).view(4, 6)
    expected[1:3, ::2] += 100
    expected[3, 5] = -1
    wanted = (expected[1:3, ::2], expected.T, expected.view(-1)[5:6], expected)
    assert partner.call(remote.values_of_kept) == [tensor.tolist() for tensor in wanted]


def test_neighbouring_blocks_of_a_segment_are_shared_separately(partner: Partner) -> None:
    tensors = [torch.full((3,), float(number), device=DEVICE) for number in range(20)]
    partner.call(remote.keep, *tensors[::2])
    for _ in range(2):
        partner.call(remote.add, tensors[4], 50)
    assert [int(tensor[0]) for tensor in tensors] == [*range(4), 104, *range(5, 20)]
    assert partner.call(remote.values_of_kept)[1] == [2, 2, 2]


@needs(torch.complex64)
def test_metadata_of_a_tensor_is_received(partner: Partner) -> None:
    complex_ = torch.tensor([1 + 2j], device=DEVICE)
    sent = {
        "parameter": nn.Parameter(torch.ones(2, device=DEVICE)),
        "frozen": nn.Parameter(torch.ones(2, device=DEVICE), requires_grad=False),
        "leaf": torch.ones(2, device=DEVICE, requires_grad=True),
        "subclass": torch.ones(2, device=DEVICE).as_subclass(Tagged),
        "conjugate": complex_.conj(),
        "negative": complex_.conj().imag,
        "scalar": torch.tensor(3.0, device=DEVICE),
    }
    for name, tensor in sent.items():
        assert partner.call(remote.describe, tensor) == remote.describe(tensor), name


def test_modules_share_their_parameters(partner: Partner) -> None:
    model = nn.Linear(3, 2, device=DEVICE)
    partner.call(remote.keep, model)
    with torch.no_grad():
        model.weight.fill_(4)
    backend.synchronize()
    assert partner.call(weight_of_kept) == [[4.0] * 3] * 2


def weight_of_kept() -> Any:
    return remote.kept[0].weight.tolist()


def test_an_untyped_storage_can_be_shared(partner: Partner) -> None:
    tensor = torch.zeros(4, device=DEVICE)
    storage = partner.call(remote.give_back, tensor.untyped_storage())[0]
    assert storage.data_ptr() == tensor.data_ptr()


def test_a_returned_tensor_has_the_storage_that_was_sent(partner: Partner) -> None:
    tensor = torch.zeros(4, device=DEVICE)
    partner.call(remote.keep, tensor)
    back = partner.call(remote.kept_values)[0]
    assert back.untyped_storage()._cdata == tensor.untyped_storage()._cdata


def test_a_tensor_can_be_returned_after_its_sender_deleted_it(partner: Partner) -> None:
    before = remote.allocated()
    partner.call(remote.keep, torch.arange(3.0, device=DEVICE))
    assert remote.allocated() > before
    back = partner.call(remote.kept_values)[0]
    partner.call(remote.add_to_kept, 1)
    assert back.tolist() == [1, 2, 3]
    partner.call(remote.forget)
    assert back.tolist() == [1, 2, 3]
    del back
    assert remote.allocated() == before


def test_a_tensor_can_be_passed_to_a_third_process(
    partner: Partner, start: Callable[[], Partner]
) -> None:
    third = start()
    tensor = partner.call(remote.make_and_keep, 1, 2, 3)
    third.call(remote.keep_and_add, tensor, 10)
    assert tensor.tolist() == [11, 12, 13]
    used = partner.call(remote.allocated)
    del tensor
    partner.call(remote.forget)
    assert partner.call(remote.allocated) == used, "the third process uses it"
    third.call(remote.add_to_kept, 10)
    assert third.call(remote.values_of_kept) == [[21, 22, 23]]
    third.call(remote.forget)
    assert partner.call(remote.allocated) < used


def test_received_memory_stays_valid_after_the_sender_resizes(partner: Partner) -> None:
    tensor = torch.ones(100, device=DEVICE)
    partner.call(remote.keep, tensor)
    tensor.resize_(100_000).fill_(5)
    others = [torch.full((100,), 7.0, device=DEVICE) for _ in range(50)]
    backend.synchronize()
    assert partner.call(remote.values_of_kept) == [[1.0] * 100]
    assert len(others) == 50


def test_growing_a_received_tensor_raises(partner: Partner) -> None:
    with pytest.raises(RemoteError, match="not resizable"):
        partner.call(remote.resize, torch.ones(3, device=DEVICE))


def test_a_lazy_copy_is_shared_with_its_own_memory(partner: Partner) -> None:
    tensor = torch.zeros(3, device=DEVICE)
    lazy = tensor._lazy_clone()
    partner.call(remote.add, lazy, 1)
    assert lazy.tolist() == [1, 1, 1]
    assert tensor.tolist() == [0, 0, 0]


def test_empty_tensors_can_be_sent(partner: Partner) -> None:
    back = partner.call(remote.give_back, torch.empty(0, 3, device=DEVICE))[0]
    assert back.shape == (0, 3)
    assert back.device.type == DEVICE


def test_a_process_with_other_devices_raises(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = torch.ones(2, device=DEVICE)
    with monkeypatch.context() as patch:
        patch.setattr(backend.ipc, "_identity", lambda index: b"another device, ")
        partner.connection.send((remote.values, (tensor,)))
    with pytest.raises(RemoteError, match=f"{DEVICE}:0, which is another device or none"):
        partner.answer()


def test_a_device_that_cannot_share_sends_copies(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend._C, "ipc_has_memory", lambda: False)
    monkeypatch.setattr(backend._C, "ipc_has_events", lambda: False)
    tensor = torch.zeros(3, device=DEVICE)
    partner.call(remote.add, tensor, 1)
    assert tensor.tolist() == [0, 0, 0]
    event = torch.Event(DEVICE)
    event.record()
    with pytest.raises(NotImplementedError, match="export_event"):
        ForkingPickler.dumps(event)
