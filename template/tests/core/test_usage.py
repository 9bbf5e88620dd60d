"""Checks that a program used the device: <PREFIX>_EXPECT, expect_device and diagnose."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from backend import DEVICE, ENV_PREFIX, backend
from support import needs, run_python

pytestmark = needs(torch.float32)

VARIABLE = f"{ENV_PREFIX}_EXPECT"
ON_CPU = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2))
model(torch.ones(1, 2))
"""
ON_DEVICE = f"""
import torch
model = torch.nn.Linear(2, 2).to("{DEVICE}")
model(torch.ones(1, 2, device="{DEVICE}"))
torch.nn.Linear(2, 2)(torch.ones(1, 2))
"""


def run(code: str, value: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "train.py"
    script.write_text(code)
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=os.environ | {VARIABLE: value}
    )


@pytest.mark.parametrize(("value", "status"), [("device", 0), ("device:error", 1)])
def test_a_process_whose_model_was_on_the_cpu_prints_a_message(
    value: str, status: int, tmp_path: Path
) -> None:
    done = run(ON_CPU, value, tmp_path)
    assert done.returncode == status, done.stderr
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith(
        f"{VARIABLE}: nothing was launched on '{DEVICE}', and 2 times a layer"
    )
    assert "a Linear at train.py:4" in sentence
    assert f".to('{DEVICE}')" in sentence


@pytest.mark.parametrize(
    "code", [ON_DEVICE, "import torch", f"import torch; torch.ones(2).{DEVICE}()"]
)
def test_other_processes_print_nothing(code: str, tmp_path: Path) -> None:
    done = run(code, "device:error", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_programs_own_status_is_kept(tmp_path: Path) -> None:
    assert run(ON_CPU + "raise SystemExit(3)", "device:error", tmp_path).returncode == 3


def test_a_wrong_value_is_refused(tmp_path: Path) -> None:
    done = run("import torch", "foo", tmp_path)
    assert done.returncode != 0
    assert f"{VARIABLE} is 'foo': it must be device or device:error" in done.stderr


def test_a_block_without_a_launch_raises() -> None:
    model = torch.nn.Linear(2, 2)
    with (
        pytest.raises(
            RuntimeError, match=r"once a layer ran on the CPU.*a Linear at test_usage.py"
        ),
        backend.expect_device(),
    ):
        model(torch.ones(1, 2))
    model.to(DEVICE)
    with backend.expect_device():
        model(torch.ones(1, 2, device=DEVICE))
    with backend.expect_device():
        pass


def test_an_error_in_the_block_is_raised_unchanged() -> None:
    with pytest.raises(KeyError), backend.expect_device():
        torch.nn.Linear(2, 2)(torch.ones(1, 2))
        raise KeyError
    # The hook is removed.
    with backend.expect_device():
        pass
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_autocast_of_another_device_is_reported() -> None:
    model = torch.nn.Linear(2, 2).to(DEVICE)
    x = torch.ones(1, 2, device=DEVICE)
    with (
        pytest.raises(RuntimeError, match=rf"autocast\('cpu'\).*torch.autocast\('{DEVICE}'\)"),
        backend.expect_device(),
        torch.autocast("cpu", torch.bfloat16),
    ):
        assert model(x).dtype is torch.float32


def test_diagnose_prints_devices_and_fallbacks() -> None:
    here, there = torch.nn.Linear(2, 2), torch.nn.Bilinear(2, 2, 2).to(DEVICE)
    x = torch.ones(3, 2, device=DEVICE)
    there(x, x)
    text = io.StringIO()
    backend.diagnose(file=text)
    rows = dict(line.split(maxsplit=1) for line in text.getvalue().splitlines())
    assert int(rows["launches"].split()[0]) > 0
    assert backend.get_device_name(0) in rows[f"{DEVICE}:0"]
    assert "MiB" in rows[f"{DEVICE}:0"]
    assert "on cpu" in rows["models"]
    assert "Bilinear" in rows["models"].split(f"{DEVICE}:0")[1]
    assert len(rows) <= 12
    del here


def test_diagnose_starts_no_device() -> None:
    code = f"""
import torch
torch.{DEVICE}.diagnose()
assert not torch.{DEVICE}.is_initialized()
"""
    said = run_python(code, {}).stdout
    assert "not used so far" in said
    assert f".to('{DEVICE}')" in said
