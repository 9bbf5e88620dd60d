"""PyTorch's own suite of a backend, ``DistributedTest``, adapted to this device and its backend.

The suite names "cuda", and selects its tests by the backend's name. This device's name replaces
"cuda". The backend's name replaces that of one role: "nccl", whose tests name the device of each
tensor, or "gloo", whose tests name none, so that this device is the default one. A test of both
roles runs in the first.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import types
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from backend import DEVICE, backend

BACKEND = f"{DEVICE}ccl"
ROLES = ("nccl", "gloo")
FILE = Path(torch.__file__).parent / "testing/_internal/distributed/distributed_test.py"


def names() -> list[str]:
    """Return the names of the tests, without those that PyTorch has commented out."""
    source = re.sub(r'^        """.*?"""', "", FILE.read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"^        def (test_\w+)", source, re.M)


@functools.cache
def _load(role: str, size: int) -> Any:
    """Return the suite as a module that plays ``role``."""
    common: Any = importlib.import_module("torch.testing._internal.common_distributed")
    os.environ |= {"BACKEND": BACKEND, "WORLD_SIZE": str(size)}
    cases = common.DistTestCases
    for backends in cases.skip_collective.values():
        backends.discard(BACKEND)
        if role in backends:
            backends.add(BACKEND)
    cases.backend_feature[DEVICE] = cases.backend_feature["cuda"]
    for backends in cases.backend_feature.values():
        backends.add(BACKEND)
    # PyTorch skips these below 8 ranks, the number of devices of its own machines.
    if size > 2:
        common.skip_if_small_worldsize = lambda test: test

    source = re.sub(r"\bcuda\b(?!\.amp)", DEVICE, FILE.read_text("utf-8"))
    source = source.replace(f'"{role}"', f'"{BACKEND}"')
    if role == "gloo":
        source = re.sub(r"\btorch\.(?=[A-Z][a-z]+Tensor\()", f"torch.{DEVICE}.", source)
    module: Any = types.ModuleType(f"suite_as_{role}")
    sys.modules[module.__name__] = module
    # Without CUDA it requires no version of NCCL; later it needs TEST_CUDA to find devices.
    with mock.patch.object(common, "TEST_CUDA", False):
        exec(compile(source, str(FILE), "exec", dont_inherit=True), vars(module))
    common.TEST_CUDA = True
    common.torch = types.SimpleNamespace(**vars(torch) | {"cuda": backend})
    module.autocast = functools.partial(torch.autocast, DEVICE)
    module.GradScaler = functools.partial(torch.amp.GradScaler, DEVICE)
    module.PROFILING_SUPPORTED_BACKENDS.append(BACKEND)
    module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(BACKEND)
    bases = (module.TestDistBackend, module.DistributedTest._DistTestBase)
    module.Suite = type("Suite", bases, {})
    return module


@contextmanager
def _group(module: Any, role: str, rank: int, size: int, name: str, folder: Path) -> Iterator[None]:
    """Make the default group of one test, with the files and the environment that it expects."""
    for part in ("barrier", "test_dir", "init_dir"):
        (folder / part).mkdir(exist_ok=True)
    module.INIT_METHOD = f"file://{folder}/init_dir/shared_init_file"
    module.Barrier.barrier_id = 0
    if dist.is_initialized():
        dist.destroy_process_group()
    environment = {"TEMP_DIR": str(folder), "INIT_METHOD": module.INIT_METHOD}
    with mock.patch.dict(os.environ, environment):
        dist.set_debug_level_from_env()
        dist.init_process_group(
            BACKEND,
            store=dist.FileStore(str(folder / "store"), size),
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=module.CUSTOM_PG_TIMEOUT.get(name, 60)),
        )
        backend.set_device(0)
        torch.set_default_device(DEVICE if role == "gloo" else None)
        try:
            yield
        finally:
            torch.set_default_device(None)


def run(rank: int, size: int, name: str, folder: Path) -> str:
    """Run one test in an empty ``folder``. Return why it was skipped, or an empty string."""
    for role in ROLES:
        module = _load(role, size)
        left_out = getattr(getattr(module.Suite, name), "__unittest_skip_why__", "")
        if not left_out:
            break
    else:
        return str(left_out)
    common: Any = importlib.import_module("torch.testing._internal.common_distributed")
    case = module.Suite(name)
    case.rank = rank
    case.file_name = str(folder / "store")
    with _group(module, role, rank, size, name, folder):
        common.common_utils.set_rng_seed()
        try:
            case._barrier()
            getattr(case, name)()
            case._barrier()
        except unittest.SkipTest as skip:
            return str(skip)
        except SystemExit as end:  # how PyTorch skips a test in a process that it has started
            reasons = {skip.exit_code: skip.message for skip in common.TEST_SKIPS.values()}
            if end.code not in reasons:
                raise
            return reasons[end.code]
    return ""
