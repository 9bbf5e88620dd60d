"""Views share memory with their base: what is written through one is seen in the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
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


@needs(torch.complex64)
def test_conjugate_is_a_view() -> None:
    on_device = sample(3, dtype=torch.complex64).to(DEVICE)
    conjugate = on_device.conj()
    assert conjugate.is_conj()
    on_device.fill_(1 + 2j)
    assert conjugate.cpu().eq(1 - 2j).all()
    assert conjugate.resolve_conj().is_conj() is False
    assert conjugate.imag.cpu().eq(-2).all()


def test_overlapping_windows_read_the_same_elements() -> None:
    on_device = torch.arange(6.0, device=DEVICE)
    windows = on_device.unfold(0, 3, 1)
    on_device[2] = 100
    assert windows.cpu()[:3, :].tolist() == [[0, 1, 100], [1, 100, 3], [100, 3, 4]]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(5, 5),
        lambda x: x.T.view(-1),
        lambda x: x.as_strided((100,), (1,)),
        lambda x: x.as_strided((2,), (-1,)),
        lambda x: x.select(0, 9),
        lambda x: x.unfold(0, 9, 1),
        lambda x: x.expand(2, 2),
        lambda x: x.narrow(0, 3, 5),
    ],
)
def test_view_that_does_not_fit_is_refused(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    on_cpu = sample(4, 6)
    with pytest.raises((RuntimeError, IndexError)) as expected:
        view(on_cpu)
    with pytest.raises(expected.type):
        view(on_cpu.to(DEVICE))


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
