"""Tensors that operators write into, ``out=`` and in place: sizes, overlaps, dtypes and devices
as on the CPU, in kernels and on the CPU's behalf."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from backend import DEVICE
from support import assert_same, needs, needs_two_devices, sample

pytestmark = [needs(torch.float32, torch.int64), pytest.mark.filterwarnings("ignore")]

Tensors = Sequence[torch.Tensor]
OVERLAP = "more than one element of the written-to tensor refers to a single memory location"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Let the CPU write elements that share memory in one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def place(*values: float) -> torch.Tensor:
    """Return indices."""
    return torch.tensor(values, dtype=torch.int64)


def square(seed: int = 0) -> torch.Tensor:
    """Return a matrix of three rows."""
    return sample(3, 3, seed=seed)


# An operator with ``out=``, and its arguments.
WITH_OUT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "addmm": (torch.addmm, (square(), square(1), square(2))),
    "baddbmm": (torch.baddbmm, (sample(2, 3, 3), sample(2, 3, 4), sample(2, 4, 3))),
    "bmm": (torch.bmm, (sample(2, 3, 4), sample(2, 4, 3))),
    "cat": (lambda x, y, out: torch.cat((x, y), out=out), (square(), square(1))),
    "gather": (torch.gather, (square(), 0, place(0, 2, 1).expand(3, 3))),
    "index_add": (torch.index_add, (square(), 0, place(1, 1), sample(2, 3))),
    "index_select": (torch.index_select, (square(), 0, place(0, 2, 1))),
    "mm": (torch.mm, (square(), square(1))),
    "softmax": (torch.softmax, (square(), 1)),
    "tril": (torch.tril, (square(),)),
}

# An in-place operator, and the arguments after ``self``, for a ``self`` of three rows and columns.
IN_PLACE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (torch.Tensor.add_, (square(1),)),
    "addbmm": (torch.Tensor.addbmm_, (sample(2, 3, 4), sample(2, 4, 3))),
    "addcmul": (torch.Tensor.addcmul_, (square(1), square(2))),
    "addmm": (torch.Tensor.addmm_, (square(1), square(2))),
    "clamp": (torch.Tensor.clamp_, (-1, 1)),
    "cumprod": (torch.Tensor.cumprod_, (0,)),
    "cumsum": (torch.Tensor.cumsum_, (0,)),
    "eq": (torch.Tensor.eq_, (square(1),)),
    "erfinv": (torch.Tensor.erfinv_, ()),
    "exp": (torch.Tensor.exp_, ()),
    "fill": (torch.Tensor.fill_, (3,)),
    "igamma": (torch.Tensor.igamma_, (square(1),)),
    "index_add": (torch.Tensor.index_add_, (0, place(0, 0), sample(2, 3))),
    "index_copy": (torch.Tensor.index_copy_, (0, place(0), sample(1, 3))),
    "index_fill": (torch.Tensor.index_fill_, (1, place(0, 2), 7.0)),
    "index_put": (torch.Tensor.index_put_, ((place(0, 0),), torch.tensor(2.0))),
    "lerp": (torch.Tensor.lerp_, (square(1), 0.5)),
    "masked_fill": (torch.Tensor.masked_fill_, (square(1) > 0, 2.0)),
    "masked_scatter": (torch.Tensor.masked_scatter_, (square(1) > 0, square(2))),
    "mul": (torch.Tensor.mul_, (square(1),)),
    "mvlgamma": (torch.Tensor.mvlgamma_, (1,)),
    "put": (torch.Tensor.put_, (place(0, 1), torch.tensor([1.0, 2.0]))),
    "renorm": (torch.Tensor.renorm_, (2, 0, 1.0)),
    "scatter": (torch.Tensor.scatter_, (0, place(0, 0, 0).expand(1, 3), square(1))),
    "scatter_add": (torch.Tensor.scatter_add_, (0, place(0, 0, 0).expand(1, 3), square(1))),
    "tril": (torch.Tensor.tril_, ()),
    "zero": (torch.Tensor.zero_, ()),
}


def moved(value: Any) -> Any:
    """Return the same on the device, with its strides."""
    if isinstance(value, torch.Tensor):
        stored = value.untyped_storage().nbytes() // value.itemsize
        whole = value.as_strided((stored,), (1,), 0).to(DEVICE)
        return whole.as_strided(value.size(), value.stride(), value.storage_offset())
    return type(value)(map(moved, value)) if isinstance(value, (list, tuple)) else value


def outcome(call: Callable[[], Any]) -> tuple[str, list[str]]:
    """Return the error of a call, or nothing, and what it warns of besides fallbacks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except (RuntimeError, IndexError, TypeError) as error:
            text = str(error).partition("\n")[0].replace(f"{DEVICE}:0", "cpu")
            # Some of PyTorch's sentences lack a space, and some name the type of the tensor.
            text = text.replace(f"{DEVICE}Bool", "CPUBool").replace(" ", "")
            return f"{type(error).__name__}: {text.partition(';')[0]}", []
    texts = [str(warning.message) for warning in caught]
    return "", sorted(text[:60] for text in texts if "runs on the CPU" not in text)


def compare_outcomes(written: Tensors, call: Callable[..., Any]) -> None:
    """Compare errors, warnings, and what ``call(written)`` leaves, with the CPU's."""
    here = [moved(tensor) for tensor in written]
    expected = outcome(lambda: call(lambda value: value, written))
    actual = outcome(lambda: call(moved, here))
    assert actual == expected
    if expected[0]:
        return
    for mine, theirs in zip(here, written, strict=True):
        assert_same(mine, theirs, rtol=1e-4, atol=1e-4)
        assert mine.stride() == theirs.stride()


@pytest.mark.parametrize("name", IN_PLACE)
class TestInPlace:
    def compare(self, name: str, values: torch.Tensor) -> None:
        function, arguments = IN_PLACE[name]
        compare_outcomes(
            [values], lambda move, written: function(written[0], *move(list(arguments)))
        )

    def test_keeps_its_sizes(self, name: str) -> None:
        self.compare(name, sample(1, 3, low=0.1, high=0.9))
        self.compare(name, sample(3, low=0.1, high=0.9))

    def test_with_gaps(self, name: str) -> None:
        self.compare(name, sample(3, 3, 2, low=0.1, high=0.9)[..., 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.zeros(1, 3, device=d).addmm_(
            torch.ones(2, 2, device=d), torch.ones(2, 3, device=d)
        ),
        lambda d: torch.zeros(1, 3, 3, device=d).baddbmm_(
            torch.ones(2, 3, 4, device=d), torch.ones(2, 4, 3, device=d)
        ),
        lambda d: torch.zeros(1, device=d).addmv_(
            torch.ones(2, 2, device=d), torch.ones(2, device=d)
        ),
        lambda d: torch.zeros(3, device=d).add_(torch.ones(2, 3, device=d)),
        lambda d: torch.zeros(3, device=d).lerp_(torch.ones(2, 3, device=d), 0.5),
        lambda d: torch.zeros(3, dtype=torch.int64, device=d).cumsum_(0, dtype=torch.float32),
        lambda d: torch.zeros(3, dtype=torch.int64, device=d).exp_(),
    ],
)
def test_an_operator_in_place_keeps_sizes_and_dtype(call: Callable[[str], Any]) -> None:
    expected, actual = outcome(lambda: call("cpu")), outcome(lambda: call(DEVICE))
    assert expected[0]
    assert actual == expected


class TestResultsOverTheirInputs:
    """Where the CPU allows it, a result may take the place of what it is computed from."""

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
            """Leaves out=, so that the results are in other memory than the inputs."""

            def __torch_function__(
                self, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return function(*args, **{k: v for k, v in (kwargs or {}).items() if k != "out"})

        with Apart():
            expected = call(square())
        assert_same(actual, expected)


@needs_two_devices
@pytest.mark.parametrize("name", ["addmm", "cat", "gather", "index_select", "softmax", "tril"])
def test_out_on_another_device(name: str) -> None:
    function, arguments = WITH_OUT[name]
    with pytest.raises(RuntimeError, match="on the same device"):
        function(*moved(arguments), out=torch.empty(0, device=f"{DEVICE}:1"))


INTO: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
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


@pytest.mark.parametrize("name", ["addmm", "baddbmm", "bmm", "gather", "index_add", "mm"])
def test_arguments_on_another_device(name: str) -> None:
    function, arguments = WITH_OUT[name]
    mixed = [
        argument.to(DEVICE) if isinstance(argument, torch.Tensor) else argument
        for argument in arguments
    ]
    mixed[-1] = arguments[-1]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        function(*mixed)


def test_expanded_outputs_of_operators_without_a_kernel() -> None:
    one = torch.zeros(1, device=DEVICE)
    with pytest.raises(RuntimeError, match=OVERLAP):
        torch.logspace(0, 1, 3, out=one.expand(3))
    assert one.item() == 0
    one.expand(3).masked_fill_(torch.tensor([True, False, True], device=DEVICE), 2.0)
    assert one.item() == 2
