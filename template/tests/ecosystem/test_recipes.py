"""The recipes of docs/features/integrations.md run unchanged, and its warnings are true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from backend import DEVICE, PACKAGE, backend
from ecosystem.processes import has_collectives
from support import run_python

DOCS = Path(__file__).resolve().parents[2] / "docs" / "features"


def recipe(heading: str, page: str = "integrations") -> str:
    section = (DOCS / f"{page}.md").read_text("utf-8").split(f"\n## {heading}\n", 1)[1]
    found = re.search(r"^```python\n(.*?)^```$", section, re.M | re.S)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    "heading",
    [
        pytest.param("DeepSpeed", marks=[pytest.mark.ecosystem("deepspeed"), has_collectives]),
        pytest.param("Lightning", marks=pytest.mark.ecosystem("lightning")),
        pytest.param("Lightning Fabric", marks=pytest.mark.ecosystem("lightning")),
        pytest.param("NumPy, JAX and Polars", marks=pytest.mark.ecosystem("numpy")),
        pytest.param("TRL", marks=pytest.mark.ecosystem("trl")),
        pytest.param("Safetensors", marks=pytest.mark.ecosystem("safetensors")),
        pytest.param(
            "Transformers and accelerate",
            marks=pytest.mark.ecosystem("transformers", "accelerate"),
        ),
    ],
)
def test_a_recipe_runs_on_the_device(heading: str) -> None:
    assert run_python(recipe(heading)).stdout.split()[-1] == f"{DEVICE}:0"


@pytest.mark.ecosystem("torchao")
def test_the_torchao_recipe_runs_on_the_device() -> None:
    assert run_python(recipe("torchao", "quantization")).stdout.split()[-1] == f"{DEVICE}:0"


@pytest.mark.ecosystem("transformers", "accelerate")
def test_trainer_computes_in_bfloat16_with_the_environment_variable() -> None:
    code = recipe("Transformers and accelerate")
    code = code.replace('"no"  # or bf16', '"bf16"')
    code = code.replace(
        "with tempfile",
        "model.transformer.h[0].mlp.c_fc.register_forward_hook(\n"
        "    lambda module, arguments, result: print('dtype', result.dtype))\nwith tempfile",
    )
    assert "dtype torch.bfloat16" in run_python(code).stdout


@pytest.mark.ecosystem("accelerate")
def test_accelerate_uses_the_cpu_without_the_environment_variable() -> None:
    """The page documents this behaviour. If accelerate changes, delete the recipe."""
    code = "from accelerate import Accelerator; print(Accelerator().device)"
    assert run_python(code).stdout.split()[-1] == "cpu"


@pytest.mark.ecosystem("lightning")
@pytest.mark.parametrize("precision", ["16-mixed", "bf16-mixed"])
def test_lightning_computes_in_the_precision_of_the_strategy(precision: str) -> None:
    code = recipe("Lightning").replace("single_device(0)", f"single_device(0, '{precision}')")
    code = code.replace("self.seen = batch.device", "self.seen = self.layer(batch).dtype")
    expected = "torch.float16" if precision == "16-mixed" else "torch.bfloat16"
    assert run_python(code).stdout.split()[-1] == expected


@pytest.mark.ecosystem("lightning")
def test_fabric_computes_in_the_precision_of_the_strategy() -> None:
    code = recipe("Lightning Fabric").replace(
        "accelerator=DeviceAccelerator()",
        f"accelerator=DeviceAccelerator(), precision=MixedPrecision('bf16-mixed', '{DEVICE}')",
    )
    code = "from lightning.fabric.plugins.precision import MixedPrecision\n" + code.replace(
        "fabric.backward",
        "model._forward_module.register_forward_hook(\n"
        "    lambda module, arguments, result: print('dtype', result.dtype))\nfabric.backward",
    )
    assert "dtype torch.bfloat16" in run_python(code).stdout


@pytest.mark.ecosystem("lightning")
def test_precision_and_accelerator_arguments_of_lightning_are_refused() -> None:
    code = recipe("Lightning")
    own = code.replace("strategy=", "precision='bf16-mixed', strategy=")
    done = run_python(own, check=False)
    assert "give single_device() the precision 'bf16-mixed'" in done.stderr
    own = code.replace("strategy=single_device(0)", "accelerator=DeviceAccelerator(), devices=1")
    done = run_python(own.replace("import single_device", "import DeviceAccelerator"), check=False)
    assert "Lightning placed the model on cpu" in done.stderr


@pytest.mark.ecosystem("lightning")
def test_lightning_gets_the_requested_devices() -> None:
    from lightning.pytorch.utilities.exceptions import MisconfigurationException

    integration = importlib.import_module(f"{PACKAGE}.integrations.lightning")
    parse: Any = integration.DeviceAccelerator.parse_devices
    everything = list(range(backend.device_count()))
    assert parse(-1) == parse("-1") == parse(everything) == parse(len(everything)) == everything
    assert parse("0,") == parse(1) == parse("1") == [0]
    for absent in (len(everything) + 1, f"0,{len(everything)}", [-1], [0, 0]):
        with pytest.raises(MisconfigurationException, match=f"this machine has {len(everything)}"):
            parse(absent)


@pytest.mark.ecosystem
@pytest.mark.parametrize("library", ["deepspeed", "lightning", "transformers"])
def test_import_of_the_package_imports_no_library(library: str) -> None:
    code = f"""
        import sys, {PACKAGE}
        print([name for name in sys.modules if name.partition(".")[0] == {library!r}])
    """
    assert run_python(code).stdout.strip() == "[]"
