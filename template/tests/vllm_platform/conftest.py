"""vLLM is slow to start: tests with its engine run only with ``-m ecosystem``."""

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

PROGRAM = Path(__file__).with_name("generate.py")

# The JSON that generate.py prints.
Answer = dict[str, Any]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, also in projects without tests/ecosystem."""
    config.addinivalue_line("markers", "ecosystem: other libraries, those that are installed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests unless ``-m`` names the marker."""
    if "ecosystem" not in (config.getoption("-m") or ""):
        left_out = [item for item in items if item.get_closest_marker("ecosystem")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest) -> None:
    """Skip a test of the engine if vLLM is not installed, or its release is not supported."""
    if request.node.get_closest_marker("ecosystem"):
        versions: Any = importlib.import_module(f"{backend.__name__}.vllm._versions")
        release = versions.installed()
        if release is None or not versions.is_tested(release):
            pytest.skip(f"needs vLLM {', '.join(versions.TESTED)}; installed is {release}")


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that writes a tiny random model once, and returns its folder."""
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
    """Run generate.py in another process."""
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
    """Return a function: generate on the device, or with ``cpu=True`` on vLLM's CPU platform."""

    def answer(model: Path, *, cpu: bool = False, **options: Any) -> Answer:
        done = run(model, options, **({"VLLM_TARGET_DEVICE": "cpu"} if cpu else {}))
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert done.returncode == 0 and lines, done.stdout[-2000:] + done.stderr[-4000:]
        result: Answer = json.loads(lines[-1])
        return result

    return answer


@pytest.fixture(scope="session")
def refusal() -> Callable[..., str]:
    """Return a function that returns vLLM's output when it refuses to start on the device."""

    def answer(model: Path, environment: dict[str, str] | None = None, **options: Any) -> str:
        done = run(model, options, **(environment or {}))
        assert done.returncode != 0, done.stdout[-2000:]
        return done.stdout + done.stderr

    return answer
