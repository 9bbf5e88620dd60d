"""The aspects of an operator that are compared with the CPU, and one run over its samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from backend import backend
from conformance import compare, layouts, memory, nonfinite, refusals, strides, values
from conformance.routes import UNSUPPORTED, route
from conformance.run import NotApplicable, Outcome, Run, left_out
from conformance.samples import Sample, errors, samples, spread
from torch.testing._internal.common_device_type import ANY_DTYPE_ORDER

ASPECTS: dict[str, Callable[[Run, Sample], None]] = {
    "forward": values.forward,
    "noncontiguous": values.noncontiguous,
    "out": values.out,
    "in_place": values.in_place,
    "backward": values.backward,
    "autocast": values.autocast,
    "layout": layouts.layout,
    "views": layouts.views,
    "strides": strides.strides,
    "strides_backward": strides.strides_backward,
    "ranks": layouts.ranks,
    "repeated": layouts.repeated,
    "nonfinite": nonfinite.nonfinite,
    "memory": memory.memory,
    "expanded_input": refusals.expanded_input,
    "expanded_output": refusals.expanded_output,
    "other_output": refusals.other_output,
    "errors": refusals.errors,
}
"""By name, in the order in which they are reported."""


FEW_DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
"""The dtypes for aspects for which other dtypes would show nothing new."""

OF_FEW_DTYPES = (
    "layout",
    "views",
    "ranks",
    "repeated",
    "nonfinite",
    "expanded_input",
    "expanded_output",
    "other_output",
)


OF_STRIDES = (torch.float32, torch.bfloat16, torch.int64, torch.complex64)
"""The dtypes for "strides": one for each way in which kernels read elements."""

LIMITS = {"nonfinite": 6, "memory": 3}
"""The number of samples for aspects for which more samples would show nothing new."""


def applies(aspect: str, op: Any, dtype: torch.dtype) -> bool:
    """Whether the operator has this aspect for a dtype, according to PyTorch's table."""
    if aspect in OF_FEW_DTYPES and dtype not in FEW_DTYPES:
        return False
    if aspect == "errors":
        return dtype is first_dtype(op) and op.error_inputs_func is not None
    if aspect in ("out", "expanded_output", "other_output"):
        return bool(op.supports_out)
    if aspect in ("in_place", "expanded_input"):
        return op.get_inplace() is not None
    if aspect.startswith("strides") and dtype not in OF_STRIDES:
        return False
    if aspect == "nonfinite":
        return dtype.is_floating_point and nonfinite.is_concerned(op.name)
    if aspect == "memory":
        return dtype in (first_dtype(op), values.LOW_PRECISION)
    if aspect.endswith("backward"):
        return dtype in op.supported_backward_dtypes("cpu")
    if aspect == "autocast":
        offered = getattr(backend, "get_amp_supported_dtype", list)()
        return dtype is torch.float32 and values.LOW_PRECISION in offered
    return True


def first_dtype(op: Any) -> torch.dtype | None:
    """Return the dtype that ``OpDTypes.any_one`` gives."""
    return next((dtype for dtype in ANY_DTYPE_ORDER if dtype in op.dtypes), None)


def summary(sample: Any) -> str:
    """Describe the arguments of a sample or of an error input."""
    return str(getattr(sample, "sample_input", sample).summary())


def compare_with_cpu(
    aspect: str, op: Any, dtype: torch.dtype, compared: dict[str, Any], limit: int | None = None
) -> Outcome:
    """Compare one aspect over the operator's samples, all of them or ``limit`` of them.

    The function that runs has the operator's name, so that the stack that pytest prints for a
    crash names the operator.
    """
    code = explore.__code__.replace(co_name=f"{aspect} of {op.full_name} {dtype}")
    return FunctionType(code, globals())(aspect, op, dtype, compared, limit)


def explore(
    aspect: str, op: Any, dtype: torch.dtype, compared: dict[str, Any], limit: int | None
) -> Outcome:
    run = Run(op, dtype, compared)
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if aspect in LIMITS:
            limit = min(limit or LIMITS[aspect], LIMITS[aspect])
        if aspect == "errors":
            inputs, limit = errors(op), None
        else:
            inputs = samples(op, dtype, gradients=aspect.endswith("backward"))
        for index, sample in enumerate(inputs if limit is None else spread(inputs, limit)):
            try:
                ASPECTS[aspect](run, sample)
            except NotApplicable as reason:
                outcome.skipped = str(reason) or outcome.skipped
                continue
            except compare.WrongResult as error:
                outcome.problems.append(f"sample {index}: {error}\n  {summary(sample)}")
            except Exception as error:
                if missing := left_out(error):
                    outcome.skipped = f"computes with {missing}, which was left out"
                    continue
                outcome.raised += 1
                outcome.problems.append(
                    f"sample {index}: raised {type(error).__name__}: {error}\n  {summary(sample)}"
                )
            finally:
                run.finish_sample()
            outcome.compared += 1
    outcome.extra = run.extra
    outcome.fallbacks = sorted(run.fallbacks)
    outcome.avoidable = sorted(run.avoidable)
    if run.recorder is None:
        outcome.route = UNSUPPORTED if outcome.compared else ""
    else:
        outcome.route = route(run.recorder, outcome.fallbacks, several=aspect.endswith("backward"))
    return outcome
