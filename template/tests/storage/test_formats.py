"""Tensors in a layout that the device supports: reads, writes, files and graphs.

The CPU is the reference.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import has_function, needs, needs_two_devices, sample, save_and_load
from torch.nn import functional

pytestmark = [
    needs(torch.float32),
    pytest.mark.skipif(
        not has_function("layouts", "preferred_layout"), reason="the device has no layouts"
    ),
]
PLAIN = backend.StorageLayout()
SIZES = (65, 70)


def preferred(*sizes: int) -> Any:
    """Return the layout that the device prefers for such a weight; skip if it is the plain one."""
    format_, numbers = backend._C.preferred_layout(torch.empty(*sizes, device=DEVICE), False)
    if format_ == 0:
        pytest.skip("the device prefers the plain layout for weights")
    return format_, numbers


def packed(plain: torch.Tensor) -> torch.Tensor:
    format_, numbers = preferred(*SIZES)
    result: torch.Tensor = backend.to_format(plain.to(DEVICE), format_, *numbers)
    return result


@pytest.fixture
def plain() -> torch.Tensor:
    return sample(*SIZES)


@pytest.fixture
def tensor(plain: torch.Tensor) -> torch.Tensor:
    return packed(plain)


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-4)


def is_packed(tensor: torch.Tensor) -> bool:
    return bool(backend.storage_layout(tensor) != PLAIN)


# --- Making one ---


def test_to_format_converts_to_a_layout_and_back(plain: torch.Tensor, tensor: torch.Tensor) -> None:
    assert is_packed(tensor)
    assert tensor.shape == plain.shape and tensor.is_contiguous()
    assert tensor.untyped_storage().nbytes() >= tensor.nbytes
    back = backend.to_format(tensor, 0)
    assert backend.storage_layout(back) == PLAIN
    assert torch.equal(back.cpu(), plain)


def test_storage_layout_returns_the_format_and_the_numbers(tensor: torch.Tensor) -> None:
    format_, numbers = preferred(*SIZES)
    layout = backend.storage_layout(tensor)
    assert layout.format == format_
    assert list(layout.numbers) == numbers[: len(layout.numbers)]
    assert not any(numbers[len(layout.numbers) :])
    again = backend.to_format(tensor, layout.format, *layout.numbers)
    assert backend.storage_layout(again) == layout


def test_to_format_accepts_any_strides(plain: torch.Tensor) -> None:
    for of_host in (plain.t(), plain[::2, 1:], plain[:1].expand(65, 70), plain.t().conj()):
        of_device = of_host.to(DEVICE)
        layout = backend.storage_layout(packed(plain))
        made = backend.to_format(of_device, layout.format, *layout.numbers)
        assert torch.equal(made.cpu(), of_host.contiguous())


def test_unsupported_formats_are_refused(plain: torch.Tensor) -> None:
    on_device = plain.to(DEVICE)
    layout = backend.storage_layout(packed(plain))
    for format_, numbers in ((1 << 40, ()), (layout.format, (1, 2, 3, 4, 5)), (0, (1,))):
        with pytest.raises(ValueError, match="has no layout of format"):
            backend.to_format(on_device, format_, *numbers)
    for unfit in (torch.empty(0, 4, device=DEVICE), torch.ones((), device=DEVICE)):
        with pytest.raises(ValueError, match="has no layout of format"):
            backend.to_format(unfit, layout.format, *layout.numbers)
    with pytest.raises(ValueError, match="expected a tensor or storage on"):
        backend.to_format(plain, layout.format, *layout.numbers)


def test_to_format_does_not_support_autograd(plain: torch.Tensor) -> None:
    leaf = plain.to(DEVICE).requires_grad_()
    with pytest.raises(RuntimeError, match="does not support autograd"):
        packed(leaf)
    with torch.no_grad():
        assert not packed(leaf).requires_grad


# --- Reading ---

READS: dict[str, Callable[[torch.Tensor], Any]] = {
    "cpu": lambda x: x.cpu(),
    "tolist": lambda x: x.tolist(),
    "number": lambda x: x[3, 5].item(),
    "printing": repr,
    "addition": lambda x: x + 1,
    "product with itself": lambda x: x * x,
    "clone": torch.clone,
    "comparison": lambda x: x == x.clone(),
    "equal": lambda x: torch.equal(x, x.clone()),
    "another type": lambda x: x.to(torch.int64),
    "sum": lambda x: x.sum(1),
    "index": lambda x: x[torch.tensor([1, 64], device=x.device)],
    "softmax": lambda x: x.softmax(-1),
    "layer norm": lambda x: functional.layer_norm(x, (70,)),
    "embedding": lambda x: functional.embedding(torch.tensor([[2, 64]], device=x.device), x),
    "cat": lambda x: torch.cat([x, x]),
    "on the CPU": torch.special.bessel_j0,
    "a list of tensors": lambda x: torch._foreach_add([torch.ones_like(x), x], 1),
    "slice": lambda x: x[::3, 2:].cpu(),
    "transpose": lambda x: (x.t() + 1).cpu(),
    "select and expand": lambda x: x[64].expand(3, 70).contiguous(),
    "flat view": lambda x: x.view(-1).flip(0),
    "view of another dtype": lambda x: x.view(torch.int32) + 1,
    "unfold": lambda x: x.unfold(1, 4, 2).sum(-1),
    "sort": lambda x: x.sort().values,
    "lazy copies": torch._lazy_clone,
    "pinned": lambda x: torch.empty(SIZES, pin_memory=x.device.type == DEVICE).copy_(x),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reads_of_a_packed_tensor_equal_those_of_a_plain_tensor(
    read: Callable[[torch.Tensor], Any], plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    layout, before = backend.storage_layout(tensor), tensor.untyped_storage().tolist()
    actual, expected = read(tensor), read(plain)
    if isinstance(actual, str):
        # Line breaks depend on the text after the elements.
        assert "".join(actual.split()).replace(f",device='{DEVICE}:0'", "") == "".join(
            expected.split()
        )
    elif isinstance(actual, torch.Tensor):
        assert_same(actual, expected)
    elif isinstance(actual, (list, tuple)) and isinstance(actual[0], torch.Tensor):
        assert_same(torch.stack(list(actual)), torch.stack(list(expected)))
    else:
        assert actual == expected
    assert backend.storage_layout(tensor) == layout
    assert tensor.untyped_storage().tolist() == before


def test_results_of_operators_are_plain(tensor: torch.Tensor) -> None:
    for result in (tensor + 1, tensor.clone(), torch.empty_like(tensor), tensor.contiguous() * 1):
        assert backend.storage_layout(result) == PLAIN


def test_in_place_views_of_a_packed_tensor(plain: torch.Tensor, tensor: torch.Tensor) -> None:
    tensor.t_()
    assert torch.equal(tensor.cpu(), plain.t())
    tensor.resize_(3, 4)
    assert torch.equal(tensor.cpu(), plain.view(-1)[:12].view(3, 4))
    tensor.resize_(100, 100)
    with pytest.raises(RuntimeError, match="reaches beyond the array"):
        tensor.cpu()


@pytest.mark.parametrize("size", [0, 8])
def test_a_storage_that_is_too_small_is_not_read(tensor: torch.Tensor, size: int) -> None:
    tensor.untyped_storage().resize_(size)
    ones = torch.ones(SIZES[1], 2, device=DEVICE)
    for read in (tensor.cpu, lambda: tensor + 1, lambda: tensor @ ones):
        with pytest.raises(
            RuntimeError, match=r"too small for its layout|out of bounds for storage"
        ):
            read()


@needs_two_devices
def test_a_packed_tensor_can_be_copied_to_another_device(
    plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    assert torch.equal(tensor.to(f"{DEVICE}:1").cpu(), plain)


def test_threads_and_streams_can_read_a_packed_tensor_concurrently(
    plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    wrong: list[int] = []

    def read(number: int) -> None:
        with backend.stream(backend.Stream()):
            for _ in range(20):
                result = (tensor * number + tensor.t()[:1, :1]).cpu()
                if not torch.equal(result, plain * number + plain[:1, :1]):
                    wrong.append(number)

    torch.accelerator.synchronize()
    threads = [threading.Thread(target=read, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- Products ---


@pytest.mark.parametrize("shape", [(70,), (3, 70), (2, 5, 70)], ids=str)
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_with_a_packed_weight(
    shape: tuple[int, ...], with_bias: bool, plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    x = sample(*shape)
    bias = sample(65) if with_bias else None
    actual = functional.linear(x.to(DEVICE), tensor, None if bias is None else bias.to(DEVICE))
    assert_same(actual, functional.linear(x, plain, bias))


def test_products_make_no_plain_copy(plain: torch.Tensor, tensor: torch.Tensor) -> None:
    left, right = sample(3, 65), sample(3, 70)
    mine = [value.to(DEVICE) for value in (left, right)]
    outs = torch.empty(3, 70, device=DEVICE), torch.empty(3, 65, device=DEVICE)
    backend.reset_peak_memory_stats()
    before = backend.memory_allocated()
    torch.mm(mine[0], tensor, out=outs[0])
    torch.mm(mine[1], tensor.t(), out=outs[1])
    assert backend.max_memory_allocated() < before + tensor.nbytes
    assert_same(outs[0], left @ plain)
    assert_same(outs[1], right @ plain.t())


def test_products_with_a_packed_matrix(plain: torch.Tensor, tensor: torch.Tensor) -> None:
    left, right = sample(3, 65), sample(3, 70)
    added = sample(3, 70)
    mine = [value.to(DEVICE) for value in (left, right, added)]
    assert_same(mine[0] @ tensor, left @ plain)
    assert_same(mine[1] @ tensor.t(), right @ plain.t())
    expected = torch.addmm(added, left, plain, beta=0.5, alpha=2)
    assert_same(torch.addmm(mine[2], mine[0], tensor, beta=0.5, alpha=2), expected)
    assert_same(tensor @ tensor.t(), plain @ plain.t())
    assert_same(tensor @ mine[1].t(), plain @ right.t())
    assert_same(mine[0][:, 1:] @ tensor[1:], left[:, 1:] @ plain[1:])
    assert_same(tensor.mv(mine[1][0]), plain.mv(right[0]))
    batches = torch.bmm(mine[0].expand(2, 3, 65), tensor.expand(2, 65, 70))
    assert_same(batches, (left @ plain).expand(2, 3, 70))


def test_convolution_with_a_packed_weight(plain: torch.Tensor, tensor: torch.Tensor) -> None:
    image = sample(2, 70, 4, 5)
    weight, mine = plain.view(65, 70, 1, 1), tensor.view(65, 70, 1, 1)
    assert_same(functional.conv2d(image.to(DEVICE), mine), functional.conv2d(image, weight))


def test_gradients_of_linear_with_a_packed_weight(
    plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    x = sample(3, 70)
    results = []
    for value, weight in ((x, plain), (x.to(DEVICE), tensor)):
        value = value.detach().requires_grad_()
        weight = weight.detach().requires_grad_()
        functional.linear(value, weight).square().sum().backward()
        results.append((value.grad, weight.grad))
    for expected, actual in zip(*results, strict=True):
        assert expected is not None and actual is not None
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-3, atol=1e-3)
        assert backend.storage_layout(actual) == PLAIN


# --- Writing ---

WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "in place": lambda x: x.add_(1),
    "fill": lambda x: x.fill_(1),
    "zero": lambda x: x.zero_(),
    "random": lambda x: x.normal_(),
    "out": lambda x: torch.add(torch.ones_like(x), 1, out=x),
    "out of a product": lambda x: torch.mm(x.new_ones(65, 2), x.new_ones(2, 70), out=x),
    "a part": lambda x: x[0].copy_(torch.ones(70, device=x.device)),
    "an element": lambda x: x.__setitem__((0, 0), 1),
    "the transpose": lambda x: x.t().copy_(torch.ones(70, 65, device=x.device)),
    "on the CPU": lambda x: torch.special.bessel_j0(torch.ones_like(x), out=x),
    "a list": lambda x: torch._foreach_add_([x], 1),
    "scatter": lambda x: x.index_add_(0, torch.tensor([0], device=x.device), x.new_ones(1, 70)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_to_a_packed_tensor_are_refused(
    write: Callable[[torch.Tensor], Any], plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    with pytest.raises(RuntimeError, match=r"has a private layout.* plain copy, such as clone\(\)"):
        write(tensor)
    assert torch.equal(tensor.cpu(), plain)
    assert is_packed(tensor)


def test_copy_into_a_whole_packed_tensor_converts(tensor: torch.Tensor) -> None:
    layout = backend.storage_layout(tensor)
    address = tensor.data_ptr()
    other = sample(*SIZES) + 1
    for source in (other, other.to(DEVICE), packed(other), other.double(), other[:1]):
        tensor.copy_(source)
        assert torch.equal(tensor.cpu(), source.cpu().float().expand(SIZES))
        assert (tensor.data_ptr(), backend.storage_layout(tensor)) == (address, layout)


# --- Files and graphs ---


def test_a_loaded_view_of_a_packed_tensor_has_its_values(
    plain: torch.Tensor, tensor: torch.Tensor
) -> None:
    view, whole = save_and_load([tensor[2:5], tensor])
    assert torch.equal(view.cpu(), plain[2:5]) and torch.equal(whole.cpu(), plain)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2:1:6:2:1000,1000,32,32", "too small for its layout|no layout"),
        ("2:1:6:2:4,-4,32,32", "this device has no layout|too small"),
        ("2:1099511627776:6:2:4,4,32,32", "this device has no layout"),
        ("2:1:6:2:4611686018427387904,4,32,32", "this device has no layout"),
        ("2:1:6:3:4,4", "damaged"),
        ("2:1:600:1:4,4", "damaged"),
        ("2:1:6:0:4", "damaged"),
    ],
)
def test_invalid_layouts_in_files_are_refused(text: str, says: str) -> None:
    tensor = torch.ones(4, 4, device=DEVICE)
    with pytest.raises(RuntimeError, match=says):
        torch._utils.set_tensor_metadata(tensor, {f"{DEVICE}.layout.{text}": True})
    assert backend.storage_layout(tensor) == PLAIN


def test_a_graph_replay_reads_the_current_contents_of_a_packed_tensor(tensor: torch.Tensor) -> None:
    if not hasattr(backend, "Graph") or not has_function("graphs", "begin_capture"):
        pytest.skip("there are no graphs")
    x = torch.ones(2, 70, device=DEVICE)
    functional.linear(x, tensor) + tensor.sum()
    graph = backend.Graph()
    with backend.graph(graph):
        y = functional.linear(x, tensor) + tensor.sum()
    other = sample(*SIZES) - 1
    tensor.copy_(other)
    graph.replay()
    expected = functional.linear(torch.ones(2, 70), other) + other.sum()
    torch.testing.assert_close(y.cpu(), expected, rtol=1e-3, atol=1e-2)
