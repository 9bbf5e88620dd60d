"""What each operation means, in numpy and scipy: never by the code under test.

Functions get float64, complex128, int64 or bool arrays and return the same or bool; the caller
rounds once, to the element type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from kernels import tolerances
from scipy import special  # type: ignore[import-untyped]

# Arrays of one of those types.
Values: TypeAlias = Any

BOOL = ("bool",)
INTEGERS = tolerances.INTEGERS
FLOATING = tolerances.FLOATING
COMPLEX = tolerances.COMPLEX
REAL = INTEGERS + FLOATING
NUMBERS = REAL + COMPLEX
ALL = BOOL + NUMBERS


def _zero(*inputs: Values, **params: Any) -> float:
    return 0.0


@dataclass(frozen=True)
class Operation:
    """One operation of an elementwise family."""

    name: str
    compute: Callable[..., Values]
    dtypes: tuple[str, ...]
    # Where random inputs come from; special values are added if `specials`.
    domain: tuple[float, float] = (-4.0, 4.0)
    specials: bool = True
    to_bool: bool = False
    # Whether 0 and -0 are told apart in results.
    signed_zeros: bool = True
    # The size of the terms whose difference the result is, for the tolerance.
    scale: Callable[..., Any] = _zero
    # Arguments of the device's function beyond the arrays.
    params: dict[str, Any] = field(default_factory=dict)
    # What those are for integers.
    integer_params: dict[str, Any] = field(default_factory=dict)

    def parameters(self, dtype: str) -> dict[str, Any]:
        """The parameters for arrays of this type."""
        return self.integer_params if dtype in INTEGERS + BOOL else self.params

    def __str__(self) -> str:
        return self.name


def wide(values: Values) -> Values:
    """The values in the type that oracles compute in."""
    if values.dtype.kind == "b":
        return values
    if np.iscomplexobj(values):
        return values.astype(np.complex128)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    return values.astype(np.float64)


def _sign(x: Values) -> Values:
    return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(x.dtype)


def _relu(x: Values) -> Values:
    return np.where(x < 0, np.zeros_like(x), x)


def _clamp(x: Values, a: Any, b: Any) -> Values:
    # Written for NaN: any of them gives NaN.
    return np.minimum(np.maximum(x, a), b)


def _normal_cdf(x: Values) -> Values:
    return special.ndtr(x)


def _tanh_cdf(x: Values) -> Values:
    return special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def _gelu_slope(x: Values) -> Values:
    return _normal_cdf(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def _gelu_tanh_slope(x: Values) -> Values:
    share = _tanh_cdf(x)
    inner = 2 * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x * x)
    return share + x * share * (1 - share) * inner


def _sigmoid(x: Values) -> Values:
    if np.iscomplexobj(x):
        return np.asarray(1 / (1 + np.exp(-x)))
    return special.expit(x)


def _silu_slope(x: Values) -> Values:
    share = _sigmoid(x)
    return share * (1 + x * (1 - share))


def _bitwise_not(x: Values) -> Values:
    return np.invert(x)


def _softplus(x: Values, a: float, b: float) -> Values:
    return np.where(a * x > b, x, np.log1p(np.exp(a * x)) / a)


def _elu(x: Values, a: float, b: float, c: float) -> Values:
    return np.where(x > 0, b * x, b * a * np.expm1(c * x))


def _signbit(x: Values) -> Values:
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


def _op(
    name: str, compute: Callable[..., Values], dtypes: tuple[str, ...] = FLOATING, **more: Any
) -> Operation:
    return Operation(name, compute, dtypes, **more)


_SMOOTH = FLOATING + COMPLEX
_ANYWHERE: dict[str, Any] = {"domain": (-20.0, 20.0)}

UNARY = [
    _op("abs", np.abs, NUMBERS, **_ANYWHERE),
    _op("neg", np.negative, NUMBERS, **_ANYWHERE),
    _op("sign", _sign, BOOL + REAL),
    _op("sgn", np.sign, COMPLEX),
    _op("sgn", _sign, REAL),
    _op("reciprocal", np.reciprocal, _SMOOTH, **_ANYWHERE),
    _op("sqrt", np.sqrt, _SMOOTH, domain=(0.0, 30.0)),
    _op("rsqrt", lambda x: 1 / np.sqrt(x), _SMOOTH, domain=(0.0, 30.0)),
    _op("exp", np.exp, _SMOOTH, domain=(-9.0, 9.0)),
    _op("exp2", lambda x: np.power(2.0, x), _SMOOTH, domain=(-9.0, 9.0)),
    _op("expm1", np.expm1, _SMOOTH),
    _op("log", np.log, _SMOOTH, domain=(0.0, 30.0)),
    _op("log2", np.log2, _SMOOTH, domain=(0.0, 30.0)),
    _op("log10", np.log10, _SMOOTH, domain=(0.0, 30.0)),
    _op("log1p", np.log1p, _SMOOTH, domain=(-1.0, 9.0)),
    _op("sin", np.sin, _SMOOTH),
    _op("cos", np.cos, _SMOOTH),
    _op("tan", np.tan, _SMOOTH, domain=(-1.5, 1.5)),
    _op("asin", np.arcsin, _SMOOTH, domain=(-1.0, 1.0)),
    _op("acos", np.arccos, _SMOOTH, domain=(-1.0, 1.0)),
    _op("atan", np.arctan, _SMOOTH),
    _op("sinh", np.sinh, _SMOOTH),
    _op("cosh", np.cosh, _SMOOTH),
    _op("tanh", np.tanh, _SMOOTH),
    _op("asinh", np.arcsinh, _SMOOTH),
    _op("acosh", np.arccosh, _SMOOTH, domain=(1.0, 9.0)),
    _op("atanh", np.arctanh, _SMOOTH, domain=(-1.0, 1.0)),
    _op("erf", special.erf),
    _op("erfc", special.erfc),
    _op("sigmoid", _sigmoid, _SMOOTH, domain=(-9.0, 9.0)),
    _op("floor", np.floor, REAL, **_ANYWHERE),
    _op("ceil", np.ceil, REAL, **_ANYWHERE),
    _op("trunc", np.trunc, REAL, **_ANYWHERE),
    _op("round", np.rint, FLOATING, **_ANYWHERE),
    _op("round", lambda x: x, INTEGERS),
    _op("frac", lambda x: x - np.trunc(x), **_ANYWHERE),
    _op("relu", _relu, REAL),
    _op("clamp", _clamp, REAL, params={"a": -1.5, "b": 2.0}, integer_params={"a": 2, "b": 7}),
    _op("leaky_relu", lambda x, a: np.where(x > 0, x, a * x), params={"a": 0.125}),
    _op("elu", _elu, params={"a": 1.5, "b": 1.25, "c": 0.75}),
    _op("gelu", lambda x: x * _normal_cdf(x), specials=False),
    _op("gelu_tanh", lambda x: x * _tanh_cdf(x), specials=False),
    _op("silu", lambda x: x * _sigmoid(x), _SMOOTH, specials=False),
    _op("softplus", _softplus, domain=(-9.0, 9.0), params={"a": 2.0, "b": 16.0}),
    _op(
        "threshold",
        lambda x, a, b: np.where(x <= a, np.asarray(b).astype(x.dtype), x),
        REAL,
        params={"a": 0.5, "b": -3.0},
        integer_params={"a": 5, "b": 9},
    ),
    _op("logical_not", lambda x: x == 0, ALL, to_bool=True),
    _op("bitwise_not", _bitwise_not, BOOL + INTEGERS),
    _op("isnan", np.isnan, ALL, to_bool=True),
    _op("isinf", np.isinf, ALL, to_bool=True),
    _op("isfinite", np.isfinite, ALL, to_bool=True),
    _op("signbit", _signbit, REAL, to_bool=True),
    _op("conj", np.conj, NUMBERS),
]


def _power(a: Values, b: Values) -> Values:
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


def _divide_trunc(a: Values, b: Values) -> Values:
    if a.dtype.kind not in "iu":
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a))


def _add(a: Values, b: Values, alpha: Any) -> Values:
    return a | b if a.dtype == bool else a + alpha * b


def _size(a: Values, b: Values, **params: Any) -> Values:
    return np.abs(a) + np.abs(params.get("alpha", 1) * b)


def _grad_size(a: Values, b: Values) -> Values:
    return np.abs(a) * np.maximum(1.0, np.abs(b))


_COMPARED: dict[str, Any] = {"to_bool": True}
_ALPHA: dict[str, Any] = {"params": {"alpha": 0.5}, "integer_params": {"alpha": 3}}
_GRAD: dict[str, Any] = {"specials": False, "scale": _grad_size}

BINARY = [
    _op("add", _add, ALL, scale=_size, **_ALPHA, **_ANYWHERE),
    _op("sub", lambda a, b, alpha: a - alpha * b, NUMBERS, scale=_size, **_ALPHA, **_ANYWHERE),
    _op("mul", lambda a, b: a * b, ALL),
    _op("div", lambda a, b: a / b, _SMOOTH),
    _op("div_trunc", _divide_trunc, REAL),
    _op("div_floor", np.floor_divide, REAL),
    _op("remainder", np.remainder, REAL, scale=lambda a, b: np.abs(b), signed_zeros=False),
    _op("fmod", np.fmod, REAL),
    _op("pow", _power, FLOATING, domain=(0.0, 4.0)),
    _op("pow", _power, INTEGERS, specials=False),
    _op("pow", _power, COMPLEX, specials=False),
    _op("atan2", np.arctan2),
    _op("maximum", np.maximum, BOOL + REAL, signed_zeros=False),
    _op("minimum", np.minimum, BOOL + REAL, signed_zeros=False),
    _op("eq", np.equal, ALL, **_COMPARED),
    _op("ne", np.not_equal, ALL, **_COMPARED),
    _op("lt", np.less, BOOL + REAL, **_COMPARED),
    _op("le", np.less_equal, BOOL + REAL, **_COMPARED),
    _op("gt", np.greater, BOOL + REAL, **_COMPARED),
    _op("ge", np.greater_equal, BOOL + REAL, **_COMPARED),
    _op("logical_and", np.logical_and, ALL, **_COMPARED),
    _op("logical_or", np.logical_or, ALL, **_COMPARED),
    _op("logical_xor", np.logical_xor, ALL, **_COMPARED),
    _op("bitwise_and", np.bitwise_and, BOOL + INTEGERS),
    _op("bitwise_or", np.bitwise_or, BOOL + INTEGERS),
    _op("bitwise_xor", np.bitwise_xor, BOOL + INTEGERS),
    _op("sigmoid_grad", lambda a, b: a * (1 - b) * b, **{**_GRAD, "domain": (0.0, 1.0)}),
    _op("tanh_grad", lambda a, b: a * (1 - b * b), **{**_GRAD, "domain": (-1.0, 1.0)}),
    _op(
        "relu_grad",
        lambda a, b, alpha: np.where(b <= alpha, np.zeros_like(a), a),
        REAL,
        params={"alpha": 0.5},
        integer_params={"alpha": 3},
    ),
    _op("gelu_grad", lambda a, b: a * _gelu_slope(b), **_GRAD),
    _op("gelu_tanh_grad", lambda a, b: a * _gelu_tanh_slope(b), **_GRAD),
    _op("silu_grad", lambda a, b: a * _silu_slope(b), **_GRAD),
]


def _lerp(a: Values, b: Values, c: Values) -> Values:
    return np.where(np.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c))


def _sum_size(a: Values, b: Values, c: Values, **params: Any) -> Values:
    return np.abs(a) + np.abs(params.get("value", 1) * b * c)


def _lerp_size(a: Values, b: Values, c: Values) -> Values:
    return (np.abs(a) + np.abs(b)) * (1.0 + np.abs(c))


def _quotient_size(a: Values, b: Values, c: Values, value: Any) -> Values:
    return np.abs(a) + np.abs(value * b / c)


_VALUE: dict[str, Any] = {"params": {"value": 0.5}, "integer_params": {"value": 3}}

TERNARY = [
    _op("where", lambda a, b, c: np.where(a, b, c), ALL),
    _op("clamp", _clamp, REAL, signed_zeros=False),
    _op("lerp", _lerp, _SMOOTH, specials=False, scale=_lerp_size),
    _op(
        "addcmul",
        lambda a, b, c, value: a + value * b * c,
        NUMBERS,
        specials=False,
        scale=_sum_size,
        **_VALUE,
    ),
    _op(
        "addcdiv",
        lambda a, b, c, value: a + value * b / c,
        _SMOOTH,
        specials=False,
        scale=_quotient_size,
        **_VALUE,
    ),
]


def _special(op: Operation, dtype: np.dtype[Any]) -> list[Any]:
    if not op.specials or dtype.kind == "b":
        return []
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return [info.min, info.max, info.max - 1, 0, 1, 2]
    if dtype.kind == "c":
        # Elsewhere the parts of infinite complex results are nobody's promise.
        return [0, complex(np.nan, 1), complex(1, np.inf), complex(np.inf, np.nan)] * op.to_bool
    tiny = tolerances.smallest_normal(dtype)
    simple = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5]
    return [*simple, tiny, -tiny, tiny / 4, tolerances.largest(dtype)]


def inputs(
    op: Operation, dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator
) -> Values:
    """Random elements of the operation's domain, with special ones among them."""
    low, high = op.domain
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        values = rng.integers(max(-20, np.iinfo(dtype).min), 20, shape).astype(dtype)
    elif dtype.kind == "c":
        real, imaginary = rng.uniform(low, high, (2, *shape))
        values = np.asarray(real + 1j * imaginary).astype(dtype)
    else:
        values = np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    chosen = _special(op, dtype)
    if values.size >= 4 * len(chosen) > 0:
        for order in (chosen, chosen[::-1]):
            places = rng.choice(values.size, len(chosen), replace=False)
            values.reshape(-1)[places] = np.asarray(order).astype(dtype)
    return values
