"""The required accuracy of each operation: one table, four classes.

exact         copies, comparisons, integers, and operations that IEEE 754 rounds correctly
ulp           units in the last place of the element type, from OpenCL's list
accumulate    sums: bounded by the elements' rounding errors; data with exact sums must be exact
statistical   random numbers of a device with its own generator
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from kernels.support import Case, Support
from numpy.typing import NDArray

# Correctly rounded: half a unit from the exact result, plus the error of the oracle itself.
EXACT = 0.5

# For float32 and float64. Operations that are not listed are exact. OpenCL does not specify gelu
# and similar functions, which are sums and products of a few functions with 4 units.
ULP = {
    "rsqrt": 2,
    "log1p": 2,
    "exp": 3,
    "exp2": 3,
    "expm1": 3,
    "log": 3,
    "log2": 3,
    "log10": 3,
    "reciprocal": 1,
    "sin": 4,
    "cos": 4,
    "asin": 4,
    "acos": 4,
    "asinh": 4,
    "acosh": 4,
    "atanh": 5,
    "sinh": 4,
    "cosh": 4,
    "tan": 5,
    "tanh": 5,
    "atan": 5,
    "atan2": 6,
    "pow": 16,
    "erf": 16,
    "erfc": 16,
    "sigmoid": 6,
    "silu": 6,
    "elu": 6,
    "gelu": 24,
    "gelu_tanh": 28,  # its formula in float32 has an error of 26 near -4
    "softplus": 6,
    "leaky_relu": 1,
    "remainder": 1,
    "add": 1,
    "sub": 1,
    "lerp": 3,
    "addcmul": 2,
    "addcdiv": 3,
    "sigmoid_grad": 4,
    "tanh_grad": 4,
    "gelu_grad": 24,
    "gelu_tanh_grad": 24,
    "silu_grad": 12,
    "erfinv": 4,
    "lgamma": 8,
    "digamma": 8,
    "erfcx": 16,
    "logit": 6,
    "hardsigmoid": 2,
    "hardswish": 3,
    "mish": 16,
    "log_sigmoid": 6,
    "angle": 5,
    "hypot": 4,
    "logaddexp": 6,
    "logaddexp2": 6,
    "xlogy": 4,
    "squared_difference": 2,
    "smooth_l1": 3,
    "huber": 3,
    "leaky_relu_grad": 1,
    "elu_grad": 6,
    "elu_grad_from_result": 4,
    "mish_grad": 32,
    "hardswish_grad": 4,
    "hardsigmoid_grad": 1,
    "softplus_grad": 6,
    "log_sigmoid_grad": 6,
    "logit_grad": 4,
    "gamma_grad": 64,
    "dirichlet_grad": 64,
    "uniform": 2,
    "normal": 16,
    "exponential": 8,
    "unscale": 1,
    "softmax": 8,
    "log_softmax": 4,
    "sequence": 1,
}

# Narrower types are computed in float32, with one more rounding.
NARROW_ULP = 1.0
# Parts of complex results are sums of products of these functions, in units of the absolute value.
COMPLEX_FACTOR = 4.0

FLOATING = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def ulp(case: Case, support: Support) -> float:
    """The tolerance of an operation on floating-point or complex numbers."""
    units = ULP.get(case.op, EXACT)
    if case.dtype in ("float16", "bfloat16") and units > EXACT:
        units = NARROW_ULP
    if case.dtype in COMPLEX:
        units = max(units, 1.0) * COMPLEX_FACTOR
    if case.dtype in ("float64", "complex128"):
        units += 1.0  # the oracle computes in the same type
    return support.tolerance(case, units)


def _info(dtype: np.dtype[Any]) -> Any:
    real = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}
    finfo: Any = ml_dtypes.finfo
    return finfo(real.get(dtype.name, dtype))


def largest(dtype: np.dtype[Any]) -> float:
    """The largest finite number of a floating or complex type."""
    return float(_info(dtype).max)


def smallest_normal(dtype: np.dtype[Any]) -> float:
    """The smallest positive number that is not denormal."""
    return float(_info(dtype).smallest_normal)


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Half a unit in the last place of 1."""
    return float(_info(dtype).eps) / 2


def accumulator(dtype: str) -> str:
    """The type in which sums of elements are at least calculated."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def error_of_sum(dtype: str, count: float, total: Any) -> Any:
    """The error of a sum of `count` terms whose magnitudes add up to `total`."""
    return count * unit_roundoff(np.dtype(accumulator(dtype))) * total


def spacing(magnitude: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """One unit in the last place of `dtype`, at these numbers."""
    magnitude = np.clip(np.abs(magnitude), smallest_normal(dtype), largest(dtype))
    _, exponent = np.frexp(magnitude)
    return np.asarray(np.ldexp(1.0, exponent - 1 - int(_info(dtype).nmant)))
