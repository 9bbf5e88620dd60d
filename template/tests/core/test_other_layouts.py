"""Tensors and features of PyTorch that the device may not support: errors of one sentence that say
what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from backend import DEVICE, backend
from support import needs, run_python

pytestmark = needs(torch.float32, torch.int64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).to(DEVICE),
        lambda: torch.empty(2, dtype=torch.qint8, device=DEVICE),
    ],
)
def test_quantized_tensors_are_refused_in_one_sentence(use: Callable[[], Any]) -> None:
    with pytest.raises(NotImplementedError) as raised:
        use()
    message = str(raised.value)
    assert DEVICE in message
    assert "CPU" in message
    assert "Could not run" not in message
    assert "\n" not in message


COMPILED = f"""
import torch
model, values = torch.nn.Linear(3, 3).to("{DEVICE}"), torch.ones(3, device="{DEVICE}")
expected = model(values).detach().cpu()
"""


@pytest.mark.parametrize(
    "options",
    [
        "",
        pytest.param("mode='max-autotune'", marks=pytest.mark.full),
        pytest.param("fullgraph=True, dynamic=True", marks=pytest.mark.full),
    ],
)
def test_compiling_works_or_the_error_names_a_backend(options: str) -> None:
    result = run_python(
        f"""{COMPILED}
try:
    torch.testing.assert_close(torch.compile(model, {options})(values).detach().cpu(), expected)
    print("compiled")
except Exception as error:
    print(error)
print(torch.compile(lambda x: x + 1)(torch.ones(1)))
        """,
        {"TORCHDYNAMO_VERBOSE": "0"},
    )
    compiles = hasattr(backend, "register_compiler")
    assert ("compiled" if compiles else 'backend="aot_eager"') in result.stdout
    assert "KeyError" not in result.stdout


def test_compiling_without_inductor() -> None:
    result = run_python(
        f"""{COMPILED}
for backend in ("eager", "aot_eager"):
    result = torch.compile(model, backend=backend)(values)
    result.sum().backward()
    torch.testing.assert_close(result.detach().cpu(), expected)
exported = torch.export.export(model, (values,)).module()
torch.testing.assert_close(exported(values).detach().cpu(), expected)
print("right")
        """
    )
    assert "right" in result.stdout


def test_the_profiler_times_the_device() -> None:
    result = run_python(
        f"""
        import torch
        values = torch.ones(2**22, device="{DEVICE}")
        with torch.autograd.profiler.profile(use_device="{DEVICE}") as profile:
            for _ in range(3):
                values = values * 2
            values.sum()
        events = [event for event in profile.key_averages() if event.key == "aten::mul"]
        assert sum(event.count for event in events) == 3, events
        timed = torch.{DEVICE}.get_device_properties(0).event_timing
        assert (sum(event.device_time_total for event in events) > 0) == timed, events
        """
    )
    assert "Exception" not in result.stderr
    assert "frame #" not in result.stderr
