"""Outputs of operators, ``out=`` and in place: aliases of inputs, other devices, and operators
without a kernel. The conformance tests cover sizes, dtypes and overlaps of every operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, moved, needs, sample

pytestmark = [needs(torch.float32, torch.int64), pytest.mark.filterwarnings("ignore")]


OVERLAP = "more than one element of the written-to tensor refers to a single memory location"


def place(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def square(seed: int = 0) -> torch.Tensor:
    return sample(3, 3, seed=seed)


class TestResultsOverTheirInputs:
    """Results in the memory of their inputs, where the CPU allows it."""

    def test_bias_in_place(self) -> None:
        bias, left, right = square(), square(1), square(2)
        expected = bias.clone().addmm_(left, right, beta=0.5)
        mine = bias.to(DEVICE)
        assert_same(mine.addmm_(left.to(DEVICE), right.to(DEVICE), beta=0.5), expected)
        row = sample(2, 3)
        mine = row.to(DEVICE)
        out = mine[1]
        torch.addmv(mine[1], left.to(DEVICE), mine[0], out=out)
        assert_same(out, torch.addmv(row[1], left, row[0]))

    @pytest.mark.native
    @pytest.mark.parametrize(
        "call",
        [
            lambda x: torch.mm(x, x, out=x),
            lambda x: torch.addmm(x, x, x, out=x),
            lambda x: torch.softmax(x, 0, out=x),
            lambda x: torch.cumsum(x, 1, out=x),
            lambda x: torch.amax(x, (), out=x[0, 0]),
            lambda x: torch.sum(x, 0, keepdim=True, out=x[1:2]),
            lambda x: torch.sort(x, 0, out=(x, torch.empty_like(x, dtype=torch.int64)))[0],
            lambda x: torch.max(x, 0, out=(x[2], torch.empty_like(x[0], dtype=torch.int64)))[0],
        ],
    )
    def test_read_before_written(self, call: Callable[[torch.Tensor], torch.Tensor]) -> None:
        actual = call(square().to(DEVICE))

        class Apart(torch.overrides.TorchFunctionMode):
            """Drops out=, so that the results do not share memory with the inputs."""

            def __torch_function__(
                self, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return function(*args, **{k: v for k, v in (kwargs or {}).items() if k != "out"})

        with Apart():
            expected = call(square())
        assert_same(actual, expected)


INTO: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "logsumexp": lambda x, out: torch.logsumexp(x, 0, out=out),
    "std": lambda x, out: torch.std(x, 0, out=out),
    "fft": lambda x, out: torch.fft.fftn(x, out=out.to(torch.complex64)),
    "ldexp": lambda x, out: torch.ldexp(x, x, out=out),
    "i0, which has no kernel": lambda x, out: torch.i0(x, out=out),
}


@needs(torch.float32, torch.complex64)
@pytest.mark.parametrize("shape", [(3,), ()])
@pytest.mark.parametrize("name", INTO)
def test_out_on_the_cpu(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        INTO[name](torch.ones(shape, device=DEVICE), torch.ones(shape))


MIXED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "addmm": (torch.addmm, (square(), square(1), square(2))),
    "baddbmm": (torch.baddbmm, (sample(2, 3, 3), sample(2, 3, 4), sample(2, 4, 3))),
    "bmm": (torch.bmm, (sample(2, 3, 4), sample(2, 4, 3))),
    "gather": (torch.gather, (square(), 0, place(0, 2, 1).expand(3, 3))),
    "index_add": (torch.index_add, (square(), 0, place(1, 1), sample(2, 3))),
    "mm": (torch.mm, (square(), square(1))),
}


@pytest.mark.parametrize("name", MIXED)
def test_arguments_on_another_device(name: str) -> None:
    function, arguments = MIXED[name]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        function(*moved(arguments[:-1]), arguments[-1])


REFUSED: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "index": lambda x, i: torch.ops.aten.index.Tensor_out(x, [i], out=x),
    "index_select": lambda x, i: torch.index_select(x, 0, i, out=x),
    "kthvalue": lambda x, i: torch.kthvalue(x, 1, 0, out=(x, i)),
    "take": lambda x, i: torch.take(x, i, out=x),
}


@pytest.mark.native
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_output_keeps_its_size(name: str) -> None:
    x = square().to(DEVICE)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        REFUSED[name](x, place(0, 1).to(DEVICE).long())
    assert x.shape == (3, 3)


def test_expanded_outputs_of_operators_without_a_kernel() -> None:
    one = torch.zeros(1, device=DEVICE)
    with pytest.raises(RuntimeError, match=OVERLAP):
        torch.logspace(0, 1, 3, out=one.expand(3))
    assert one.item() == 0
    one.expand(3).masked_fill_(torch.tensor([True, False, True], device=DEVICE), 2.0)
    assert one.item() == 2
