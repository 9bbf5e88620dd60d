"""PyTorch's own tests of a backend, on this device. known.toml has the exceptions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, ENV_PREFIX
from distributed import suite
from distributed.marks import needs_kernel, queues_messages
from distributed.ranks import Ranks, ranks
from support import needs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = needs(
    torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64
)

KNOWN: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("known.toml").read_text(encoding="utf-8")
)
EACH_RUN = (
    "test_accumulate_gradients_no_sync_allreduce_hook",
    "test_all_gather_object_subgroup",
    "test_all_gather_v_cuda",
    "test_all_reduce_coalesced_sum",
    "test_all_reduce_sum_cuda_complex",
    "test_all_to_all_single_unequal_split_cuda",
    "test_batch_isend_irecv_nccl",
    "test_coalescing_manager_async",
    "test_ddp_control_flow_different_across_ranks",
    "test_ddp_join_model_equivalence",
    "test_ddp_native_mixed_precision_ignored_params",
    "test_DistributedDataParallel_SyncBatchNorm_Diff_Input_Sizes_gradient",
    "test_gather",
    "test_invalid_static_graph",
    "test_scatter_cuda",
    "test_send_recv_any_source_torch_profiler",
)
"""The tests of the default tier. Most of their time is the start of the processes."""


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.full)])
def processes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ranks]:
    with pytest.MonkeyPatch.context() as patch:
        # As many devices as ranks, if the simulator reads the number.
        patch.setenv(f"{ENV_PREFIX}_SIMULATOR_DEVICES", str(request.param))
        with ranks(request.param, tmp_path_factory.mktemp("suite")) as started:
            yield started


def case(name: str) -> Any:
    """Return a test's name with the marks that known.toml declares."""
    marks = [] if name in EACH_RUN else [pytest.mark.full]
    for kind, mark in (("failure", pytest.mark.xfail), ("not_run", pytest.mark.skip)):
        reasons = [entry["reason"] for entry in KNOWN.get(kind, []) if name in entry["tests"]]
        marks += [mark(reason=reason) for reason in reasons]
    if "isend" in name:
        marks.append(queues_messages)
    if "SyncBatchNorm" in name:
        marks.append(needs_kernel("aten::batch_norm_stats"))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [case(name) for name in suite.names()])
def test_pytorch_distributed_test(processes: Ranks, name: str, tmp_path: Path) -> None:
    try:
        reasons = processes.call(suite.run, name, tmp_path)
    except AssertionError as error:
        wanted = re.search(rf"invalid device {DEVICE}:\d+: this machine has (\d+)", str(error))
        if wanted and int(wanted[1]) < processes.size:
            pytest.skip("it takes a device for each rank")
        raise
    if reason := next(filter(None, reasons), ""):
        pytest.skip(reason)


def test_names_in_known_toml_exist() -> None:
    entries = [name for kind in KNOWN.values() for entry in kind for name in entry["tests"]]
    assert len(entries) == len(set(entries))
    assert set(entries) | set(EACH_RUN) <= set(suite.names())
