"""The streams that sending and freeing memory wait for."""

from __future__ import annotations

import torch
from backend import DEVICE, backend
from ipc import remote
from ipc.partner import Partner
from support import keep_busy


def test_sending_and_freeing_do_not_wait_for_unrelated_streams(partner: Partner) -> None:
    tensor, received = torch.ones(3, device=DEVICE), partner.call(remote.make_and_keep, 1, 2)
    backend.synchronize()
    other = backend.Stream()
    keep_busy(other, 1.5)
    assert partner.call(remote.values, tensor) == [1, 1, 1]
    del received
    assert not other.query()


def test_sending_waits_for_the_current_and_recorded_streams(partner: Partner) -> None:
    for recorded in (False, True):
        stream = backend.Stream() if recorded else backend.current_stream()
        tensor = torch.zeros(3, device=DEVICE)
        stream.wait_stream(backend.current_stream())
        if recorded:
            tensor.record_stream(stream)
        for round in range(1, 4):
            keep_busy(stream, 0.1)
            with backend.stream(stream):
                tensor += 1
            assert partner.call(remote.values, tensor[1:]) == [round] * 2


def test_received_memory_is_kept_for_recorded_streams(partner: Partner) -> None:
    for number in range(3):
        received = partner.call(remote.make_and_keep, *[0.0] * 50_000)
        stream = backend.Stream()
        stream.wait_stream(backend.current_stream())
        keep_busy(stream, 0.1)
        with backend.stream(stream):
            received += 1
        received.record_stream(stream)
        del received
        stream.synchronize()
        assert partner.call(remote.values_of_kept)[number] == [1.0] * 50_000
