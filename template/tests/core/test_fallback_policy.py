"""The fallback policy, the fallback stats, and their report."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import fallbacks, names, needs, run_python, sample

pytestmark = needs(torch.float32)

# An operator that no family of the device API covers.
bessel = torch.special.bessel_j0


def test_stats_have_the_time_bytes_and_reason() -> None:
    values = sample(50, 4)
    bessel(values.to(DEVICE))
    record = record_of("bessel_j0")
    assert record.calls == 1
    assert record.seconds > 0
    assert record.reason == "no kernel"
    if not backend.get_device_properties(0).host_addressable:
        assert record.bytes >= values.nbytes


MANY_DIMENSIONS = (1,) * 20  # more than a kernel takes


def record_of(operator: str) -> Any:
    (record,) = (record for name, record in backend.fallback_stats().items() if operator in name)
    return record


def test_a_reason_is_cleared_after_its_call() -> None:
    """Operators without a kernel do not repeat the reason of an earlier operator that has one."""
    values = torch.ones(MANY_DIMENSIONS, device=DEVICE)
    parameter = values.clone().requires_grad_()
    parameter.grad = values
    for call, operator in (
        (lambda: values.clone().uniform_(), "uniform_"),
        (lambda: torch.optim.SGD([parameter], fused=True).step(), "_fused_sgd_"),
    ):
        call()
        bessel(torch.ones(2, device=DEVICE))
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key(
            f"aten::{operator}", "PrivateUse1"
        )
        if has_kernel and fallbacks(operator):
            assert record_of(operator).reason != "no kernel"
        assert record_of("bessel_j0").reason == "no kernel"


def test_unsupported_ranks_have_a_reason() -> None:
    values = torch.ones(MANY_DIMENSIONS, device=DEVICE)
    parameter = values.clone().requires_grad_()
    parameter.grad = values
    values.logcumsumexp(0)
    values.nonzero()
    torch.optim.SGD([parameter], fused=True).step()
    for operator in ("_logcumsumexp", "nonzero", "_fused_sgd_"):
        assert list(record_of(operator).reasons) == ["too many dimensions"]


@needs(torch.complex64)
def test_the_stats_have_every_reason() -> None:
    """A block reports only the reasons of its calls."""
    given = set()
    for values in (torch.ones(MANY_DIMENSIONS), torch.ones(3, dtype=torch.complex64)):
        with backend.count_fallbacks() as block:
            torch.logcumsumexp(values.to(DEVICE), 0)
        given |= {record.reason for name, record in block.items() if "logcumsumexp" in name}
    assert "too many dimensions" in given
    assert set(record_of("_logcumsumexp").reasons) == given


def test_every_reason_is_counted() -> None:
    """Counts are by calls, of all threads."""
    values = torch.ones(2, device=DEVICE)
    many = torch.ones(MANY_DIMENSIONS, device=DEVICE)

    def call() -> None:
        bessel(values)
        torch.logcumsumexp(many, 0)

    call()
    backend.reset_fallback_stats()
    worker = threading.Thread(target=call)
    worker.start()
    worker.join()
    call()
    with backend.count_fallbacks() as block:
        call()
    assert record_of("bessel_j0").reasons == {"no kernel": 3}
    for name, record in backend.fallback_stats().items():
        assert record.calls == 3
        assert set(record.reasons.values()) == {3}
        assert record.reason == "; ".join(record.reasons)
        assert block[name].reasons == dict.fromkeys(record.reasons, 1)


def test_waiting_for_earlier_work_is_counted_separately() -> None:
    values = torch.ones(2**22, device=DEVICE)
    bessel(values[:1])
    backend.reset_fallback_stats()
    for _ in range(100):
        values += 1
    if backend.current_stream().query():
        pytest.skip("the device has already finished its work")
    start = time.perf_counter()
    bessel(values[:1])
    elapsed = time.perf_counter() - start
    record = record_of("bessel_j0")
    assert record.seconds < elapsed / 2
    assert elapsed / 2 < record.waiting <= elapsed
    assert 0 <= record.copying <= record.seconds
    text = io.StringIO()
    backend.fallback_report(file=text)
    assert f"waited {record.waiting * 1e3:.2f} ms" in text.getvalue()


def test_a_nested_call_is_counted_once() -> None:
    large = [torch.ones(2**20, device=DEVICE)]

    def with_another_within(x: torch.Tensor) -> torch.Tensor:
        bessel(*large)
        return x + 1

    with torch.library._scoped_library("fallback_test", "FRAGMENT") as library:
        library.define("nested(Tensor x) -> Tensor")
        library.impl("nested", with_another_within, "CPU")
        bessel(*large)
        backend.reset_fallback_stats()
        start = time.perf_counter()
        torch.ops.fallback_test.nested(torch.ones(2, device=DEVICE))
        elapsed = time.perf_counter() - start
    large.clear()  # PyTorch stores the operator's function, which refers to the tensor.
    outer, inner = record_of("nested"), record_of("bessel_j0")
    assert outer.calls == inner.calls == 1
    times = [outer.seconds, outer.waiting, inner.seconds, inner.waiting]
    assert all(part >= 0 for part in times)
    assert sum(times) <= elapsed
    assert outer.seconds < inner.seconds


def test_count_fallbacks_counts_what_its_block_does() -> None:
    values = torch.ones(2, device=DEVICE)
    bessel(values)
    with backend.count_fallbacks() as outer:
        bessel(values)
        with backend.count_fallbacks() as inner:
            bessel(values)
    assert [record.calls for record in inner.values()] == [1]
    assert [record.calls for record in outer.values()] == [2]
    with backend.count_fallbacks() as nothing:
        values + values
    assert nothing == {}
    with backend.count_fallbacks() as since_reset:
        backend.reset_fallback_stats()
        bessel(values)
    assert [record.calls for record in since_reset.values()] == [1]


def test_report_ranks_by_time() -> None:
    cheap = backend.Fallback(9, 10, 0.5, "no kernel")
    costly = backend.Fallback(
        3, 0, 1.5, "rank 17; no doubles", {"rank 17": 2, "no doubles": 1}, 0.25, 4.0
    )
    text = io.StringIO()
    backend.fallback_report({"aten::cheap": cheap, "aten::costly": costly}, file=text)
    first, more, second, last = text.getvalue().splitlines()[2:]
    assert first.split()[:7] == names("aten::costly 3 1500.00 75.0% 250.00 0.00 4000.00")
    assert first.endswith("rank 17 (2)")
    assert more.split() == ["no", "doubles", "(1)"]
    assert second.split()[0] == "aten::cheap"
    assert second.endswith("no kernel")
    assert "waited 4000.00 ms" in last
    text = io.StringIO()
    backend.fallback_report({}, file=text)
    assert text.getvalue() == "Nothing ran on the CPU.\n"


@pytest.fixture
def policy() -> Iterator[Callable[[str], str]]:
    before = backend.fallback_policy()
    yield backend.set_fallback_policy
    backend.set_fallback_policy(before)


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("silent", False),
        ("error,silent:special_bessel_j0", False),
        ("silent,error:aten::special_bessel_j0.out", True),
        ("silent,error:aten::special_bessel_j0.other", False),
        ("silent,error:aten::*_j0", True),
        ("error:*bessel*,silent", False),
        ("silent,error:mine::*", False),
        ("silent,error:" + "*e" * 30, False),  # not in exponential time
    ],
)
def test_policy_of_one_operator(policy: Callable[[str], str], text: str, forbidden: bool) -> None:
    policy(text)
    assert backend.fallback_policy() == text
    values = torch.ones(2, device=DEVICE)
    if forbidden:
        with pytest.raises(NotImplementedError, match="special_bessel_j0"):
            bessel(values)
        assert fallbacks("bessel") == 0
    else:
        bessel(values)


@pytest.mark.parametrize("text", ["eror", "warn:", "warn,loud:aten::sort"])
def test_a_wrong_policy_is_refused(policy: Callable[[str], str], text: str) -> None:
    before = backend.fallback_policy()
    with pytest.raises(ValueError, match="policy"):
        policy(text)
    assert backend.fallback_policy() == before


def test_warning_comes_once_per_operator() -> None:
    result = run_python(
        f"""
        import torch
        value = torch.ones(2, device="{DEVICE}")
        for _ in range(3):
            torch.special.bessel_j0(value)
            torch.special.bessel_j1(value)
        """,
        {f"{ENV_PREFIX}_FALLBACK": "warn"},
    )
    assert result.stderr.count("special_bessel_j0.out runs on the CPU") == 1
    assert result.stderr.count("special_bessel_j1.out runs on the CPU") == 1
    result = run_python(
        f"import torch; torch.special.bessel_j0(torch.ones(2, device='{DEVICE}'))",
        {f"{ENV_PREFIX}_FALLBACK": "silent"},
    )
    assert "bessel" not in result.stderr
