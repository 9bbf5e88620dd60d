"""A device with slow compilation: plans and a cache folder avoid a second one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from simulator_knobs import Knobs

GROUP = "plans"

Make = Callable[..., Any]

# Launches two kinds twice each. Prints the time of each round and the number of compiled kernels.
CODE = """
import time
import _device
from simulator_knobs import Knobs
stream, buffer = _device.default_stream(0), _device.Buffer(0, 64)
for _ in range(2):
    start = time.perf_counter()
    for dtype, size in (("float32", 16), ("int32", 16)):
        view = buffer.view(0, _device.DType[dtype], [size], [1])
        assert _device.fill(stream, view, 1) is None
    print(time.perf_counter() - start, Knobs().compilations())
_device.synchronize(stream)
"""


@pytest.fixture
def run_slowly(simulator: Knobs, run_child: Make) -> Callable[..., list[tuple[float, int]]]:
    """Runs CODE with 25 ms per compilation; returns times and numbers of kernels."""

    def run(**settings: str) -> list[tuple[float, int]]:
        done = run_child(CODE, SIMULATOR_COMPILE_MS="25", **settings)
        assert done.returncode == 0, done.stderr
        rounds = (line.split() for line in done.stdout.splitlines())
        return [(float(seconds), int(compiled)) for seconds, compiled in rounds]

    return run


def test_the_second_launch_compiles_nothing(
    run_slowly: Callable[..., list[tuple[float, int]]],
) -> None:
    (first, compiled), (_, still) = run_slowly()
    assert (compiled, still) == (2, 2)
    assert first >= 0.05


def test_another_process_loads_compiled_kernels_from_the_folder(
    run_slowly: Callable[..., list[tuple[float, int]]], tmp_path: Path
) -> None:
    folder = tmp_path / "made" / "here"
    assert run_slowly(CACHE_FOLDER=str(folder))[-1][1] == 2
    assert len(list(folder.iterdir())) == 2
    assert run_slowly(CACHE_FOLDER=str(folder))[-1][1] == 0
    for file in folder.iterdir():
        file.write_text("cut")
    assert run_slowly(CACHE_FOLDER=str(folder))[-1][1] == 2
    for file in folder.iterdir():
        file.chmod(0o666)  # so that other users could have written it
    assert run_slowly(CACHE_FOLDER=str(folder))[-1][1] == 2
    folder.chmod(0o777)
    assert run_slowly(CACHE_FOLDER=str(folder))[-1][1] == 2


def test_a_folder_that_cannot_be_made_is_named_and_left_alone(
    api: ModuleType, run_child: Make, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    done = run_child("import _device", CACHE_FOLDER=str(tmp_path / "file" / "folder"))
    assert done.returncode == 0
    assert f"{api.ENV_PREFIX}_CACHE_FOLDER" in done.stderr
