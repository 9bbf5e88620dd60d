"""The layer `validate` with attention and other families for serving engines."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from device_library import needs
from making import Make

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def validated(api: ModuleType, restored_layers: None) -> None:
    needs("attention", "attention_backward", "append_to_cache", "rotary", "add_rms_norm", "sample")
    api.set_layers(["validate"])


@pytest.fixture
def typed(api: ModuleType, make: Make) -> Callable[..., Any]:
    """Dense views of any element type, each of its own buffer."""

    def view(dtype: str, *sizes: int) -> Any:
        strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        return make.buffer(1024).view(0, api.DType[dtype], list(sizes), strides)

    return view


def test_wrong_arguments_of_attention_are_refused(
    api: ModuleType, refuses: Function, typed: Function, stream: Any
) -> None:
    q, k = typed("float32", 1, 2, 3, 4), typed("float32", 5, 2, 2, 4)
    arguments = (stream, typed("float32", 1, 2, 3, 4), typed("float32", 1, 2, 3), q, k, k)

    def refused(says: str, **fields: Any) -> None:
        params = api.AttentionParams()
        for name, value in fields.items():
            setattr(params, name, value)
        refuses(api.attention, *arguments, params, says=says)

    starts, counts, table = typed("int32", 3), typed("int32", 2), typed("int32", 2, 4)
    paged = {"query_starts": starts, "key_counts": counts, "block_table": table}
    refused("there are not keys for each sequence")
    refused("a block_table needs key_counts", query_starts=starts, block_table=table)
    refused("block_table int64 .* type and sizes", **paged | {"block_table": typed("int64", 2, 4)})
    refused("key_counts .* type and sizes", **paged | {"key_counts": typed("int32", 3)})
    refused("slopes .* type and sizes", **paged, slopes=typed("float32", 2, 3))
    refused("a mask is for dense arrays", **paged, mask=typed("bool", 1, 2, 3, 2))
    refused("a window is out of range", **paged, window_left=-2)
    refused("soft_cap or dropout is out of range", **paged, dropout=1.5)
    refused("are for the gradients", **paged, out=q)
    address = api.allocate(0, 8)
    refused("philox.address 0x.* reaches 8", **paged, philox=api.PhiloxState(1, 0, address))
    api.deallocate(0, address)


def test_caches_have_no_gradients(
    api: ModuleType, refuses: Function, typed: Function, stream: Any
) -> None:
    view = typed("float32", 1, 2, 3, 4)
    gradients = [typed("float32", 1, 2, 3, 4) for _ in range(3)]
    params = api.AttentionParams()
    arguments = (stream, *gradients, view, view, view, view)
    refuses(api.attention_backward, *arguments, params, says="need out and logsumexp")
    params.out, params.logsumexp = view, typed("float32", 1, 2, 3)
    params.key_counts = typed("int32", 1)
    refuses(api.attention_backward, *arguments, params, says="caches have no gradients")
    params.key_counts, params.grad_mask = None, gradients[0]
    refuses(api.attention_backward, *arguments, params, says="overlaps")


def test_wrong_arguments_of_serving_families_are_refused(
    api: ModuleType, refuses: Function, typed: Function, stream: Any
) -> None:
    caches, rows = [typed("float32", 3, 2, 4, 5) for _ in range(2)], typed("float32", 6, 2, 5)
    refuses(
        *(api.append_to_cache, stream, *caches, rows, rows, typed("int32", 6), api.CacheParams()),
        says="slots int32 .* type and sizes",
    )
    refuses(
        *(api.append_to_cache, stream, *caches, typed("float32", 6, 2, 4), rows),
        *(typed("int64", 6), api.CacheParams()),
        says="do not fit the caches",
    )
    op, positions = api.RotaryOp.halves, typed("int64", 6)
    arguments = (stream, op, rows, rows, positions)
    says = "no even width within a head"
    refuses(api.rotary, *arguments, typed("float32", 9, 3), False, says=says)
    refuses(api.rotary, *arguments, typed("float32", 9, 6), False, says=says)
    refuses(
        *(
            api.add_rms_norm,
            stream,
            rows,
            rows,
            typed("float32", 6, 2, 5),
            typed("float32", 5),
            0.1,
        ),
        says="overlaps",
    )
    params = api.SampleParams()
    params.top_k = typed("int64", 6)
    logits = typed("float32", 6, 9)
    refuses(api.sample, stream, typed("int64", 6), logits, params, says="top_k int64 .* type")
    refuses(api.sample, stream, typed("int64", 5), logits, api.SampleParams(), says="out int64")
