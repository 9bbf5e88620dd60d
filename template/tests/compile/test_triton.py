"""Kernels that Inductor writes in Triton, compiled to TTIR or run by Triton's interpreter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from backend import DEVICE, ENV_PREFIX, backend
from support import run_python, since

pytest.importorskip("triton", reason="triton is not installed")
pytestmark = [pytest.mark.full, since((2, 13), "has the Inductor that this needs")]
HERE = Path(__file__).parent


@pytest.fixture
def vendor(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which Triton finds the backend in the folder of this file."""
    package = tmp_path / "vendor_triton-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor-triton\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[triton.backends]\n{DEVICE} = vendor_triton\n")
    return {
        "PYTHONPATH": f"{tmp_path}:{HERE}:{os.environ.get('PYTHONPATH', '')}",
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        f"{ENV_PREFIX}_COMPILER": "triton",
    }


def test_kernels_are_compiled_to_ttir(vendor: dict[str, str], tmp_path: Path) -> None:
    run_python(
        f"""
        import torch
        x, y = torch.randn(2, 8, 32, device="{DEVICE}")
        try:
            torch.compile(lambda x, y: (x.sin() * y + x).softmax(-1))(x, y)
        except Exception as error:
            assert "this backend of Triton ends at TTIR" in str(error), error
        else:
            raise AssertionError("compiled without an error")
        """,
        vendor,
    )
    (path,) = (tmp_path / "triton").rglob("*.ttir")
    text = path.read_text()
    parts = {"tt.func public": 1, "tt.load": 2, "tt.store": 1, "math.sin": 1, "math.exp": 1}
    assert {part: text.count(f"{part} ") for part in parts} == parts
    assert text.count('"tt.reduce"') == 2  # the largest element of a row, and a sum


PROGRAMS = f"""
    import copy, torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
            self.norm, self.head = nn.BatchNorm2d(4), nn.Linear(4, 3)

        def forward(self, x):
            y = torch.relu(self.norm(self.first(x)))
            y = nn.functional.max_pool2d(torch.relu(y + self.second(y)), 2)
            return self.head(y.mean((2, 3)))

    def places(x):
        return x[1:].cumsum(0) + x[:-1], x[x.argmax(0)], x.t().contiguous() * 2, x.amax(-1)

    def compare(actual, expected):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)

    device = torch.device("{DEVICE}", {backend.device_count() - 1})
    x = torch.randn(9, 5)
    for actual, expected in zip(torch.compile(places)(x.to(device)), places(x), strict=True):
        compare(actual, expected)
    with torch.no_grad():
        model, images = Residual().eval(), torch.linspace(-1, 1, 512).view(2, 4, 8, 8)
        expected = model(images)
        compare(torch.compile(model.to(device))(images.to(device)), expected)
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    here = copy.deepcopy(model).to(device)
    for run, given in (model, x), (torch.compile(here), x.to(device)):
        (run(given) - 1).square().mean().backward()
    for one, other in zip(here.parameters(), model.parameters(), strict=True):
        compare(one.grad, other.grad)
"""


def test_interpreted_kernels_give_the_results_of_the_cpu(vendor: dict[str, str]) -> None:
    """Inductor's code calls the kernels, and Triton's interpreter runs them."""
    run_python(PROGRAMS, vendor | {"TRITON_INTERPRET": "1"})


def test_kernels_are_launched_on_their_device(vendor: dict[str, str]) -> None:
    run_python(
        f"""
        import torch
        from torch._inductor.utils import run_and_get_code
        x = torch.randn(5, device="{DEVICE}")
        _, (code,) = run_and_get_code(torch.compile(lambda x: x.sin() * 2), x)
        before = code[: code.index(".run(")].splitlines()[-4:]
        assert any("with torch.{DEVICE}.device(0):" in line for line in before), code
        """,
        vendor | {"TRITON_INTERPRET": "1"},
    )


def test_dynamo_treats_the_device_as_triton_capable(vendor: dict[str, str]) -> None:
    run_python(
        f"""
        from torch._dynamo.device_interface import get_interface_for_device
        interface = get_interface_for_device("{DEVICE}")
        assert interface.is_triton_capable()
        interface.raise_if_triton_unavailable()
        """,
        vendor,
    )


def test_triton_is_not_the_default_compiler(vendor: dict[str, str]) -> None:
    del vendor[f"{ENV_PREFIX}_COMPILER"]
    run_python(
        f"""
        import torch
        x = torch.ones(3, device="{DEVICE}")
        assert torch.compile(lambda x: x.neg() * 2)(x).tolist() == [-2, -2, -2]
        """,
        vendor,
    )


def test_triton_without_a_backend_for_the_device_raises() -> None:
    """The backends that Triton includes are for other devices."""
    run_python(
        f"""
        import torch
        from torch._dynamo.device_interface import get_interface_for_device
        try:
            torch.compile(lambda x: x.neg() * 2)(torch.ones(3, device="{DEVICE}"))
        except Exception as error:
            assert "{ENV_PREFIX}_COMPILER=triton: Triton chooses no backend" in str(error), error
            assert "add, one for {DEVICE}; unset the variable" in str(error), error
        else:
            raise AssertionError("compiled without an error")
        interface = get_interface_for_device("{DEVICE}")
        assert not interface.is_triton_capable()
        try:
            interface.raise_if_triton_unavailable()
        except RuntimeError as error:
            assert "add, one for {DEVICE}" in str(error)
        else:
            raise AssertionError("Triton is reported as available")
        """,
        {f"{ENV_PREFIX}_COMPILER": "triton"},
    )
