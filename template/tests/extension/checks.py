"""Checks of an operator that was built outside of the tree. They run in another process, with the
operator's package and this backend's tests on the path.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import torch
from backend import DEVICE, PACKAGE, backend
from gated import silu_mul
from support import has_function

FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES


def expected(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the CPU's result, without the operator."""
    return torch.nn.functional.silu(gate.cpu()) * value.cpu()


def inputs(*shape: int, gradients: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    gate, value = (torch.randn(shape, generator=generator).to(DEVICE) for _ in range(2))
    return gate.requires_grad_(gradients), value.requires_grad_(gradients)


def forward() -> None:
    with torch.autograd.profiler.profile() as profiled:
        silu_mul(*inputs(2))
    # The operator's own kernel if the host can address the memory, else the device's kernels.
    seen = {event.name for event in profiled.function_events}
    assert ("aten::silu" in seen) is not backend.get_device_properties().host_addressable
    for gate, value in (inputs(4, 5), tuple(t.T[1:] for t in inputs(4, 5)), inputs(0, 3)):
        result = silu_mul(gate, value)
        assert result.device.type == DEVICE
        torch.testing.assert_close(result.cpu(), expected(gate, value))
        torch.testing.assert_close(silu_mul(gate.cpu(), value.cpu()), expected(gate, value))


def order_of_streams() -> None:
    """The kernel runs after earlier work of its stream, and before later work."""
    gate, value = inputs(300, 300)
    with torch.Stream(device=DEVICE) as stream:
        stream.wait_stream(backend.default_stream())
        for _ in range(5):
            gate = gate @ gate / 300
        result = silu_mul(gate, value) + 1
    stream.synchronize()
    torch.testing.assert_close(result.cpu(), expected(gate, value) + 1)


def gradients() -> None:
    gate, value = inputs(4, 5, gradients=True)
    silu_mul(gate, value).sum().backward()
    mine = (gate.grad, value.grad)
    gate, value = (tensor.detach().cpu().requires_grad_() for tensor in (gate, value))
    expected(gate, value).sum().backward()
    for actual, wanted in zip(mine, (gate.grad, value.grad), strict=True):
        assert actual is not None and wanted is not None
        torch.testing.assert_close(actual.cpu(), wanted)


def mistakes() -> None:
    gate, value = inputs(4, 5)
    try:
        silu_mul(gate, value[:2])
    except RuntimeError as error:
        assert "one shape and dtype" in str(error)
    else:
        raise AssertionError("shapes that differ were taken")


def compiled() -> None:
    gate, value = inputs(4, 5, gradients=True)

    def layer(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return silu_mul(gate * 2, value) + 1

    wanted = layer(gate, value)
    slopes = torch.autograd.grad(wanted.sum(), (gate, value))
    for compiler in ("aot_eager", "inductor") if FEATURES["compile"].enabled else ("aot_eager",):
        result = torch.compile(layer, backend=compiler, fullgraph=True)(gate, value)
        torch.testing.assert_close(result, wanted)
        torch.testing.assert_close(torch.autograd.grad(result.sum(), (gate, value)), slopes)
        torch.compiler.reset()


def captured() -> str | None:
    """A replay could not call a function of the host, so a capture refuses it and ends."""
    if not FEATURES["graphs"].enabled:
        return "generated without graphs"
    if not has_function("graphs", "begin_capture"):
        return "the device captures no graphs"
    if not backend.get_device_properties().host_addressable:
        return "the operator launches no function of the host on this device"
    gate, value = inputs(4, 5)
    silu_mul(gate, value)
    try:
        with backend.graph(backend.Graph()):
            silu_mul(gate, value)
    except RuntimeError as error:
        assert "launches a function on the host" in str(error), error
    else:
        raise AssertionError("the capture was not refused")
    torch.testing.assert_close(silu_mul(gate, value).cpu(), expected(gate, value))
    return None


def opcheck() -> None:
    """Without PyTorch's test of the autograd key, which supports only its own devices."""
    torch.library.opcheck(
        torch.ops.gated.silu_mul.default,
        inputs(4, 5, gradients=True),
        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"),
    )


CHECKS: dict[str, Callable[[], str | None]] = {
    check.__name__: check
    for check in (forward, order_of_streams, gradients, mistakes, compiled, captured, opcheck)
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {CHECKS[name]() or 'ok'}")
