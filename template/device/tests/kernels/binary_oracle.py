"""The binary and ternary operations in numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from kernels.oracle import (
    ALL,
    ANYWHERE,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGERS,
    NUMBERS,
    REAL,
    SMOOTH,
    Values,
    operation,
)
from kernels.unary_oracle import clamp, gelu_slope, gelu_tanh_slope, silu_slope
from scipy import special  # type: ignore[import-untyped]


def _power(a: Values, b: Values) -> Values:
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


def _divide_trunc(a: Values, b: Values) -> Values:
    if a.dtype.kind not in "iu":
        # float32 numbers are divided in float32, where a quotient may be rounded to an integer.
        with np.errstate(over="ignore"):
            narrow = a.astype(np.float32), b.astype(np.float32)
        if all(map(partial(np.array_equal, equal_nan=True), narrow, (a, b))):
            return np.trunc(narrow[0] / narrow[1])
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a))


def _sub(a: Values, b: Values, alpha: Any) -> Values:
    return a - alpha * b


def _add(a: Values, b: Values, alpha: Any) -> Values:
    return a | b if a.dtype == bool else a + alpha * b


def _size(a: Values, b: Values, **params: Any) -> Values:
    return np.abs(a) + np.abs(params.get("alpha", 1) * b)


def _grad_size(a: Values, b: Values, **params: Any) -> Values:
    return np.abs(a) * np.maximum(1.0, np.abs(b))


def _nextafter(dtype: Any) -> Callable[..., Values]:
    def result(a: Values, b: Values) -> Values:
        step = np.nextafter(a.astype(dtype), b.astype(dtype))
        # For two zeros, IEEE 754 returns the second; numpy's float16 returns the first.
        return np.asarray(np.where(a == b, b, step), np.float64)

    return result


def _shift_left(a: Values, b: Values) -> Values:
    return np.where((b < 0) | (b > 63), 0, a << np.clip(b, 0, 63))


def _shift_right(a: Values, b: Values) -> Values:
    return np.where((b < 0) | (b > 63), np.where(a < 0, -1, 0), a >> np.clip(b, 0, 63))


def _square_size(a: Values, b: Values) -> Values:
    return np.abs(a) ** 2 + np.abs(b) ** 2


def _smooth_l1(a: Values, b: Values, alpha: float) -> Values:
    distance = np.abs(a - b)
    return np.where(distance < alpha, distance**2 / (2 * alpha), distance - alpha / 2)


def _huber(a: Values, b: Values, alpha: float) -> Values:
    distance = np.abs(a - b)
    return np.where(distance <= alpha, distance**2 / 2, alpha * (distance - alpha / 2))


def _elu_grad(a: Values, b: Values, alpha: float, beta: float, gamma: float) -> Values:
    return a * np.where(b <= 0, beta * alpha * gamma * np.exp(gamma * b), beta)


def _elu_grad_from_result(a: Values, b: Values, alpha: float, beta: float, gamma: float) -> Values:
    return a * np.where(b <= 0, gamma * (b + alpha * beta), beta)


def _mish_grad(a: Values, b: Values) -> Values:
    squashed = np.tanh(np.logaddexp(0, b))
    return a * (squashed + b * special.expit(b) * (1 - squashed**2))


def _hardswish_grad(a: Values, b: Values) -> Values:
    return a * np.where(b <= -3, 0, np.where(b < 3, b / 3 + 0.5, 1))


def _logit_grad(a: Values, b: Values, alpha: float) -> Values:
    clamped = (b < alpha) | (b > 1 - alpha)
    return np.where(clamped, 0.0, a / (b * (1 - b))) if alpha >= 0 else a / (b * (1 - b))


# --- Derivatives of draws with respect to their parameters: integrals, by Gauss-Legendre ---

# In float64 the integrals are less accurate than a kernel; test_draw.py tests that type.
_NARROW = ("float16", "bfloat16", "float32")
_INTEGRAL: dict[str, Any] = {"specials": False, "large": False}

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(300)
# Powers of nodes are dense near 0, where integrands have roots and logarithms.
_POINTS = ((_NODES + 1) / 2) ** 4
_SHARES = _WEIGHTS * 2 * ((_NODES + 1) / 2) ** 3


def _log_moment(power: Values, constant: Values, function: Callable[[Values], Values]) -> Values:
    """The integral from 0 to 1 of s ** (power - 1) * (log(s) + constant) * function(s)."""
    power, constant = power[..., None], constant[..., None]
    at_zero = function(np.zeros(1))
    weight = _POINTS ** (power - 1) * (np.log(_POINTS) + constant)
    rest = ((function(_POINTS) - at_zero) * weight * _SHARES).sum(-1)
    return (at_zero * (constant / power - 1 / power**2))[..., 0] + rest


def _moment(power: Values, function: Callable[[Values], Values]) -> Values:
    """The integral from 0 to 1 of s ** (power - 1) * function(s)."""
    power = power[..., None]
    at_zero = function(np.zeros(1))
    rest = ((function(_POINTS) - at_zero) * _POINTS ** (power - 1) * _SHARES).sum(-1)
    return (at_zero / power)[..., 0] + rest


def _gamma_grad(a: Values, b: Values) -> Values:
    x, psi = b[..., None], special.digamma(a)
    less = _log_moment(a, np.log(b) - psi, lambda s: np.exp(-x * (s - 1)))
    far = 60 * _POINTS
    density = (1 + far / x) ** (a[..., None] - 1) * np.exp(-far)
    more = (density * (np.log(x + far) - psi[..., None]) * 60 * _SHARES).sum(-1)
    return np.where(b < a + 1, -b * less, more)


def _dirichlet_grad(a: Values, b: Values, c: Values) -> Values:
    x, power = a[..., None], b[..., None]
    rest = np.where((a <= 1) & (c > b), c - b, np.nan)
    psi = special.digamma(b) - special.digamma(b + rest)
    less = _log_moment(
        b, np.log(a) - psi, lambda s: ((1 - x * s) / (1 - x)) ** (rest[..., None] - 1)
    )
    more = _moment(
        rest,
        lambda s: ((1 - (1 - x) * s) / x) ** (power - 1) * (np.log1p((x - 1) * s) - psi[..., None]),
    )
    return np.where(a < 0.5, -a / (1 - a) * less, more)


_ELU: dict[str, Any] = {"params": {"alpha": 1.5, "beta": 1.25, "gamma": 0.75}}
_COMPARED: dict[str, Any] = {"to_bool": True}
_ALPHA: dict[str, Any] = {"params": {"alpha": 0.5}, "integer_params": {"alpha": 3}}
_PLAIN: dict[str, Any] = {"params": {"alpha": 1}, "integer_params": {"alpha": 1}}
_GRAD: dict[str, Any] = {"specials": False, "scale": _grad_size, "signed_zeros": False}

BINARY = [
    operation("add", _add, ALL, scale=_size, **_ALPHA, **ANYWHERE),
    operation("sub", _sub, NUMBERS, scale=_size, **_ALPHA, **ANYWHERE),
    # The most common arguments: a device may support only these.
    operation("add", _add, ALL, scale=_size, **_PLAIN, **ANYWHERE),
    operation("sub", _sub, NUMBERS, scale=_size, **_PLAIN, **ANYWHERE),
    operation("mul", lambda a, b: a * b, ALL),
    operation("div", lambda a, b: a / b, SMOOTH),
    operation("div_trunc", _divide_trunc, REAL),
    operation("div_floor", np.floor_divide, REAL),
    operation("remainder", np.remainder, REAL, scale=lambda a, b: np.abs(b), signed_zeros=False),
    operation("fmod", np.fmod, REAL),
    operation("pow", _power, FLOATING, domain=(0.0, 4.0)),
    operation("pow", _power, INTEGERS, specials=False),
    operation("pow", _power, COMPLEX, specials=False),
    operation("atan2", np.arctan2),
    operation("maximum", np.maximum, BOOL + REAL, signed_zeros=False),
    operation("minimum", np.minimum, BOOL + REAL, signed_zeros=False),
    operation("eq", np.equal, ALL, **_COMPARED),
    operation("ne", np.not_equal, ALL, **_COMPARED),
    operation("lt", np.less, BOOL + REAL, **_COMPARED),
    operation("le", np.less_equal, BOOL + REAL, **_COMPARED),
    operation("gt", np.greater, BOOL + REAL, **_COMPARED),
    operation("ge", np.greater_equal, BOOL + REAL, **_COMPARED),
    operation("logical_and", np.logical_and, ALL, **_COMPARED),
    operation("logical_or", np.logical_or, ALL, **_COMPARED),
    operation("logical_xor", np.logical_xor, ALL, **_COMPARED),
    operation("bitwise_and", np.bitwise_and, BOOL + INTEGERS),
    operation("bitwise_or", np.bitwise_or, BOOL + INTEGERS),
    operation("bitwise_xor", np.bitwise_xor, BOOL + INTEGERS),
    operation("sigmoid_grad", lambda a, b: a * (1 - b) * b, **{**_GRAD, "domain": (0.0, 1.0)}),
    operation("tanh_grad", lambda a, b: a * (1 - b * b), **{**_GRAD, "domain": (-1.0, 1.0)}),
    operation(
        "relu_grad",
        lambda a, b, alpha: np.where(b <= alpha, np.zeros_like(a), a),
        REAL,
        params={"alpha": 0.5},
        integer_params={"alpha": 3},
    ),
    operation("gelu_grad", lambda a, b: a * gelu_slope(b), **_GRAD),
    operation("gelu_tanh_grad", lambda a, b: a * gelu_tanh_slope(b), **_GRAD),
    operation("silu_grad", lambda a, b: a * silu_slope(b), **_GRAD),
    operation("hypot", np.hypot),
    operation("copysign", np.copysign),
    operation("fmax", np.fmax, BOOL + REAL, signed_zeros=False),
    operation("fmin", np.fmin, BOOL + REAL, signed_zeros=False),
    operation("logaddexp", np.logaddexp, scale=_size),
    operation("logaddexp2", np.logaddexp2, scale=_size),
    operation("nextafter", np.nextafter, ("float64",)),
    operation("nextafter", _nextafter("float32"), ("float32",)),
    operation("nextafter", _nextafter("float16"), ("float16",)),
    operation("nextafter", _nextafter(ml_dtypes.bfloat16), ("bfloat16",)),
    operation("heaviside", lambda a, b: np.where(a == 0, b, a > 0), BOOL + REAL),
    operation("xlogy", special.xlogy, domain=(0.0, 9.0)),
    operation("gcd", np.gcd, INTEGERS, specials=False),
    operation("lcm", np.lcm, INTEGERS, specials=False),
    operation("shift_left", _shift_left, INTEGERS),
    operation("shift_right", _shift_right, INTEGERS),
    operation(
        "squared_difference", lambda a, b: (a - b) ** 2, NUMBERS, specials=False, scale=_square_size
    ),
    operation("smooth_l1", _smooth_l1, specials=False, scale=_size, params={"alpha": 1.5}),
    operation("huber", _huber, specials=False, scale=_size, params={"alpha": 1.5}),
    operation(
        "leaky_relu_grad",
        lambda a, b, alpha: np.where(b > 0, a, a * alpha),
        params={"alpha": 0.125},
    ),
    operation("elu_grad", _elu_grad, **_ELU, **_GRAD),
    operation("elu_grad_from_result", _elu_grad_from_result, **_ELU, **_GRAD),
    operation("mish_grad", _mish_grad, **_GRAD),
    operation("hardswish_grad", _hardswish_grad, **_GRAD),
    operation("hardsigmoid_grad", lambda a, b: np.where((b > -3) & (b < 3), a / 6, 0)),
    operation(
        "hardtanh_grad",
        lambda a, b, alpha, beta: np.where((b > alpha) & (b < beta), a, 0),
        specials=False,
        params={"alpha": -1.5, "beta": 2.0},
    ),
    operation(
        "shrink_grad",
        lambda a, b, alpha: np.where(np.abs(b) <= alpha, 0, a),
        params={"alpha": 0.5},
    ),
    operation(
        "softplus_grad",
        lambda a, b, alpha, beta: np.where(alpha * b > beta, a, a * special.expit(alpha * b)),
        params={"alpha": 2.0, "beta": 6.0},
        **_GRAD,
    ),
    operation("log_sigmoid_grad", lambda a, b: a * special.expit(-b), **_GRAD),
    operation("logit_grad", _logit_grad, params={"alpha": 0.125}, **_GRAD),
    operation(
        "logit_grad", _logit_grad, params={"alpha": -1.0}, **{**_GRAD, "domain": (0.01, 0.99)}
    ),
    operation("gamma_grad", _gamma_grad, _NARROW, domain=(0.05, 9.0), **_INTEGRAL),
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
    operation("where", lambda a, b, c: np.where(a, b, c), ALL),
    operation("clamp", clamp, REAL, signed_zeros=False),
    operation("lerp", _lerp, SMOOTH, specials=False, scale=_lerp_size),
    operation(
        "addcmul",
        lambda a, b, c, value: a + value * b * c,
        NUMBERS,
        specials=False,
        scale=_sum_size,
        **_VALUE,
    ),
    operation(
        "addcdiv",
        lambda a, b, c, value: a + value * b / c,
        SMOOTH,
        specials=False,
        scale=_quotient_size,
        **_VALUE,
    ),
    operation("dirichlet_grad", _dirichlet_grad, _NARROW, domain=(0.05, 0.95), **_INTEGRAL),
]
