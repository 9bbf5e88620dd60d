"""Random numbers and automatic mixed precision."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from ..._build import NAME
from ..surfaces import Declined, backend, expect, surface


@surface("module", "_is_in_bad_fork, manual_seed_all")
def torch_seeds() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # without these functions PyTorch only warns
        torch.manual_seed(1)
    first = torch.rand(4, device=NAME)
    torch.manual_seed(1)
    expect(torch.rand(4, device=NAME).tolist(), first.tolist())


@surface("module", "get_rng_state, set_rng_state")
def states_are_kept() -> None:
    with torch.random.fork_rng([0], device_type=NAME):
        first = torch.rand(4, device=f"{NAME}:0")
    expect(torch.rand(4, device=f"{NAME}:0").tolist(), first.tolist())


@surface("module", "get_rng_state, set_rng_state in torch.utils.checkpoint")
def checkpoints_draw_again() -> None:
    leaf = torch.ones(64, device=NAME, requires_grad=True)
    out = checkpoint(torch.nn.functional.dropout, leaf, use_reentrant=False)
    out.sum().backward()
    expect(leaf.grad is not None and leaf.grad.tolist(), out.tolist())


@surface("module", "default_generators, _get_generator", feature="rng")
def module_has_generators() -> None:
    expect(len(backend.default_generators), backend.device_count())
    expect(backend._get_generator(torch.device(NAME, 0)), backend.default_generators[0])


@surface("generator", "set_current_seed, get_state, set_state, clone_impl", feature="rng")
def generators_repeat() -> None:
    generator = torch.Generator(NAME).manual_seed(3)
    state, copy = generator.get_state(), generator.clone_state()
    first = torch.rand(4, device=NAME, generator=generator).tolist()
    generator.set_state(state)
    expect(torch.rand(4, device=NAME, generator=generator).tolist(), first)
    expect(torch.rand(4, device=NAME, generator=copy).tolist(), first)


@surface("generator", "graphsafe_get_state, graphsafe_set_state", feature="rng")
def generators_share() -> None:
    generator = torch.Generator(NAME)
    shared = torch.Generator(NAME).graphsafe_set_state(generator.graphsafe_get_state())
    generator.manual_seed(5)
    expect(shared.initial_seed(), 5)


@surface("autocast", "get_amp_supported_dtype", feature="amp")
def operators_are_cast() -> None:
    if not backend.get_amp_supported_dtype():
        raise Declined("generated without an element type of 16 bits")
    dtype = backend.get_amp_supported_dtype()[0]
    square = torch.ones(2, 2, device=NAME)
    with torch.autocast(NAME, dtype=dtype):
        expect(torch.is_autocast_enabled(NAME))
        expect((square @ square).dtype, dtype)


@surface("autocast", "_amp_update_scale_, _amp_foreach_non_finite_check_and_unscale_")
def gradients_are_scaled() -> None:
    leaf: Any = torch.ones(2, device=NAME, requires_grad=True)
    scaler = torch.amp.GradScaler(NAME)
    optimizer = torch.optim.SGD([leaf], lr=1.0)
    scaler.scale(leaf.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    expect(leaf.tolist(), [0.0, 0.0])
