"""vLLM takes long to start: tests with its engine run by ``-m ecosystem``, where it is installed."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend import backend
from support import leave_out

PROGRAM = Path(__file__).with_name("generate.py")

# Equal tokens, and how they came to be.
Answer = dict[str, Any]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests out unless the marker is named."""
    if "ecosystem" not in (config.getoption("-m") or ""):
        leave_out(config, items, "ecosystem")


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest) -> None:
    """Skip a test of the engine where there is none, or one of a release that is refused."""
    if request.node.get_closest_marker("ecosystem"):
        versions: Any = importlib.import_module(f"{backend.__name__}.vllm._versions")
        release = versions.installed()
        if release is None or not versions.is_tested(release):
            pytest.skip(f"needs vLLM {', '.join(versions.TESTED)}; installed is {release}")


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Write a tiny model with random weights, once, and return its folder."""
    folder = tmp_path_factory.mktemp("models")

    def write(name: str) -> Path:
        from vllm_platform.models import save

        if not (folder / name).exists():
            save(name, folder / name)
        return folder / name

    return write


@pytest.fixture(scope="session")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an adapter of `llama`, and return its folder."""
    from vllm_platform.models import save_adapter

    folder = tmp_path_factory.mktemp("adapters") / "adapter"
    save_adapter(folder)
    return folder


def run(
    model: Path, options: dict[str, Any], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    return subprocess.run(
        [sys.executable, PROGRAM, model, json.dumps(options)],
        env=os.environ
        | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1"}
        | environment,
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="session")
def generate() -> Callable[..., Answer]:
    """Return tokens that vLLM generates on the device, or with ``cpu=True`` on its CPU platform."""

    def answer(model: Path, *, cpu: bool = False, **options: Any) -> Answer:
        done = run(model, options, **({"VLLM_TARGET_DEVICE": "cpu"} if cpu else {}))
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert done.returncode == 0 and lines, done.stdout[-2000:] + done.stderr[-4000:]
        result: Answer = json.loads(lines[-1])
        return result

    return answer


@pytest.fixture(scope="session")
def refusal() -> Callable[..., str]:
    """Return what vLLM writes where it refuses to start on the device."""

    def answer(model: Path, environment: dict[str, str] | None = None, **options: Any) -> str:
        done = run(model, options, **(environment or {}))
        assert done.returncode != 0, done.stdout[-2000:]
        return done.stdout + done.stderr

    return answer
