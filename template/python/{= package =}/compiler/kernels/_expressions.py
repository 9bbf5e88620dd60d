"""Inductor's operations and indices in a language like C."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor.codegen.common import CSEVariable, OpOverrides
from torch._inductor.utils import IndentedBuffer, get_bounds_index_expr, upcast_compute_type
from torch._inductor.virtualized import V
from torch.utils._sympy.printers import ExprPrinter

from ...devices import dtype_support
from ._dialect import FUNCTIONS


class Indices(ExprPrinter):
    """Prints integer expressions. Python rounds a quotient down, and C toward zero."""

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:
        return self._quotient(*expr.args)

    def _print_ModularIndexing(self, expr: sympy.Expr) -> str:
        value, divisor, modulus = expr.args
        x = f"({self._print(value)})" if divisor == 1 else self._quotient(value, divisor)
        return self._rest(x, f"({self._print(modulus)})", value.is_nonnegative)

    def _print_PythonMod(self, expr: sympy.Expr) -> str:
        x, d = (f"({self._print(each)})" for each in expr.args)
        return self._rest(x, d, expr.args[0].is_nonnegative)

    def _quotient(self, value: sympy.Expr, divisor: sympy.Expr) -> str:
        x, d = f"({self._print(value)})", f"({self._print(divisor)})"
        return (
            f"({x} / {d})" if value.is_nonnegative else f"(({x} - (({x} % {d} + {d}) % {d})) / {d})"
        )

    @staticmethod
    def _rest(x: str, d: str, is_nonnegative: bool | None) -> str:
        return f"({x} % {d})" if is_nonnegative else f"(({x} % {d} + {d}) % {d})"

    def _print_Max(self, expr: sympy.Expr) -> str:
        return self._extreme(expr, ">")

    def _print_Min(self, expr: sympy.Expr) -> str:
        return self._extreme(expr, "<")

    def _extreme(self, expr: sympy.Expr, sign: str) -> str:
        first, *others = (f"({self._print(each)})" for each in expr.args)
        for other in others:
            first = f"({first} {sign} {other} ? {first} : {other})"
        return first

    def _print_Abs(self, expr: sympy.Expr) -> str:
        x = f"({self._print(expr.args[0])})"
        return f"({x} < 0 ? -{x} : {x})"

    def _print_Where(self, expr: sympy.Expr) -> str:
        condition, one, other = (self._print(each) for each in expr.args)
        return f"(({condition}) ? ({one}) : ({other}))"

    def _print_And(self, expr: sympy.Expr) -> str:
        return " && ".join(f"({self._print(each)})" for each in expr.args)

    def _print_Or(self, expr: sympy.Expr) -> str:
        return " || ".join(f"({self._print(each)})" for each in expr.args)

    def _print_Not(self, expr: sympy.Expr) -> str:
        return f"!({self._print(expr.args[0])})"

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return f"({_widest()})({self._print(expr.args[0])})"

    def _print_IntTrueDiv(self, expr: sympy.Expr) -> str:
        one, other = (self._print(each) for each in expr.args)
        return f"(({_widest()})({one}) / ({_widest()})({other}))"

    def _print_FloorToInt(self, expr: sympy.Expr) -> str:
        return f"(long)floor({self._print(expr.args[0])})"

    def _print_CeilToInt(self, expr: sympy.Expr) -> str:
        return f"(long)ceil({self._print(expr.args[0])})"

    def _print_TruncToInt(self, expr: sympy.Expr) -> str:
        return f"(long)({self._print(expr.args[0])})"

    def _print_RoundToInt(self, expr: sympy.Expr) -> str:
        return f"(long)rint({self._print(expr.args[0])})"

    def _print_RoundDecimal(self, expr: sympy.Expr) -> str:
        value, digits = expr.args
        scale = f"({_widest()})1e{abs(int(digits))}"
        up, down = ("*", "/") if digits >= 0 else ("/", "*")
        return f"(rint(({self._print(value)}) {up} {scale}) {down} {scale})"

    def _print_TruncToFloat(self, expr: sympy.Expr) -> str:
        return self._call("trunc", expr)

    def _print_floor(self, expr: sympy.Expr) -> str:
        return f"(long){self._call('floor', expr)}"

    def _print_ceiling(self, expr: sympy.Expr) -> str:
        return f"(long){self._call('ceil', expr)}"

    def _print_Function(self, expr: sympy.Expr) -> str:
        name = type(expr).__name__
        if not name.startswith("OpaqueUnaryFn_"):
            raise NotImplementedError(f"there are no kernels for the index {expr}")
        return self._call(name.removeprefix("OpaqueUnaryFn_"), expr)

    def _call(self, name: str, expr: sympy.Expr) -> str:
        return f"{name}(({_widest()})({self._print(expr.args[0])}))"

    def _print_Piecewise(self, expr: sympy.Expr) -> str:
        *others, (last, _) = expr.args
        text = self._print(last)
        for value, condition in reversed(others):
            text = f"(({self._print(condition)}) ? ({self._print(value)}) : ({text}))"
        return str(text)

    def _print_Infinity(self, expr: sympy.Expr) -> str:
        return "INFINITY"

    def _print_NegativeInfinity(self, expr: sympy.Expr) -> str:
        return "(-INFINITY)"

    def _print_NaN(self, expr: sympy.Expr) -> str:
        return "NAN"

    def _print_FloatPow(self, expr: sympy.Expr) -> str:
        base, exponent = (f"({_widest()})({self._print(each)})" for each in expr.args)
        return f"pow({base}, {exponent})"

    def _print_Pow(self, expr: sympy.Expr) -> str:
        if expr.exp.is_Integer and expr.exp >= 0:
            return str(super()._print_Pow(expr))
        return self._print_FloatPow(expr)

    def _print_PowByNatural(self, expr: sympy.Expr) -> str:
        base, exponent = expr.args
        if not exponent.is_Integer:
            return f"(long)rint({self._print_FloatPow(expr)})"  # exact below 2^53
        return "*".join([f"({self._print(base)})"] * int(exponent)) or "1"


def _widest() -> str:
    """Return the type for numbers computed from sizes, which are double in Python."""
    return "double" if dtype_support(torch.float64) == "supported" else "float"


def _is_floating(x: Any) -> bool:
    return bool(x.dtype.is_floating_point)


def _type(dtype: torch.dtype) -> str:
    return str(V.kernel.dialect.types[dtype])


class Expressions(OpOverrides):
    """Converts operations on typed variables to expressions."""

    @staticmethod
    def constant(value: Any, dtype: torch.dtype) -> str:
        return str(V.kernel.dialect.constant(value, upcast_compute_type(dtype)))

    @staticmethod
    def to_dtype(
        x: Any, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True
    ) -> str:
        dialect = V.kernel.dialect
        if dtype is torch.bool:
            return f"({x} != 0)"
        if not use_compute_types and upcast_compute_type(dtype) is not dtype:
            return str(dialect.unpack(dialect.pack(f"(float){x}", dtype), dtype))
        type_ = _type(dtype)
        if x.dtype is torch.bool:
            return f"({x} ? ({type_})1 : ({type_})0)"  # a conversion would not be vectorized
        # PyTorch wraps a value that does not fit in the type; in C that is undefined.
        is_small = dtype in (torch.uint8, torch.int8, torch.int16)
        return f"({type_})({'long' if is_small and _is_floating(x) else type_}){x}"

    @staticmethod
    def to_dtype_bitcast(x: Any, dtype: torch.dtype, src_dtype: torch.dtype) -> str:
        dialect = V.kernel.dialect
        small = dialect.memory_types
        bits = dialect.pack(f"{x}", src_dtype) if src_dtype in small else f"{x}"
        if dtype in small:
            return str(dialect.unpack(f"as_{dialect.memory_type(dtype)}({bits})", dtype))
        return f"as_{_type(dtype)}({bits})"

    @classmethod
    def index_expr(cls, expr: sympy.Expr, dtype: torch.dtype) -> Any:
        if dtype in (torch.int32, torch.int64):
            return cls._of_index(expr, V.kernel.get_index_dtype_as_torch_dtype())
        return cls._of_index(expr, upcast_compute_type(dtype))

    @classmethod
    def value_expr(cls, expr: sympy.Expr, dtype: torch.dtype) -> Any:
        return cls._of_index(expr, dtype)

    @staticmethod
    def _of_index(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        kernel = V.kernel
        text = kernel.index_to_str(kernel.prepare_indexing(expr))
        return kernel.cse.generate(
            kernel.compute,
            f"({_type(dtype)})({text})",
            bounds=get_bounds_index_expr(expr),
            dtype=dtype,
            shape=(),
        )

    @staticmethod
    def masked(mask: Any, body: Any, other: Any) -> Any:
        kernel = V.kernel
        scope = IndentedBuffer()
        with kernel.swap_buffers(scope):
            result = body()
        type_ = _type(result.dtype)
        variable = kernel.cse.newvar(dtype=result.dtype, shape=())
        kernel.compute.writeline(
            f"{kernel.declared(variable)} = {kernel.dialect.constant(other, result.dtype)};"
        )
        kernel.compute.writeline(f"if ({mask}) {{")
        with kernel.compute.indent():
            kernel.compute.splice(scope)
            kernel.compute.writeline(f"{variable} = ({type_}){result};")
        kernel.compute.writeline("}")
        return variable

    @staticmethod
    def where(a: Any, b: Any, c: Any) -> str:
        return f"{a} ? {b} : {c}"

    @staticmethod
    def add(a: Any, b: Any) -> str:
        return _wrapped(a, "+", b)

    @staticmethod
    def sub(a: Any, b: Any) -> str:
        return _wrapped(a, "-", b)

    @staticmethod
    def mul(a: Any, b: Any) -> str:
        return _wrapped(a, "*", b)

    @staticmethod
    def neg(x: Any) -> str:
        return (
            f"-{x}" if _is_floating(x) else str(V.kernel.dialect.wrapped("0", "-", str(x), x.dtype))
        )

    @staticmethod
    def abs(x: Any) -> str:
        return f"fabs({x})" if _is_floating(x) else f"{x} < 0 ? {Expressions.neg(x)} : {x}"

    @staticmethod
    def maximum(a: Any, b: Any) -> str:
        return f"{a} != {a} || {a} > {b} ? {a} : {b}"

    @staticmethod
    def minimum(a: Any, b: Any) -> str:
        return f"{a} != {a} || {a} < {b} ? {a} : {b}"

    @staticmethod
    def logical_and(a: Any, b: Any) -> str:
        return f"({a} != 0) & ({b} != 0)"

    @staticmethod
    def logical_or(a: Any, b: Any) -> str:
        return f"({a} != 0) | ({b} != 0)"

    @staticmethod
    def logical_xor(a: Any, b: Any) -> str:
        return f"({a} != 0) != ({b} != 0)"

    @staticmethod
    def bitwise_left_shift(x: Any, y: Any) -> str:
        unsigned = _type(x.dtype).removeprefix("s" if x.dtype is torch.int8 else "u")
        bits = x.dtype.itemsize * 8
        return f"{y} < 0 || {y} >= {bits} ? 0 : ({_type(x.dtype)})((u{unsigned}){x} << {y})"

    @staticmethod
    def bitwise_right_shift(x: Any, y: Any) -> str:
        last = x.dtype.itemsize * 8 - 1
        if not x.dtype.is_signed:
            return f"{y} < 0 || {y} > {last} ? 0 : {x} >> {y}"
        return f"{x} >> ({y} < 0 || {y} > {last} ? {last} : {y})"

    lshift = bitwise_left_shift  # type: ignore[assignment]
    rshift = bitwise_right_shift  # type: ignore[assignment]

    @staticmethod
    def randint64(seed: Any, offset: Any, low: Any, high: Any) -> str:
        """Return a 32-bit number of the sequence, the only kind that _random.py uses."""
        return f"philox_lane({seed}, {offset})"

    @staticmethod
    def isnan(x: Any) -> str:
        return f"{x} != {x}"

    @staticmethod
    def isinf(x: Any) -> str:
        return f"fabs({x}) == INFINITY"

    @staticmethod
    def signbit(x: Any) -> str:
        return f"signbit({x}) != 0" if _is_floating(x) else f"{x} < 0"

    @staticmethod
    def sign(x: Any) -> str:
        return f"({x} > 0) - ({x} < 0)"

    @staticmethod
    def rsqrt(x: Any) -> str:
        return f"1 / sqrt({x})"

    @staticmethod
    def round(x: Any) -> str:
        return f"rint({x})"

    @staticmethod
    def pow(a: Any, b: Any) -> str:
        type_ = _type(torch.promote_types(a.dtype, b.dtype))
        return f"pow(({type_}){a}, ({type_}){b})"

    @staticmethod
    def ldexp(x: Any, n: Any) -> str:
        return f"ldexp({x}, (int){n})"

    @staticmethod
    def truediv(a: Any, b: Any) -> str:
        if _is_floating(a) or _is_floating(b):
            return f"{a} / {b}"
        return f"(float){a} / (float){b}"

    int_truediv = truediv

    @staticmethod
    def mod(a: Any, b: Any) -> str:
        if _is_floating(a) or _is_floating(b):
            type_ = _type(torch.promote_types(a.dtype, b.dtype))
            return f"fmod(({type_}){a}, ({type_}){b})"
        _check_divisor(b)
        return f"{b} == -1 ? 0 : {a} % {b}"

    fmod = mod  # type: ignore[assignment]

    @staticmethod
    def truncdiv(a: Any, b: Any) -> str:
        _check_divisor(b)
        return f"{b} == -1 ? ({_type(a.dtype)})({Expressions.neg(a)}) : {a} / {b}"

    @staticmethod
    def floordiv(a: Any, b: Any) -> str:
        _check_divisor(b)
        down = f"({a} % {b} != 0 && ({a} < 0) != ({b} < 0))"
        return f"{b} == -1 ? ({_type(a.dtype)})({Expressions.neg(a)}) : {a} / {b} - {down}"


def _wrapped(a: Any, sign: str, b: Any) -> str:
    return str(
        V.kernel.dialect.wrapped(str(a), sign, str(b), torch.promote_types(a.dtype, b.dtype))
    )


def _check_divisor(divisor: CSEVariable) -> None:
    if V.kernel.dialect.is_in_order and not divisor.bounds.lower > 0:
        V.kernel.compute.writeline(f"if ({divisor} == 0) fault_division();")


def _called(name: str) -> Any:
    def call(*arguments: Any) -> str:
        is_float = all(_type(each.dtype) == "float" for each in arguments)
        known = V.kernel.dialect.float_functions.get(name) if is_float else None
        return f"{known or name}({', '.join(map(str, arguments))})"

    return staticmethod(call)


for _name in FUNCTIONS.split():
    setattr(Expressions, _name, _called(_name))
