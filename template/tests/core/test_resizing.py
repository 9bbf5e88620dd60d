"""Changing sizes and storages of tensors: a call that fails changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, needs_two_devices

pytestmark = needs(torch.float32)

TOO_MANY = 2 * backend.mem_get_info()[1] // 4
"""More elements of float32 than the device has memory for."""


def state(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return everything that determines the elements of a tensor."""
    storage = tensor.untyped_storage()
    place = (tensor.shape, tensor.stride(), tensor.storage_offset())
    return (*place, storage.data_ptr(), storage.nbytes(), storage.tolist())


def assert_unchanged_by(change: Callable[[torch.Tensor], Any], error: type[Exception]) -> None:
    base = torch.arange(8.0, device=DEVICE)
    tensor = base[2:6].view(2, 2).t()
    before = state(tensor)
    with pytest.raises(error):
        change(tensor)
    assert state(tensor) == before
    assert tensor.tolist() == [[2, 4], [3, 5]]


def expanded(size: int = TOO_MANY, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(1, dtype=dtype, device=DEVICE).expand(size)


TOO_LARGE: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x.resize_(TOO_MANY),
    lambda x: x.resize_(TOO_MANY, 1, 1, 1, memory_format=torch.channels_last),
    lambda x: x.resize_as_(torch.empty(1, device=DEVICE).expand(TOO_MANY)),
    lambda x: x.set_(x.untyped_storage(), 0, (TOO_MANY,), (1,)),
    lambda x: x.set_(x.untyped_storage(), TOO_MANY, (1,)),
    lambda x: x.set_(x.untyped_storage(), 0, (2,), (TOO_MANY,)),
    lambda x: x.untyped_storage().resize_(4 * TOO_MANY),
    lambda x: torch.add(expanded(), 1, out=x),
    lambda x: torch.cat([expanded(), expanded()], out=x),
    lambda x: torch.arange(TOO_MANY, out=x),
    lambda x: torch.cumsum(expanded(), 0, out=x),
    lambda x: torch.tril(expanded(TOO_MANY // 2).expand(2, -1), out=x),
    lambda x: torch.index_select(expanded(2), 0, expanded(TOO_MANY, dtype=torch.int64), out=x),
]
NONSENSE: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x.resize_(-1),
    lambda x: x.resize_(2**62, 4),
    lambda x: x.resize_(2**62, 2**62, 0),
    lambda x: x.resize_(8, memory_format=torch.channels_last),
    lambda x: x.resize_(8, memory_format=torch.preserve_format),
    lambda x: x.resize_as_(torch.ones(3, device=DEVICE), memory_format=torch.channels_last),
    lambda x: x.set_(x.untyped_storage(), -1, (2,), (1,)),
    lambda x: x.set_(x.untyped_storage(), 0, (-2,), (1,)),
    lambda x: x.set_(x.untyped_storage(), 0, (2,), (1, 1)),
    lambda x: x.set_(x.untyped_storage(), 7, (2,), (-1,)),
    lambda x: x.set_(x.untyped_storage(), 0, (1,), (-1,)),
    lambda x: x.set_(x.untyped_storage(), 0, (2**62, 4), (4, 1)),
    lambda x: x.set_(torch.ones(9).untyped_storage(), 0, (9,), (1,)),
    lambda x: x.untyped_storage().resize_(-5),
    lambda x: x.untyped_storage().resize_(-(2**63)),
]


@pytest.mark.filterwarnings("ignore:.*resized:UserWarning")
@pytest.mark.parametrize("change", TOO_LARGE)
def test_running_out_of_memory_does_not_change_the_tensor(
    change: Callable[[torch.Tensor], Any],
) -> None:
    assert_unchanged_by(change, torch.OutOfMemoryError)


@pytest.mark.parametrize("change", NONSENSE)
def test_wrong_arguments_do_not_change_the_tensor(
    change: Callable[[torch.Tensor], Any],
) -> None:
    assert_unchanged_by(change, RuntimeError)


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.ones(1, device=DEVICE).untyped_storage().resize_(-5),
        lambda: torch.UntypedStorage(-5, device=DEVICE),
    ],
)
def test_a_negative_size_of_a_storage_is_named(use: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="cannot allocate -5 bytes"):
        use()


def test_negative_strides_are_refused_by_name() -> None:
    storage = torch.arange(4.0, device=DEVICE).untyped_storage()
    with pytest.raises(RuntimeError, match=r"Negative strides are not supported.*\[-1\]"):
        torch.empty(0, device=DEVICE).set_(storage, 3, (4,), (-1,))


def test_external_memory_is_not_resized() -> None:
    ours = torch.arange(4.0, device=DEVICE)
    imported = torch.from_dlpack(ours)
    with pytest.raises(RuntimeError, match="not resizable"):
        imported.resize_(100)
    assert imported.shape == (4,)
    assert imported.resize_(2).tolist() == [0, 1]


USES: dict[str, Callable[[torch.Tensor], Any]] = {
    "an operator": lambda tensor: tensor + 1,
    "in place": torch.Tensor.zero_,
    "a reduction": torch.sum,
    "rows": lambda tensor: torch.layer_norm(tensor, (3,)),
    "the fallback": torch.special.i0e,
    "to the host": torch.Tensor.cpu,
    "to the device": lambda tensor: tensor.to(DEVICE),
    "from the other": lambda tensor: torch.empty(3, 3, device=DEVICE).copy_(tensor),
    "to the other": lambda tensor: tensor.copy_(torch.ones(3, 3)),
    "part by part": lambda tensor: torch._foreach_copy_([tensor], [torch.ones(3, 3)]),
}


@pytest.mark.parametrize("bytes", [0, 36])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_tensor_beyond_its_storage_is_refused(use: Callable[[Any], Any], bytes: int) -> None:
    """FSDP resizes the storages of its parameters."""
    tensor = torch.ones(4, 4, device="cpu" if use is USES["to the device"] else DEVICE)[1:, 1:]
    tensor.untyped_storage().resize_(bytes)
    with pytest.raises(RuntimeError, match=f"needs 64 bytes, but its storage has {bytes}: resize"):
        use(tensor)
    tensor.untyped_storage().resize_(64)
    tensor.fill_(2)
    assert tensor.cpu().eq(2).all()


def test_remaining_elements_of_a_resized_storage_can_be_used() -> None:
    tensor = torch.ones(4, 4, device=DEVICE)
    tensor.untyped_storage().resize_(16)
    assert (tensor[0] + 1).cpu().eq(2).all()
    assert tensor[4:].add(1).shape == (0, 4)


@needs_two_devices
def test_a_storage_of_another_device_is_refused() -> None:
    other = torch.ones(4, device=f"{DEVICE}:1")
    assert_unchanged_by(lambda x: x.set_(other.untyped_storage()), RuntimeError)
    assert_unchanged_by(lambda x: x.set_(other), RuntimeError)


def test_set_grows_a_storage_that_is_too_small_as_on_the_cpu() -> None:
    tensor, other = torch.arange(4.0, device=DEVICE), torch.empty(0, device=DEVICE)
    other.set_(tensor.untyped_storage(), 2, (4,), (1,))
    assert tensor.untyped_storage().nbytes() == 24
    assert other[:2].tolist() == [2, 3]


@pytest.mark.parametrize(
    "resize",
    [
        lambda x: x.resize_(3, memory_format=torch.contiguous_format),
        lambda x: x.resize_as_(torch.zeros(3), memory_format=torch.contiguous_format),
    ],
)
def test_an_expanded_tensor_that_becomes_dense_is_allocated(
    resize: Callable[[torch.Tensor], Any],
) -> None:
    tensor = torch.zeros(1, device=DEVICE).expand(3)
    resize(tensor)
    assert tensor.stride() == (1,)
    assert tensor.untyped_storage().nbytes() == 12
    assert tensor.copy_(torch.arange(3.0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_resize_accepts_a_memory_format(memory_format: torch.memory_format) -> None:
    shape = (2, 3, 4, 5)
    expected = torch.empty(shape).contiguous(memory_format=memory_format)
    tensor = torch.empty(0, device=DEVICE).resize_(shape, memory_format=memory_format)
    assert tensor.stride() == expected.stride()
    like = torch.empty(0, device=DEVICE).resize_as_(expected, memory_format=torch.preserve_format)
    assert like.stride() == expected.stride()
