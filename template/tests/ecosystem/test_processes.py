"""Libraries that train over several processes, started by ``torchrun`` or by themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE
from ecosystem.processes import has_collectives, launch
from ecosystem.test_recipes import recipe
from support import needs, needs_two_devices, run_python

pytestmark = [has_collectives, needs(torch.float32)]

OUTCOME = """
import json, pathlib
parameters = [parameter.detach().flatten().cpu() for parameter in model.parameters()]
outcome = [accelerator.num_processes, str(accelerator.device), torch.cat(parameters).tolist()]
pathlib.Path(f"outcome-{os.environ['RANK']}.json").write_text(json.dumps(outcome))
"""
"""Code after a recipe. It writes the number of processes, the device and the parameters."""


def outcomes(code: str, folder: Path) -> list[Any]:
    """Return what each process wrote."""
    script = folder / "train.py"
    script.write_text(code, "utf-8")
    launch([str(script)], folder=folder)
    files = [folder / f"outcome-{rank}.json" for rank in range(2)]
    return [json.loads(file.read_text("utf-8")) for file in files]


@needs_two_devices
@pytest.mark.ecosystem("accelerate")
def test_accelerate_trains_one_model_on_two_devices(tmp_path: Path) -> None:
    code = recipe("Accelerate over processes")
    # Each process starts with different parameters.
    code = code.replace(
        "accelerator = Acc", "torch.manual_seed(torch.distributed.get_rank())\naccelerator = Acc"
    )
    code = code.replace("print(accelerator", OUTCOME.strip() + "\nprint(accelerator")
    first, second = outcomes(code, tmp_path)
    assert [first[:2], second[:2]] == [[2, f"{DEVICE}:0"], [2, f"{DEVICE}:1"]]
    assert first[2] == second[2]
    on_cpu = re.sub(r'f"\w+:\{.*\}"', '"cpu"', code).replace(
        "process_group()", 'process_group("gloo")'
    )
    assert outcomes(on_cpu, tmp_path)[0][2] == pytest.approx(first[2], rel=1e-4)


@needs_two_devices
@pytest.mark.ecosystem("accelerate")
def test_accelerate_without_the_recipe_trains_each_process_separately(tmp_path: Path) -> None:
    """The page warns of this behaviour. If accelerate changes, delete the recipe."""
    code = recipe("Accelerate over processes")
    code = code.replace("torch.distributed.init_process_group()\n", "").replace("cpu=True", "")
    code = code.replace("print(accelerator", OUTCOME.strip() + "\nprint(accelerator")
    assert [one[0] for one in outcomes(code, tmp_path)] == [1, 1]


@needs_two_devices
@pytest.mark.ecosystem("transformers", "accelerate")
@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_the_trainer_trains_one_model_on_two_devices(tmp_path: Path, precision: str) -> None:
    code = recipe("Transformers and accelerate")
    code = code.replace(f'"{DEVICE}"', f"f\"{DEVICE}:{{os.environ['LOCAL_RANK']}}\"")
    code = code.replace('"no"  # or bf16', f'"{precision}"')
    code = code.replace("import torch\n", "import torch\ntorch.distributed.init_process_group()\n")
    code = code.replace('save_strategy="no"', 'save_strategy="no", use_cpu=True')
    code = code.replace("Trainer(model, arg", "trainer = Trainer(model, arg")
    code = code.replace("=data).train()", "=data)\n    trainer.train()")
    code += "accelerator = trainer.accelerator" + OUTCOME
    first, second = outcomes(code, tmp_path)
    assert [first[:2], second[:2]] == [[2, f"{DEVICE}:0"], [2, f"{DEVICE}:1"]]
    assert first[2] == second[2]


@pytest.mark.ecosystem("ray.train")
def test_a_worker_of_ray_trains_on_the_device() -> None:
    done = run_python(recipe("Ray Train"), {"RAY_USAGE_STATS_ENABLED": "0"})
    assert re.search(f"trained on {DEVICE}:0$", done.stdout + done.stderr, re.M)


@needs_two_devices
@pytest.mark.ecosystem("ray.train")
def test_two_ray_workers_use_the_collectives_of_the_device() -> None:
    code = recipe("Ray Train").replace("num_workers=1)", "num_workers=2), torch_config=config")
    code = code.replace(
        "ray.init", f'config = ray.train.torch.TorchConfig(backend="{DEVICE}ccl")\nray.init'
    )
    done = run_python(code, {"RAY_USAGE_STATS_ENABLED": "0"})
    found = set(re.findall(f"trained on {DEVICE}:\\d", done.stdout + done.stderr))
    assert found == {f"trained on {DEVICE}:0", f"trained on {DEVICE}:1"}
