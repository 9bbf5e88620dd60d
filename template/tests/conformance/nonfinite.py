"""The aspect of NaN and infinity in linear algebra, statistics and comparisons.

For real numbers only, because libraries multiply the parts of complex numbers in different ways.
"""

from __future__ import annotations

import math

import torch
from conformance.layouts import compare_call
from conformance.run import NotApplicable, Run
from conformance.samples import Arguments, Sample

VALUES = (math.nan, math.inf, -math.inf)

LINEAR_ALGEBRA = {
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "cdist", "cholesky", "cholesky_inverse",
    "cholesky_solve", "dist", "dot", "geqrf", "inner", "inverse", "logdet", "lu", "lu_solve",
    "lu_unpack", "matmul", "matrix_exp", "mm", "mv", "norm", "ormqr", "outer", "pinverse", "qr",
    "renorm", "svd", "trace", "triangular_solve", "vdot",
}  # fmt: skip
STATISTICS = {
    "aminmax", "amax", "amin", "argmax", "argmin", "bucketize", "corrcoef", "count_nonzero", "cov",
    "cummax", "cummin", "cumprod", "cumsum", "diff", "histc", "histogram", "histogramdd",
    "kthvalue", "logcumsumexp", "logsumexp", "max", "mean", "median", "min", "mode", "nanmean",
    "nanmedian", "nanquantile", "nansum", "prod", "quantile", "std", "std_mean", "sum",
    "sum_to_size", "trapezoid", "unique", "unique_consecutive", "var", "var_mean", "zeta",
}  # fmt: skip
COMPARISONS = {
    "allclose", "argsort", "clamp", "clamp_max", "clamp_min", "copysign", "eq", "equal", "fmax",
    "fmin", "ge", "gt", "heaviside", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "le", "lt", "maximum", "minimum", "msort", "nan_to_num", "ne", "nextafter",
    "searchsorted", "sgn", "sign", "signbit", "sort", "topk", "where",
}  # fmt: skip


def is_concerned(name: str) -> bool:
    """Whether an operator belongs to one of the groups."""
    plain = name.removeprefix("masked.")
    groups = (LINEAR_ALGEBRA, STATISTICS, COMPARISONS)
    return plain.startswith("linalg.") or any(plain in group for group in groups)


def nonfinite(run: Run, sample: Sample) -> None:
    """The plain call with NaN or an infinity in one argument: values, `info` and errors are the CPU's."""
    tried = False
    for number, tensor in enumerate(Arguments.of(sample).tensors()):
        if not is_floating(tensor) or number == run.compared.get("spared"):
            continue
        for value in VALUES if run.compared.get("infinity", True) else VALUES[:1]:
            compare_call(run, f"{value} in tensor {number}", planted(sample, number, value))
            tried = True
    if not tried:
        raise NotApplicable


def is_floating(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.numel() > 0 and tensor.is_floating_point()


def planted(sample: Sample, number: int, value: float) -> Arguments:
    """Return a sample's arguments with the value in the middle of one tensor."""
    mine = Arguments.of(sample).map(
        lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
    )
    tensor = mine.tensors()[number]
    tensor[tuple(size // 2 for size in tensor.shape)] = value
    return mine
