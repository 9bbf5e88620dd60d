"""A device whose kernels index with few bits: the backend divides larger tensors."""

from __future__ import annotations

import re

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from support import is_simulator, needs, run_python

pytestmark = [
    needs(torch.float32, torch.float64),
    pytest.mark.skipif(not is_simulator(), reason="the simulator's setting"),
]

# 1,024 elements. The layer `validate` checks that no launch has more.
LIMITED = {
    f"{ENV_PREFIX}_SIMULATOR_INDEX_BITS": "10",
    f"{ENV_PREFIX}_DEVICE_LAYERS": "validate",
    f"{ENV_PREFIX}_FALLBACK": "silent",
}

CHECK = f"""
import torch
import torch.nn.functional as F
backend = torch.{DEVICE}
assert backend.get_device_properties(0).max_index_bits == 10

def sample(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype)

def compare(name, function, *inputs, native=True):
    on_cpu = [x.clone() for x in inputs]
    on_device = []
    for x in inputs:
        held = torch.empty_like(x, device="{DEVICE}") if x.is_contiguous() else None
        on_device.append(x.to("{DEVICE}") if held is None else held.copy_(x))
    backend.reset_fallback_stats()
    got, expected = function(*on_device), function(*on_cpu)
    fell_back = [op for op, stats in backend.fallback_stats().items() if stats]
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, expected))):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4, msg=lambda m: name + m)
    for one, other in zip(on_device, on_cpu):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-4, msg=lambda m: name + m)
    assert not (native and fell_back), (name, fell_back)
"""

ELEMENTWISE = """
a, b = sample(70, 90), sample(70, 90)
compare("add", lambda x, y: x + y, a, b)
compare("broadcast", lambda x, y: x[:, None] * y, a, b)
compare("in place", lambda x, y: x.mul_(y).add_(1), a, b)
compare("transposed", lambda x, y: x.T + y.T.contiguous(), a, b)
compare("stepped", lambda x, y: x[::2, ::3] / y[::2, ::3].exp(), a, b)
compare("row", lambda x, y: x + y[0], a, b)
compare("out", lambda x, y: torch.add(x, y, out=torch.empty_like(x)), a, b)
compare("where", lambda x, y: torch.where(x > 0, x, y), a, b)
compare("compare", lambda x, y: x > y, a, b)
compare("to", lambda x: x.to(torch.float64), a)
compare("to a view", lambda x, y: x[:, 3:50].copy_(y[:, 2:49]), a, b)
compare("fill", lambda x: x.fill_(3), a)
compare("fill a view", lambda x: x[1::2].zero_(), a)
compare("tril", lambda x: x.tril(3), a)
compare("triu", lambda x: x.triu(-2), a)
compare("cat", lambda x, y: torch.cat([x, y], 1), a, b)
compare("stack", lambda x, y: torch.stack([x, y], 2), a, b)
compare("flip", lambda x: x.flip(0), a, native=False)
compare("arange", lambda x: torch.arange(5000, device=x.device) + x.sum().long() * 0, a)
compare("linspace", lambda x: torch.linspace(0, 1, 5000, device=x.device), a)
compare("gelu", lambda x: F.gelu(x), a)
compare("foreach", lambda x, y: torch._foreach_add([x, y], 2.0)[1], a, b)
compare("to the host", lambda x: x.cpu()[::2].contiguous(), a)
big = sample(3_000_00)
compare("one long", lambda x: (x * 2).view(-1, 3)[:, 1].contiguous(), big)
"""

SUMS = """
a = sample(70, 90)
for dims in (None, (0,), (1,), (0, 1)):
    compare(f"sum {dims}", lambda x: x.sum(dims) if dims else x.sum(), a)
    compare(f"mean {dims}", lambda x: x.mean(dims) if dims else x.mean(), a)
    compare(f"amax {dims}", lambda x: x.amax(dims or (0, 1)), a)
    compare(f"norm {dims}", lambda x: torch.linalg.vector_norm(x, dim=dims), a)
    compare(f"logsumexp {dims}", lambda x: x.logsumexp(dims or (0, 1)), a)
    compare(f"var {dims}", lambda x: x.var(dims), a, native=False)
compare("long row", lambda x: x.reshape(-1).sum(), a)
compare("sum of integers", lambda x: (x * 100).int().sum(), a)
compare("all", lambda x: ((x < 100).all(), (x > 1).any()), a)
compare("half", lambda x: torch.ones(5000, dtype=torch.float16, device=x.device).sum(), a)
compare("max", lambda x: tuple(x.max(1)), a)
compare("argmax of all", lambda x: x.argmax(), a, native=False)
compare("sort", lambda x: tuple(x.sort(1)), a)
compare("topk", lambda x: tuple(x.topk(5, 1)), a)
compare("cumsum", lambda x: x.cumsum(1), a)
compare("cumsum of a long row", lambda x: x.reshape(-1).cumsum(0), a, native=False)
compare("softmax", lambda x: x.softmax(1), a)
compare("log_softmax", lambda x: x.log_softmax(1), a)
# A single column exceeds the limit.
compare("softmax of columns", lambda x: x.softmax(0), a, native=False)
compare("nonzero", lambda x: (x > 0).nonzero(), a, native=False)
compare("masked_select", lambda x: x[x > 0], a, native=False)
"""

NETWORKS = """
a, b = sample(70, 30), sample(40, 30)
compare("linear", lambda x, w: F.linear(x, w), a, b)
compare("mm", lambda x, w: x @ w.T, a, b)
compare("bmm", lambda x: x @ x.transpose(1, 2), sample(9, 20, 30))
compare("gather", lambda x: x.gather(1, x.argsort(1)), a)
compare("index", lambda x: x[torch.tensor([3, 1, 4, 1, 5] * 20, device=x.device)], a, native=False)
compare("index_add", lambda x, y: x.index_add_(0, torch.arange(40, device=x.device), y), a, b, native=False)
compare("embedding", lambda x: F.embedding(torch.arange(30, device=x.device) % 7, x[:30]), a)
images = sample(3, 5, 12, 12)
weight = sample(6, 5, 3, 3)
compare("conv", lambda x, w: F.conv2d(x, w, padding=1), images, weight)
compare("pool", lambda x: F.max_pool2d(x, 2), images)
compare("layer_norm", lambda x: F.layer_norm(x, (30,)), a)
compare("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), images, native=False)
compare("attention", lambda q: F.scaled_dot_product_attention(q, q, q), sample(6, 4, 12, 10), native=False)

def train(x, w):
    model = torch.nn.Sequential(torch.nn.Linear(30, 50), torch.nn.LayerNorm(50), torch.nn.Tanh(),
                                torch.nn.Linear(50, 3))
    with torch.no_grad():
        for number, p in enumerate(model.parameters()):
            p.copy_(torch.linspace(-1, 1, p.numel()).view(p.shape) * (number % 3 + 1) / 5)
    model.to(x.device)
    steps = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(3):
        F.cross_entropy(model(x), torch.arange(70, device=x.device) % 3).backward()
        steps.step()
        steps.zero_grad()
    return tuple(p.detach() for p in model.parameters())

compare("training", train, a, b, native=False)
"""


@pytest.mark.parametrize("program", ["ELEMENTWISE", "SUMS", "NETWORKS"])
def test_values_equal_the_cpus(program: str) -> None:
    run_python(CHECK + str(globals()[program]), LIMITED)


DRAWS = f"""
import torch
torch.manual_seed(5)
held = torch.zeros(60, 90, device="{DEVICE}")
print(torch.rand(5000, device="{DEVICE}").double().sum().item())
print(torch.randn(50, 77, device="{DEVICE}").double().sum().item())
print(held.T.normal_().double().sum().item(), held[:, 1::2].uniform_().double().sum().item())
print(torch.randint(1000, (3001,), device="{DEVICE}").sum().item())
print(torch.nn.functional.dropout(torch.ones(4000, device="{DEVICE}"), 0.3).sum().item())
print(torch.bernoulli(torch.full((2000,), 0.4, device="{DEVICE}")).sum().item())
print(torch.rand(3000, dtype=torch.float64, device="{DEVICE}").sum().item())
print(torch.rand(3, device="{DEVICE}").tolist())
"""


@pytest.mark.full
def test_random_numbers_do_not_depend_on_the_limit() -> None:
    limited, free = run_python(DRAWS, LIMITED), run_python(DRAWS)
    # Sums of floats are taken in another order.
    assert re.findall(r"[-\d.]+", limited.stdout)[-3:] == re.findall(r"[-\d.]+", free.stdout)[-3:]
    numbers = [[float(x) for x in re.findall(r"[-\d.]+", run.stdout)] for run in (limited, free)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)
