"""Processes that end or are killed, messages that arrive afterwards, and leaks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch
from backend import DEVICE, backend
from ipc import remote
from ipc.partner import Partner, RemoteError
from support import MIB

SIZE = 4 * MIB


def large() -> torch.Tensor:
    return torch.zeros(SIZE // 4, device=DEVICE)


def test_memory_is_kept_while_the_receiver_uses_it(partner: Partner) -> None:
    before = remote.allocated()
    partner.call(remote.keep, large())
    assert remote.allocated() - before >= SIZE
    later = large()  # would be at the same place
    later.fill_(7)
    backend.synchronize()
    assert sum(partner.call(remote.values_of_kept)[0]) == 0
    partner.call(remote.forget)
    del later
    assert remote.allocated() == before


def test_memory_used_by_a_killed_receiver_is_freed(start: Callable[[], Partner]) -> None:
    before = remote.allocated()
    partner = start()
    partner.call(remote.keep, large(), large())
    assert remote.allocated() - before >= 2 * SIZE
    partner.kill()
    assert remote.allocated() == before


def test_the_allocator_reclaims_shared_memory_before_it_allocates(
    start: Callable[[], Partner],
) -> None:
    backend.empty_cache()
    partner = start()
    partner.call(remote.keep, large())
    partner.kill()
    reserved = backend.memory_reserved()
    again = large()
    assert backend.memory_reserved() == reserved
    del again


def test_the_memory_of_a_killed_sender_stays_usable(start: Callable[[], Partner]) -> None:
    files = remote.descriptors()
    partner = start()
    tensor = partner.call(remote.make_and_keep, 1, 2, 3)
    partner.kill()
    tensor.fill_(5)
    assert (tensor + 1).tolist() == [6, 6, 6]
    del tensor
    assert remote.descriptors() == files


def test_memory_stays_valid_if_the_intermediate_process_is_killed(
    start: Callable[[], Partner], partner: Partner
) -> None:
    middle = start()
    tensor = torch.zeros(3, device=DEVICE)
    middle.call(remote.keep, tensor)
    (back,) = middle.call(remote.kept_values)
    partner.call(remote.keep, back)
    middle.kill()
    backend.ipc_collect()
    del tensor, back
    others = [torch.full((3,), 9.0, device=DEVICE) for _ in range(50)]
    backend.synchronize()
    assert partner.call(remote.values_of_kept) == [[0, 0, 0]]
    assert len(others) == 50


def test_a_message_of_an_ended_process_is_refused(start: Callable[[], Partner]) -> None:
    partner = start()
    message = partner.call(pickled)
    partner.kill()
    with pytest.raises(RuntimeError, match="no longer be received: that process has ended"):
        ForkingPickler.loads(message)


def pickled() -> bytes:
    remote.keep(torch.ones(3, device=DEVICE))
    return bytes(ForkingPickler.dumps(remote.kept[-1]))


def load(message: bytes) -> None:
    remote.keep(ForkingPickler.loads(message))


def test_ipc_collect_can_withdraw_memory_that_was_not_received(partner: Partner) -> None:
    before = remote.allocated()
    message = bytes(ForkingPickler.dumps(large()))
    assert remote.allocated() - before >= SIZE
    backend.ipc_collect(take_back=True)
    assert remote.allocated() == before
    with pytest.raises(RemoteError, match=r"no longer be received: .*withdrawn"):
        partner.call(load, message)
    with pytest.raises(RuntimeError, match="this process sent can no longer be received"):
        ForkingPickler.loads(message)


def test_a_message_can_be_received_once(partner: Partner, start: Callable[[], Partner]) -> None:
    tensor = torch.ones(3, device=DEVICE)
    message = bytes(ForkingPickler.dumps(tensor))
    partner.call(load, message)
    with pytest.raises(RemoteError, match="was received before"):
        start().call(load, message)
    assert partner.call(remote.values_of_kept) == [[1, 1, 1]]


def test_exchanges_leak_no_memory_and_no_files(partner: Partner) -> None:
    def figures() -> tuple[object, ...]:
        shm = sorted(path.name for path in Path("/dev/shm").iterdir())
        mine = (remote.allocated(), remote.descriptors())
        return mine, partner.call(remote.allocated), partner.call(remote.descriptors), shm

    def exchange() -> None:
        tensors = [torch.full((1000,), 3.0, device=DEVICE), large()]
        partner.call(remote.keep, *tensors)
        theirs = partner.call(remote.make_and_keep, 1, 2)
        assert theirs.tolist() == [1, 2]
        partner.call(remote.kept_values)
        partner.call(remote.forget)

    exchange()
    before = figures()
    for _ in range(20):
        exchange()
    assert figures() == before


@pytest.mark.full
def test_processes_killed_at_any_time_leak_no_memory(start: Callable[[], Partner]) -> None:
    chance = random.Random(0)
    before = remote.allocated()
    for _ in range(30):
        partner = start()
        partner.call(remote.forget)
        for _ in range(20):
            partner.connection.send((remote.keep, (torch.zeros(1000, device=DEVICE),)))
        time.sleep(chance.random() * 0.02)
        partner.kill()
        backend.ipc_collect(take_back=True)
        assert remote.allocated() == before
