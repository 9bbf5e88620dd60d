"""The unary operations in numpy and scipy."""

from __future__ import annotations

from typing import Any

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
from scipy import special  # type: ignore[import-untyped]


def _sign(x: Values) -> Values:
    return np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(x.dtype)


def _relu(x: Values) -> Values:
    return np.where(x < 0, np.zeros_like(x), x)


def clamp(x: Values, a: Any, b: Any) -> Values:
    # In this form any NaN gives NaN.
    return np.minimum(np.maximum(x, a), b)


def _normal_cdf(x: Values) -> Values:
    return special.ndtr(x)


def _tanh_cdf(x: Values) -> Values:
    return special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


def gelu_slope(x: Values) -> Values:
    return _normal_cdf(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gelu_tanh_slope(x: Values) -> Values:
    share = _tanh_cdf(x)
    inner = 2 * np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x * x)
    return share + x * share * (1 - share) * inner


def _sigmoid(x: Values) -> Values:
    if np.iscomplexobj(x):
        return np.asarray(1 / (1 + np.exp(-x)))
    return special.expit(x)


def silu_slope(x: Values) -> Values:
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


def _digamma(x: Values) -> Values:
    # scipy does not return infinity at 0.
    return np.where(x == 0, np.copysign(np.inf, -x), special.digamma(x))


def _gamma_size(x: Values) -> Values:
    # Near their zeros and poles, lgamma and digamma are differences of terms of this magnitude.
    return np.abs(x) + 4 + 1 / np.abs(x - np.rint(x))


def _logit(x: Values, a: float) -> Values:
    return special.logit(np.clip(x, a, 1 - a) if a >= 0 else x)


def _one(x: Values, **params: Any) -> Values:
    return np.ones_like(x)


def _softshrink(x: Values, a: float) -> Values:
    return np.where(x > a, x - a, np.where(x < -a, x + a, 0 * x))


def _nan_to_num(x: Values, a: float, b: float, c: float) -> Values:
    return np.nan_to_num(x, nan=a, posinf=b, neginf=c)


UNARY = [
    operation("abs", np.abs, NUMBERS, **ANYWHERE),
    operation("neg", np.negative, NUMBERS, **ANYWHERE),
    operation("sign", _sign, BOOL + REAL),
    operation("sgn", np.sign, COMPLEX),
    operation("sgn", _sign, REAL),
    operation("reciprocal", np.reciprocal, SMOOTH, **ANYWHERE),
    operation("sqrt", np.sqrt, SMOOTH, domain=(0.0, 30.0)),
    operation("rsqrt", lambda x: 1 / np.sqrt(x), SMOOTH, domain=(0.0, 30.0)),
    operation("exp", np.exp, SMOOTH, domain=(-9.0, 9.0)),
    operation("exp2", lambda x: np.power(2.0, x), SMOOTH, domain=(-9.0, 9.0)),
    operation("expm1", np.expm1, SMOOTH),
    operation("log", np.log, SMOOTH, domain=(0.0, 30.0)),
    operation("log2", np.log2, SMOOTH, domain=(0.0, 30.0)),
    operation("log10", np.log10, SMOOTH, domain=(0.0, 30.0)),
    operation("log1p", np.log1p, SMOOTH, domain=(-1.0, 9.0)),
    operation("sin", np.sin, SMOOTH),
    operation("cos", np.cos, SMOOTH),
    operation("tan", np.tan, SMOOTH, domain=(-1.5, 1.5)),
    operation("asin", np.arcsin, SMOOTH, domain=(-1.0, 1.0)),
    operation("acos", np.arccos, SMOOTH, domain=(-1.0, 1.0)),
    operation("atan", np.arctan, SMOOTH),
    operation("sinh", np.sinh, SMOOTH),
    operation("cosh", np.cosh, SMOOTH),
    operation("tanh", np.tanh, SMOOTH),
    operation("asinh", np.arcsinh, SMOOTH),
    operation("acosh", np.arccosh, SMOOTH, domain=(1.0, 9.0)),
    operation("atanh", np.arctanh, SMOOTH, domain=(-1.0, 1.0)),
    operation("erf", special.erf),
    operation("erfc", special.erfc),
    operation("erfcx", special.erfcx, domain=(-3.0, 30.0)),
    operation("sigmoid", _sigmoid, SMOOTH, domain=(-9.0, 9.0)),
    operation("floor", np.floor, REAL, **ANYWHERE),
    operation("ceil", np.ceil, REAL, **ANYWHERE),
    operation("trunc", np.trunc, REAL, **ANYWHERE),
    operation("round", np.rint, FLOATING, **ANYWHERE),
    operation("round", lambda x: x, INTEGERS),
    operation("frac", lambda x: x - np.trunc(x), **ANYWHERE),
    operation("relu", _relu, REAL),
    operation("clamp", clamp, REAL, params={"a": -1.5, "b": 2.0}, integer_params={"a": 2, "b": 7}),
    operation("leaky_relu", lambda x, a: np.where(x > 0, x, a * x), params={"a": 0.125}),
    operation("elu", _elu, params={"a": 1.5, "b": 1.25, "c": 0.75}),
    operation("gelu", lambda x: x * _normal_cdf(x), specials=False),
    operation("gelu_tanh", lambda x: x * _tanh_cdf(x), specials=False),
    operation("silu", lambda x: x * _sigmoid(x), SMOOTH, specials=False),
    operation("softplus", _softplus, domain=(-9.0, 9.0), params={"a": 2.0, "b": 16.0}),
    operation(
        "threshold",
        lambda x, a, b: np.where(x <= a, np.asarray(b).astype(x.dtype), x),
        REAL,
        params={"a": 0.5, "b": -3.0},
        integer_params={"a": 5, "b": 9},
    ),
    operation("logical_not", lambda x: x == 0, ALL, to_bool=True),
    operation("bitwise_not", _bitwise_not, BOOL + INTEGERS),
    operation("isnan", np.isnan, ALL, to_bool=True),
    operation("isinf", np.isinf, ALL, to_bool=True),
    operation("isfinite", np.isfinite, ALL, to_bool=True),
    operation("signbit", _signbit, REAL, to_bool=True),
    operation("conj", np.conj, NUMBERS),
    operation("erfinv", special.erfinv, domain=(-1.0, 1.0), signed_zeros=False),
    operation("lgamma", special.gammaln, domain=(-9.0, 20.0), specials=False, scale=_gamma_size),
    operation("digamma", _digamma, domain=(-9.0, 20.0), scale=_gamma_size),
    operation("logit", _logit, domain=(0.0, 1.0), specials=False, scale=_one, params={"a": -1.0}),
    operation("logit", _logit, specials=False, scale=_one, params={"a": 0.125}),
    operation("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    operation("hardswish", lambda x: x * (np.clip(x + 3, 0, 6) / 6)),
    operation("hardshrink", lambda x, a: np.where(np.abs(x) <= a, 0.0, x), params={"a": 0.5}),
    operation("softshrink", _softshrink, params={"a": 0.5}, signed_zeros=False),
    operation(
        "mish", lambda x: x * np.tanh(np.logaddexp(0, x)), domain=(-9.0, 9.0), specials=False
    ),
    operation("log_sigmoid", special.log_expit, domain=(-20.0, 20.0), signed_zeros=False),
    operation("isposinf", np.isposinf, FLOATING, to_bool=True),
    operation("isposinf", np.zeros_like, INTEGERS + BOOL, to_bool=True),
    operation("isneginf", np.isneginf, FLOATING, to_bool=True),
    operation("isneginf", np.zeros_like, INTEGERS + BOOL, to_bool=True),
    operation("angle", lambda x: np.where(np.isnan(x), x, np.pi * (x < 0)), FLOATING),
    operation("angle", np.angle, COMPLEX),
    operation("nan_to_num", _nan_to_num, FLOATING, params={"a": 0.5, "b": 7.0, "c": -9.0}),
    operation("nan_to_num", lambda x, **_: x, INTEGERS, integer_params={"a": 5, "b": 7, "c": 9}),
    operation("nan_to_num", lambda x, **_: x, COMPLEX, params={"a": 0.5, "b": 7.0, "c": -9.0}),
]

# The activations of matmul and gated, by their names in the headers.
ACTIVATIONS = {
    str(op): op.compute for op in UNARY if op.name in ("relu", "gelu", "gelu_tanh", "silu")
}
