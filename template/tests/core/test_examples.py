"""The examples run unchanged."""

from __future__ import annotations

import re

import torch
from backend import DEVICE, ENV_PREFIX
from support import EXAMPLES, needs, run_python

pytestmark = needs(torch.float32)


def run(name: str) -> tuple[str, str]:
    script = str(EXAMPLES / name)
    code = f"import runpy; runpy.run_path({script!r}, run_name='__main__')"
    result = run_python(code, {f"{ENV_PREFIX}_FALLBACK": "silent"}, forked=False)
    return result.stdout, result.stderr


def test_quickstart_trains_saves_and_uses_a_second_device() -> None:
    output, errors = run("quickstart.py")
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", output)]
    assert losses[-1] < losses[0] / 4
    assert "equal: True" in output
    assert "values kept: True" in output
    assert "== a second device" in output
    assert errors == ""


def test_open_registration_shows_the_work_behind_an_addition() -> None:
    output, errors = run("open_registration.py")
    assert f"{DEVICE}:0" in output
    assert "same address again: True" in output
    for seen in ("aten::add.Tensor", f"{DEVICE}:0 -> cpu", "allocate", "free", "fallback"):
        assert seen in errors
    assert "Exception" not in errors
