"""Views of complex numbers, of storages, and within autograd."""

from __future__ import annotations

import torch
from backend import DEVICE
from support import assert_same, needs, sample

pytestmark = needs(torch.float32)


@needs(torch.complex64)
def test_real_imag_and_view_as_real_alias_a_complex_tensor() -> None:
    on_cpu = sample(3, 4, dtype=torch.complex64)
    on_device = on_cpu.to(DEVICE)
    for tensor in (on_cpu, on_device):
        tensor.real.fill_(2)
        tensor.imag[1].mul_(3)
        torch.view_as_real(tensor)[2, :, 0] = 7
        tensor.conj()[0].imag.fill_(5)
    assert_same(on_device, on_cpu)


def test_set_shares_the_storage_of_another_tensor() -> None:
    source = torch.arange(6.0, device=DEVICE)
    target = torch.empty(0, device=DEVICE)
    torch.Tensor.set_(target, source)  # type: ignore[call-overload]
    target[0] = 9
    assert source[0].item() == 9
    target.set_(source.untyped_storage(), 2, (2, 2), (2, 1))
    assert target.tolist() == [[2, 3], [4, 5]]
    other = torch.empty(0, device=DEVICE)
    other.set_(source.untyped_storage())
    assert other.data_ptr() == source.data_ptr()


def test_autograd_follows_writes_through_views() -> None:
    results = []
    for device in ("cpu", DEVICE):
        leaf = torch.ones(4, 4, device=device, requires_grad=True)
        value = leaf * 2
        value[1] = value[0] * 3
        value.T[2].mul_(5)
        value.sum().backward()
        assert leaf.grad is not None
        results.append(leaf.grad.cpu())
    assert results[0].equal(results[1])
