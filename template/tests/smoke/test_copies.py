"""Copies between host and device, files, pickles and pinned memory."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from smoke.helpers import layouts
from support import assert_same, moved, needs_two_devices, sample


@pytest.mark.parametrize("target", ["contiguous", "transposed", "strided", "offset"])
@pytest.mark.parametrize("source", ["contiguous", "transposed", "strided", "offset", "expanded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_copies_between_all_layouts(source: str, target: str, dtype: torch.dtype) -> None:
    values = layouts(5, 4)[source]
    expected = layouts(5, 4, dtype=dtype)[target].clone().copy_(values)
    for origin in (values, moved(values)):
        there = moved(layouts(5, 4, dtype=dtype)[target])
        assert_same(there.copy_(origin), expected)
    back = layouts(5, 4, dtype=dtype)[target].clone()
    assert torch.equal(back.copy_(moved(values)), expected)


@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
@pytest.mark.parametrize("pinned", [False, True])
def test_non_blocking_copies(size: int, pinned: bool) -> None:
    source = sample(size)
    expected = source.clone()
    if pinned:
        source = source.pin_memory()
        assert source.is_pinned()
    there = source.to(DEVICE, non_blocking=True)
    if not pinned:
        source.zero_()  # its values are copied already
    doubled = there + there
    back = torch.empty(size, pin_memory=pinned)
    back.copy_(doubled, non_blocking=True)
    backend.synchronize()
    assert torch.equal(back, expected + expected)


def test_pinned_memory_is_kept_until_its_copies_have_run() -> None:
    targets = []
    for value in range(20):
        source = torch.full((1 << 16,), float(value)).pin_memory()
        targets.append(source.to(DEVICE, non_blocking=True))
        del source
    for value, target in enumerate(targets):
        assert (target.cpu() == value).all()


def test_only_host_memory_can_be_pinned() -> None:
    assert torch.empty(4, pin_memory=True)[1:].is_pinned()
    assert not torch.empty(4).is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        torch.empty(4, device=DEVICE).pin_memory()


@pytest.mark.skipif(
    torch.complex64 not in backend.supported_dtypes(), reason="generated without complex64"
)
def test_conjugates_and_negatives_are_resolved() -> None:
    values = torch.complex(sample(3, 4), sample(3, 4, seed=1))
    there = values.to(DEVICE)
    assert there.conj().is_conj()
    assert_same(there.conj().clone(), values.conj().resolve_conj())
    assert torch.equal(there.conj().cpu().resolve_conj(), values.conj().resolve_conj())
    assert_same(there.conj().imag.clone(), values.conj().imag.resolve_neg())
    target = torch.empty_like(there)
    target.conj().copy_(values)
    assert_same(target, values.conj().resolve_conj())


@needs_two_devices
def test_copies_between_devices() -> None:
    first = sample(300, 7).to(f"{DEVICE}:0")
    second = (first + 1).to(f"{DEVICE}:1")
    assert second.get_device() == 1
    assert_same(second.t().to(f"{DEVICE}:0"), (sample(300, 7) + 1).t())


def test_deepcopy_copies_memory_and_preserves_sharing() -> None:
    base = sample(4).to(DEVICE)
    first, view = copy.deepcopy((base, base[1:]))
    base.zero_()
    assert_same(first, sample(4))
    first.fill_(2)
    assert_same(view, torch.full((3,), 2.0))
    parameter = copy.deepcopy(torch.nn.Parameter(base))
    assert isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad


@pytest.mark.parametrize("dtype", backend.supported_dtypes(), ids=str)
def test_pickle_and_files_keep_device_and_values(dtype: torch.dtype) -> None:
    values = sample(3, 4).to(dtype)
    there = values.to(DEVICE)
    if dtype in torch.storage._dtype_to_storage_type_map():  # PyTorch pickles no others
        assert_same(pickle.loads(pickle.dumps(there)), values)
    file = io.BytesIO()
    torch.save({"base": there, "view": there[1:]}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    assert_same(loaded["base"], values)
    assert_same(loaded["view"], values[1:])
    loaded["base"].zero_()
    assert_same(loaded["view"], torch.zeros_like(values[1:]))


@pytest.mark.parametrize("location", ["cpu", torch.device("cpu"), {f"{DEVICE}:0": "cpu"}])
def test_files_can_be_read_without_the_device(location: Any, tmp_path: Path) -> None:
    torch.save(sample(3).to(DEVICE), tmp_path / "file")
    assert torch.equal(torch.load(tmp_path / "file", map_location=location), sample(3))
    torch.save(sample(3), tmp_path / "file")
    assert_same(torch.load(tmp_path / "file", map_location=DEVICE), sample(3))


def test_the_state_of_a_module_and_an_optimizer_is_restored() -> None:
    def make() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        module = torch.nn.Linear(3, 2).to(DEVICE)
        return module, torch.optim.Adam(module.parameters())

    def step(module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        module(sample(4, 3).to(DEVICE)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return next(module.parameters()).detach().cpu()

    module, optimizer = make()
    step(module, optimizer)
    file = io.BytesIO()
    torch.save((module.state_dict(), optimizer.state_dict()), file)
    file.seek(0)
    again, its_optimizer = make()
    for part, state in zip((again, its_optimizer), torch.load(file), strict=True):
        part.load_state_dict(state)
    assert torch.equal(step(again, its_optimizer), step(module, optimizer))
