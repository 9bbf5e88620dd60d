"""Views share memory with their base: what is written through one is seen in the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, sample

pytestmark = needs(torch.float32)

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "alias": lambda x: torch.ops.aten.alias(x),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 5), 1),
    "chunk": lambda x: x.chunk(2)[1],
    "detach": lambda x: x.detach(),
    "diagonal": lambda x: x.diagonal(1),
    "flatten": lambda x: x.flatten(),
    "index": lambda x: x[1],
    "movedim": lambda x: x.movedim(0, 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "permute": lambda x: x.permute(1, 0),
    "reshape": lambda x: x.reshape(3, 8),
    "select": lambda x: x.select(1, 2),
    "slice": lambda x: x[1:, ::2],
    "split": lambda x: x.split([1, 3])[1],
    "squeeze": lambda x: x[:1].squeeze(0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "transpose": lambda x: x.T,
    "unbind": lambda x: x.unbind(1)[3],
    "unflatten": lambda x: x.unflatten(1, (2, 3)),
    "unfold": lambda x: x.unfold(1, 2, 2),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "view": lambda x: x.view(-1),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(4, 3, 2)).real,
    "view_as_dtype": lambda x: x.view(torch.int32).view(torch.float32),
    "of a view": lambda x: x[1:].T[1:].flatten(),
}
NEEDS_COMPLEX = {"view_as_complex"}
NEEDS_INT32 = {"view_as_dtype"}
COPIES = {"of a view"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[needs(torch.complex64)] * (name in NEEDS_COMPLEX)
            + [needs(torch.int32)] * (name in NEEDS_INT32),
        )
        for name in VIEWS
    ],
)
def test_view_aliases_its_base(name: str) -> None:
    view = VIEWS[name]
    on_cpu, on_device = sample(4, 6), sample(4, 6).to(DEVICE)
    viewed, expected = view(on_device), view(on_cpu)
    assert viewed.stride() == expected.stride()
    assert viewed.storage_offset() == expected.storage_offset()
    shares = viewed.untyped_storage().data_ptr() == on_device.untyped_storage().data_ptr()
    assert shares is (name not in COPIES)
    assert_same(viewed, expected)
    expected.mul_(10)
    viewed.mul_(10)
    assert_same(on_device, on_cpu)
    on_cpu.add_(1)
    on_device.add_(1)
    assert_same(viewed, expected)


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


def test_writing_to_an_expanded_tensor_is_refused() -> None:
    expanded = torch.zeros(1, device=DEVICE).expand(3)
    with pytest.raises(RuntimeError, match="more than one element"):
        expanded.add_(1)


def test_expanded_tensor_reads_one_element() -> None:
    base = torch.zeros(1, 3, device=DEVICE)
    expanded = base.expand(4, 3)
    base[0, 1] = 5
    assert expanded.sum().item() == 20


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


def test_indexing_reads_and_writes_like_the_cpu() -> None:
    on_cpu, on_device = sample(5, 6), sample(5, 6).to(DEVICE)
    for tensor in (on_cpu, on_device):
        tensor[0] = 1
        tensor[1, 2] = 2
        tensor[2:4, ::2] = torch.tensor([[3.0], [4.0]], device=tensor.device)
        tensor[..., -1] = tensor[..., 0]
    assert_same(on_device, on_cpu)
    assert on_device[None, 1, None].shape == (1, 1, 6)


def test_resize_keeps_the_values_that_fit() -> None:
    tensor = torch.arange(6.0, device=DEVICE)
    tensor.resize_(3)
    assert tensor.tolist() == [0, 1, 2]
    tensor.resize_(2, 4)
    assert tensor.shape == (2, 4)
    assert tensor.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]


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
