"""What may run on the CPU, what did, and how it is reported."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import fallbacks, needs, run_python, sample

pytestmark = needs(torch.float32)

# An operator that no family of the device API covers.
bessel = torch.special.bessel_j0


@pytest.fixture(autouse=True)
def fresh_counts() -> None:
    backend.reset_fallback_stats()


def test_stats_count_each_operator() -> None:
    values = torch.ones(2, device=DEVICE)
    for _ in range(3):
        bessel(values)
    assert fallbacks("special_bessel_j0") == 3
    backend.reset_fallback_stats()
    assert fallbacks("special_bessel_j0") == 0


def test_native_operators_are_not_counted() -> None:
    torch.ones(2, device=DEVICE) + 1
    assert fallbacks("add") == 0


def test_fallback_can_be_made_an_error() -> None:
    result = run_python(
        f"""
        import torch
        value = torch.ones(2, device="{DEVICE}") + 1
        try:
            torch.special.bessel_j0(value)
        except RuntimeError as error:
            print("refused:", error)
        """,
        {f"{ENV_PREFIX}_FALLBACK": "error"},
    )
    assert "refused:" in result.stdout
    assert "special_bessel_j0" in result.stdout


def test_stats_say_what_a_call_cost_and_why() -> None:
    values = sample(50, 4)
    bessel(values.to(DEVICE))
    (record,) = (record for name, record in backend.fallback_stats().items() if "bessel_j0" in name)
    assert record.calls == 1
    assert record.seconds > 0
    assert record.reason == "no kernel"
    if not backend.get_device_properties(0).host_addressable:
        assert record.bytes >= values.nbytes


MANY_DIMENSIONS = (1,) * 20  # more than a kernel takes


def reason(operator: str) -> str:
    (record,) = (record for name, record in backend.fallback_stats().items() if operator in name)
    return str(record.reason)


def test_a_reason_does_not_outlive_its_call() -> None:
    """Operators that have a kernel say so, and those without one do not repeat the last reason."""
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
            assert reason(operator) != "no kernel"
        assert reason("bessel_j0") == "no kernel"


@needs(torch.complex64)
def test_every_reason_is_kept() -> None:
    """And a block tells those of its own calls."""
    given = set()
    for values in (torch.ones(MANY_DIMENSIONS), torch.ones(3, dtype=torch.complex64)):
        with backend.count_fallbacks() as block:
            torch.logcumsumexp(values.to(DEVICE), 0)
        given |= {record.reason for name, record in block.items() if "logcumsumexp" in name}
    if given:
        assert set(reason("_logcumsumexp").split("; ")) == given


def test_work_that_is_queued_is_no_time_on_the_cpu() -> None:
    values = torch.ones(2**22, device=DEVICE)
    bessel(values[:1])
    backend.reset_fallback_stats()
    for _ in range(100):
        values += 1
    if backend.current_stream().query():
        pytest.skip("the device is as fast as its host, or works while the host waits")
    start = time.perf_counter()
    bessel(values[:1])
    elapsed = time.perf_counter() - start
    (record,) = (record for name, record in backend.fallback_stats().items() if "bessel_j0" in name)
    assert record.seconds < elapsed / 2


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


def test_report_ranks_by_time() -> None:
    cheap, costly = (
        backend.Fallback(9, 10, 0.5, "no kernel"),
        backend.Fallback(1, 0, 1.5, "rank 17"),
    )
    text = io.StringIO()
    backend.fallback_report({"aten::cheap": cheap, "aten::costly": costly}, file=text)
    first, second = text.getvalue().splitlines()[2:]
    assert first.split()[:4] == ["aten::costly", "1", "1500.00", "75.0%"]
    assert first.endswith("rank 17")
    assert second.split()[0] == "aten::cheap"
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
        ("error", True),
        ("error,silent:aten::special_bessel*", False),
        ("error,silent:special_bessel_j0", False),
        ("silent,error:aten::special_bessel_j0.out", True),
        ("silent,error:aten::special_bessel_j0.other", False),
        ("silent,error:aten::*_j0", True),
        ("error:*bessel*,silent", False),
        ("silent,error:mine::*", False),
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
def test_what_is_no_policy_is_refused(policy: Callable[[str], str], text: str) -> None:
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
    result = run_python("import torch", {f"{ENV_PREFIX}_FALLBACK": "loud"})
    assert f"{ENV_PREFIX}_FALLBACK" in result.stderr
