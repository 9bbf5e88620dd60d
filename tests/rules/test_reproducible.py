"""Rule: equal answers give equal bytes, whatever the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rendering import Renderer, contents

# Renders with a clock that is SHIFT seconds off.
SCRIPT = """
import os, sys, time
true_time, true_local = time.time, time.localtime
shift = int(os.environ["SHIFT"])
time.time = lambda: true_time() + shift
time.localtime = lambda at=None: true_local(time.time() if at is None else at)
from pathlib import Path
from torchsmith.render import Job, render
template, project = sys.argv[1:]
render(Path(project), Job({"preset": "full"}, template))
"""


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(
            {"TZ": "Pacific/Kiritimati", "LANG": "C", "LC_ALL": "C", "SHIFT": "400000000"},
            id="future",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            {
                "TZ": "America/Los_Angeles",
                "LANG": "tr_TR.UTF-8",
                "USER": "nobody",
                "SHIFT": "-400000000",
            },
            id="past",
        ),
    ],
)
def test_a_render_is_the_same_on_another_machine(
    machine: dict[str, str], render: Renderer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "copier").mkdir(parents=True)
    project = tmp_path / "elsewhere" / "project"
    project.parent.mkdir()
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(render.template), str(project)],
        cwd=project.parent,
        env={**os.environ, "HOME": str(home), **machine},
        check=True,
    )
    assert contents(project) == contents(render(preset="full"))


def test_an_answers_file_renders_the_same_again(render: Renderer, tmp_path: Path) -> None:
    from torchsmith.render import read_answers

    first = render(features=["rng"], backend_name="nova", dtypes=["bool", "float32", "int64"])
    again = render.fresh(tmp_path / "again", **read_answers(first / ".copier-answers.yml"))
    assert contents(again) == contents(first)
