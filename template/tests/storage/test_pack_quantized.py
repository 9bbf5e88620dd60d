"""Products with quantized weights in the device's preferred layout."""

from __future__ import annotations

import pytest
import torch
from backend import DEVICE, backend
from support import needs, sample

pytestmark = needs(torch.float32)


def laid_out(weight: torch.Tensor) -> torch.Tensor:
    """Return the weight on the device, in the layout that it prefers for these sizes."""
    plain = torch.empty(*weight.shape, device=DEVICE)
    format_, numbers = backend._C.preferred_layout(plain, False)
    if format_ == 0:
        pytest.skip("the device prefers the plain layout for weights")
    result: torch.Tensor = backend.to_format(weight.to(DEVICE), format_, *numbers)
    return result


@needs(torch.int8)
def test_products_with_quantized_weights_make_no_plain_copy() -> None:
    weight, scales = torch.randint(-127, 127, (65, 70), dtype=torch.int8), sample(65)
    x, tiled = sample(3, 70), laid_out(weight)
    mine = x.to(DEVICE), scales.to(DEVICE)
    torch._weight_int8pack_mm(mine[0], weight.to(DEVICE), mine[1])
    backend.reset_peak_memory_stats()
    before = backend.memory_allocated()
    actual = torch._weight_int8pack_mm(mine[0], tiled, mine[1])
    assert backend.max_memory_allocated() < before + weight.nbytes
    torch.testing.assert_close(
        actual.cpu(), torch._weight_int8pack_mm(x, weight, scales), rtol=1e-4, atol=1e-4
    )


def test_scaled_products_accept_a_private_layout() -> None:
    left, right = (sample(*shape).to(torch.float8_e4m3fn) for shape in ((32, 64), (48, 64)))
    scales = sample(32, 1).abs(), sample(1, 48).abs()
    mine = [value.to(DEVICE) for value in (left, *scales)]
    actual = torch._scaled_mm(mine[0], laid_out(right).t(), *mine[1:], out_dtype=torch.float32)
    torch.testing.assert_close(
        actual.cpu(),
        (left.float() * scales[0]) @ (right.float().t() * scales[1]),
        rtol=1e-4,
        atol=1e-4,
    )
