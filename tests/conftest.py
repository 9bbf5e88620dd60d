from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from filelock import FileLock

from rendering import GIT_ENVIRONMENT, Renderer, snapshot


@pytest.fixture(scope="session", autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Isolate every test from the machine's git and copier settings and installed backends."""
    os.environ.update(GIT_ENVIRONMENT)
    settings = tmp_path_factory.mktemp("copier") / "settings.yml"
    settings.write_text("{}\n")
    os.environ["COPIER_SETTINGS_PATH"] = str(settings)
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    # The processes of these tests share the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A background job ignores SIGINT, and so would its children, which tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a folder that all processes of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def render(shared: Path, _isolated: None) -> Renderer:
    """Return a renderer of the template in the working tree."""
    template = shared / "template"
    with FileLock(shared / "template.lock"):
        if not template.exists():
            snapshot(template.with_suffix(".part")).rename(template)
    cache = shared / "renders"
    cache.mkdir(exist_ok=True)
    return Renderer(template, cache)


@pytest.fixture
def project(render: Renderer, tmp_path: Path) -> Path:
    """Return a project with only amp, under git."""
    return render.project(tmp_path / "torch-foo", features=["amp"])
