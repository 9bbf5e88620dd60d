"""The kinds of statements in programs, each a function that generates a statement."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from fuzz.choice import (
    DTYPES,
    Choice,
    Nothing,
    has_dims,
    is_apart,
    is_float,
    is_number,
    is_output,
    is_real,
    is_whole,
    is_writable,
)
from fuzz.program import Statement
from support import names

SHAPES = ((), (1,), (5,), (17,), (0,), (3, 4), (4, 3), (1, 6), (4, 4), (2, 3, 4), (3, 1, 5), (2, 0, 3),
          (2, 3, 2, 2), (1, 2, 3, 1, 2), (40, 33))  # fmt: skip
LARGEST = 20_000  # elements of a variable

EXACT = names(
    """
    neg abs sign floor ceil trunc round isnan isfinite isinf signbit relu logical_not positive
    clone
    """
)
ROUNDED = names(
    """
    sqrt exp log log1p expm1 sin cos tanh sigmoid erf rsqrt reciprocal square atan asinh sgn exp2
    log2 special.i0 nn.functional.silu nn.functional.gelu nn.functional.softplus
    """
)
OF_WHOLE = names("bitwise_and bitwise_or bitwise_xor")
COMPARISONS = names(
    """
    eq ne lt le gt ge maximum minimum logical_and logical_or logical_xor fmax fmin
    """
)
ARITHMETIC = names("add sub mul true_divide")
OF_FLOATS = names("atan2 hypot copysign remainder fmod floor_divide nextafter xlogy logaddexp")
VIEW_DTYPES = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
DIFFERENTIABLE = ("x * x", "x.tanh()", "x.relu()", "x.sigmoid()", "x.transpose(0, -1) * 2", "x.sum(0, keepdim=True) * x",
                  "x.cumsum(0)", "x.softmax(-1)", "x[0] + x", "x.flatten()[1:]", "torch.cat([x, x])", "x.pow(3)",
                  "x.expand(2, *x.shape)", "x.clamp(-1, 1)", "x.mean(-1)", "x.tril() if x.dim() > 1 else x",
                  "x.amax(0)", "x.to(torch.float32)", "torch.where(x > 0, x, -x)", "x.index_select(0, i[:x.shape[0]])")  # fmt: skip


def create(c: Choice) -> Statement:
    """Create a tensor of exact values with ties, zeros and negatives, on either device."""
    dtype = c.random.choice(DTYPES)
    shape = c.random.choice(SHAPES)
    count = torch.Size(shape).numel()
    span = c.one(3, 7, 13)
    numbers = (
        f"(torch.arange({count}) * {c.one(1, 5, 11)} + {c.number(0, 9)}) % {span} - {span // 2}"
    )
    if dtype.is_floating_point or dtype.is_complex:
        numbers = f"({numbers}) / {c.one(1, 2, 4)}"
    if dtype.is_complex:
        numbers = f"({numbers}) * {c.one('1j', '(1 - 0.5j)')}"
    values = f"({numbers}).to({dtype}).reshape({shape})"
    return Statement(f"{c.new()} = {values}.to({c.one('d0', 'd0', 'd1')})")


def factory(c: Choice) -> Statement:
    name = c.any()
    made = c.one(
        f"torch.zeros_like({name})", f"torch.ones_like({name})", f"{name}.new_full((3, 2), 1)",
        f"torch.arange({c.number(-5, 3)}, {c.number(4, 20)}, device={name}.device)",
        f"torch.eye({c.number(1, 5)}, {c.number(1, 5)}, device={name}.device)",
        f"torch.linspace(-2, 2, {c.one(1, 4, 9)}, device={name}.device)",
        f"torch.full_like({name}, 1)", f"torch.tensor([[1, 2], [3, 4]], device={name}.device)",
        f"torch.tril_indices(4, 3, device={name}.device)",
    )  # fmt: skip
    return Statement(f"{c.new()} = {made}", terms=1)


def unary(c: Choice) -> Statement:
    if c.chance(0.5):
        operator = c.random.choice(EXACT)
        name = c.any(lambda t: is_real(t) and is_number(t))
        return Statement(f"{c.new()} = torch.{operator}({name})")
    operator = c.random.choice(ROUNDED)
    return Statement(f"{c.new()} = torch.{operator}({c.any(is_real)})", terms=1)


def complex_unary(c: Choice) -> Statement:
    operator = c.one("neg", "abs", "angle", "exp", "square", "conj_physical", "sin", "sgn")
    return Statement(f"{c.new()} = torch.{operator}({c.any(torch.is_complex)})", terms=4)


def binary(c: Choice) -> Statement:
    kind = c.number(0, 3)
    accepts, operators, terms = (
        (lambda t: True, ARITHMETIC, 4),
        (is_real, COMPARISONS, 0),
        (is_whole, OF_WHOLE, 0),
        (is_float, OF_FLOATS, 1),
    )[kind]
    one = c.any(accepts)
    other = c.broadcasting(one)
    if not accepts(c.of(other)):
        raise Nothing
    return Statement(f"{c.new()} = torch.{c.random.choice(operators)}({one}, {other})", terms)


def with_number(c: Choice) -> Statement:
    name = c.any()
    number = c.one("2", "-1", "0.5", "True", "3", "torch.tensor(1.5)", "torch.tensor(2)")
    operator = c.one("+", "-", "*", "/", "==", "<", ">=")
    if operator in ("<", ">=") and c.of(name).is_complex():
        raise Nothing
    left, right = (name, number) if c.chance(0.7) else (number, name)
    return Statement(f"{c.new()} = {left} {operator} {right}", terms=4)


def power(c: Choice) -> Statement:
    name = c.any(lambda t: is_real(t) and is_number(t))
    exponent = c.one("2", "3", "0", "1", "2.0") if is_whole(c.of(name)) else c.one("2", "3", "-1")
    return Statement(f"{c.new()} = {name} ** {exponent}", terms=1)


def select_values(c: Choice) -> Statement:
    condition = c.any(lambda t: t.dtype is torch.bool)
    one = c.broadcasting(condition)
    other = c.one(c.broadcasting(one), "1")
    return Statement(f"{c.new()} = torch.where({condition}, {one}, {other})")


def clamp(c: Choice) -> Statement:
    name = c.any(lambda t: is_real(t) and t.dtype is not torch.uint8)
    call = c.one("clamp(-1, 2)", "clamp(min=0)", "clamp(max=1)", "clamp(2, -1)", "nan_to_num()",
                 "clamp_min(0.5)")  # fmt: skip
    return Statement(f"{c.new()} = {name}.{call}", terms=1)


def reduction(c: Choice) -> Statement:
    name = c.any()
    tensor = c.of(name)
    where = c.one("", f"dim={c.dim(name)}", f"dim={c.dim(name)}, keepdim=True")
    summed = c.chance(0.5)
    if summed:
        operator = c.one("sum", "mean", "nansum", "prod", "std", "var", "logsumexp", "norm")
        if operator == "logsumexp" and not where:
            where = f"dim={c.dim(name)}"
        if operator == "prod" and tensor.numel() > 60:
            raise Nothing
    else:
        operator = c.one("amax", "amin", "all", "any", "argmax", "argmin", "count_nonzero")
        if tensor.is_complex() and operator in ("amax", "amin", "argmax", "argmin"):
            raise Nothing
        if operator == "count_nonzero":
            where = where.partition(", keepdim")[0]
    return Statement(
        f"{c.new()} = {name}.{operator}({where})", terms=max(tensor.numel(), 1) if summed else 0
    )


def scan(c: Choice) -> Statement:
    name = c.any(lambda t: t.numel() < 100)
    operator = c.one(
        "cumsum", "cumprod", "logcumsumexp", "softmax", "log_softmax", "cummax", "cummin"
    )
    targets = f"{c.new()}, {c.new()}" if operator in ("cummax", "cummin") else c.new()
    exact = operator in ("cummax", "cummin")
    terms = 0 if exact else max(c.of(name).numel(), 1)
    return Statement(f"{targets} = {name}.{operator}({c.dim(name)})", terms)


def with_indices(c: Choice) -> Statement:
    name = c.any(lambda t: is_real(t) and has_dims(1)(t))
    operator = c.one("max", "min", "sort", "sort")
    more = f", stable=True, descending={c.chance(0.5)}" if operator == "sort" else ""
    return Statement(f"{c.new()}, {c.new()} = torch.{operator}({name}, dim={c.dim(name)}{more})")


def order(c: Choice) -> Statement:
    name = c.any(lambda t: is_real(t) and has_dims(1)(t))
    size = c.of(name).shape[-1]
    call = c.one(
        f"torch.unique({name})", f"torch.topk({name}, {c.number(0, size)}).values",
        f"torch.argsort({name}, stable=True)", f"torch.nonzero({name})", f"torch.msort({name})",
        f"torch.unique_consecutive({name})",
    )  # fmt: skip
    return Statement(f"{c.new()} = {call}")


def view(c: Choice) -> Statement:
    name = c.any(has_dims(1))
    tensor = c.of(name)
    dims, dim, other = tensor.dim(), c.dim(name), c.dim(name)
    size = tensor.shape[dim]
    start = c.number(0, size - 1)
    item = f"{start}:{c.number(start, size)}:{c.number(1, 3)}"
    index = ", ".join([":"] * (dim % dims) + [item])
    call = c.one(
        f"{name}.transpose({dim}, {other})", f"{name}.permute({c.permutation(dims)})",
        f"{name}.select({dim}, {start})", f"{name}[{index}]", f"{name}.unsqueeze({dim})", f"{name}.squeeze()",
        f"{name}.narrow({dim}, {start}, {c.number(0, size - start)})", f"{name}.flatten()", f"{name}.movedim({dim}, {other})",
        f"{name}.unfold({dim}, {c.number(1, size)}, {c.number(1, 2)})", f"{name}.reshape(-1)", f"{name}.view(-1)",
        f"{name}.chunk(2, {dim})[0]", f"{name}.split(2, {dim})[-1]", f"{name}.unflatten({dim}, (-1, 1))",
        f"{name}[..., None, 0]", f"{name}.detach()", f"{name}.T" if dims == 2 else f"{name}.swapaxes(0, -1)",
        f"{name}.tensor_split(2, {dim})[1]", f"{name}.view_as({name})", f"{name}.ravel()",
    )  # fmt: skip
    return Statement(f"{c.new()} = {call}")


def expand(c: Choice) -> Statement:
    name = c.any(lambda t: 1 in t.shape or t.dim() < 3)
    shape = [c.number(1, 3) if size == 1 else -1 for size in c.of(name).shape]
    return Statement(f"{c.new()} = {name}.expand({[2, *shape] if c.chance(0.3) else shape})")


def diagonal(c: Choice) -> Statement:
    name = c.any(has_dims(2))
    return Statement(f"{c.new()} = {name}.diagonal({c.number(-1, 1)}, 0, -1)")


def bits(c: Choice) -> Statement:
    """Create a view with other bits or elements: conjugate, negative, real parts, another dtype."""
    if c.chance(0.5):
        name = c.any(torch.is_complex)
        call = c.one(f"{name}.conj()", f"{name}.real", f"{name}.imag", f"{name}.mH", f"torch.view_as_real({name})",
                     f"{name}.resolve_conj()", f"{name}.conj().imag", f"{name}.adjoint()")  # fmt: skip
        return Statement(f"{c.new()} = {call}")
    name = c.any(lambda t: is_float(t) and t.itemsize > 2 and t.shape[-1:] > (1,))
    dtype = c.one(VIEW_DTYPES[c.of(name).itemsize], "uint8", "int16")
    call = c.one(f"{name}.view(torch.{dtype})", f"torch._neg_view({name})", f"{name}.resolve_neg()",
                 f"torch.view_as_complex({name})")  # fmt: skip
    return Statement(f"{c.new()} = {call}")


def arrange(c: Choice) -> Statement:
    name = c.any(lambda t: 0 < t.numel() < LARGEST // 8)
    other = c.on_same_device(name, lambda t: t.shape == c.of(name).shape)
    third = c.on_same_device(name, lambda t: t.dim() == c.of(name).dim())
    dim = c.dim(name)
    shift = c.number(-3, 3)
    call = c.one(
        f"torch.cat([{name}, {other}], {dim})", f"torch.cat([{name}, {third}], {dim})",
        f"torch.stack([{name}, {other}, {name}], {dim})", f"{name}.flip({dim})", f"{name}.roll({shift}, {dim})",
        f"{name}.repeat({[c.number(1, 2) for _ in range(c.of(name).dim())]})", f"{name}.tril({shift})",
        f"{name}.triu({shift})", f"{name}.repeat_interleave(2, {dim})", f"{name}.diag_embed()",
        f"torch.nn.functional.pad({name}, (1, 2))", f"{name}.rot90()", f"{name}.tile(2)", f"torch.vander({name})",
        f"{name}.contiguous()", f"torch.block_diag({name}, {name})", f"{name}.clone(memory_format=torch.preserve_format)",
        f"torch.meshgrid({name}, {name}, indexing='ij')[0]", f"torch.broadcast_to({name}, (2, *{name}.shape)).contiguous()",
    )  # fmt: skip
    return Statement(f"{c.new()} = {call}", terms=4 if "vander" in call else 0)


def indexed(c: Choice) -> Statement:
    name = c.any(has_dims(1))
    tensor, dim = c.of(name), c.dim(name)
    size, device = tensor.shape[dim], f"device={name}.device"
    index = f"torch.tensor({[c.number(0, size - 1) for _ in range(c.number(0, 4))]}, dtype=torch.int64, {device})"
    lead = ":, " * (dim % tensor.dim())
    call = c.one(
        f"{name}.index_select({dim}, {index})", f"{name}[{lead}{index}]", f"{name}[{name} == {name}]",
        f"{name}.take(torch.tensor([0, {tensor.numel() - 1}], {device}))", f"{name}.masked_select({name} != 0)",
        f"{name}.gather({dim}, torch.zeros_like({name}, dtype=torch.int64))",
        f"{name}[{lead}{index}, ..., None]", f"torch.take_along_dim({name}, {name}.argsort({dim}, stable=True), {dim})",
        f"{name}[{index.replace('(', '([', 1).replace(',', '],', 1)}]" if size == tensor.shape[0] else f"{name}[0]",
    )  # fmt: skip
    return Statement(f"{c.new()} = {call}")


def index_write(c: Choice) -> Statement:
    name = c.any(lambda t: has_dims(1)(t) and is_apart(t))
    tensor, dim = c.of(name), c.dim(name)
    size, device = tensor.shape[dim], f"device={name}.device"
    count = c.number(1, min(size, 3))
    index = f"torch.tensor({c.permutation(size)[:count]}, {device})"
    lead = ":, " * (dim % tensor.dim())
    value = c.one(
        "0", "1", "True", c.on_same_device(name, lambda t: t.dim() == 0) if c.chance(0.3) else "2"
    )
    source = f"torch.ones_like({name}).narrow({dim}, 0, {count})"
    call = c.one(
        f"{name}[{lead}{index}] = {value}", f"{name}[{name} != 0] = {value}", f"{name}[0] = {value}",
        f"{name}.index_fill_({dim}, {index}, 1)", f"{name}.index_add_({dim}, {index}, {source})",
        f"{name}.index_copy_({dim}, {index}, {source})", f"{name}.masked_fill_({name} == 0, 1)",
        f"{name}.scatter_({dim}, torch.zeros_like({name}, dtype=torch.int64).narrow({dim}, 0, 1), 1)",
        f"{name}.scatter_add_({dim}, torch.zeros_like({name}, dtype=torch.int64), torch.ones_like({name}))",
        f"{name}.index_put_(({index},), torch.ones_like({name}[:{count}]), accumulate=True)" if size == tensor.shape[0]
        else f"{name}.fill_diagonal_(1)",
        f"{name}[{lead}1:] = {name}[{lead}:-1].clone()",
    )  # fmt: skip
    return Statement(call, terms=4)


def write(c: Choice) -> Statement:
    """Change a tensor in place, and so all tensors that share its memory."""
    name = c.any(is_writable)
    other = c.broadcasting(name)
    apart = c.of(other).untyped_storage()._cdata != c.of(name).untyped_storage()._cdata
    if not apart:  # reads of overlapping views are undefined on the CPU
        other = name
    call = c.one(
        f"add_({other})", f"mul_({other})", f"sub_({other})", f"copy_({other})" if apart else "neg_()", "fill_(1)",
        "zero_()", "neg_()", "add_(1)", "mul_(0.5)", "clamp_(0, 2)", "abs_()", "sqrt_()", "tril_()", "t_()",
        "logical_not_()", "floor_()", f"addcmul_({other}, {other})", f"lerp_({other}, 0.25)", "unsqueeze_(0)", "cumsum_(0)",
        f"eq_({other})", f"maximum_({other})", "squeeze_()", "conj_physical_()", "sigmoid_()", "transpose_(0, -1)",
    )  # fmt: skip
    return Statement(f"{name}.{call}", terms=4)


def into(c: Choice) -> Statement:
    """Write a result to a given tensor, which may be a view, of another size or another dtype."""
    name = c.any()
    other = c.broadcasting(name)
    kept = [c.of(name).untyped_storage()._cdata, c.of(other).untyped_storage()._cdata]
    out = c.on_same_device(name, lambda t: t.untyped_storage()._cdata not in kept and is_output(t))
    call = c.one(f"add({name}, {other}", f"mul({name}, {other}", f"neg({name}", f"sum({name}, 0", f"eq({name}, {other}",
                 f"cumsum({name}, 0", f"clamp({name}, 0, 1", f"cat([{name}, {other}]", f"abs({name}")  # fmt: skip
    return Statement(f"torch.{call}, out={out})", terms=max(c.of(name).numel(), 4))


def copies(c: Choice) -> Statement:
    """Copy to another dtype, to another device, through the host, between tensors on two devices."""
    name = c.any()
    dtype = c.random.choice(DTYPES)
    other = c.any(lambda t: t.shape == c.of(name).shape)
    apart = c.of(other).untyped_storage()._cdata != c.of(name).untyped_storage()._cdata
    call = c.one(
        f"{name}.to({dtype}, copy=True)", f"{name}.to(d1, copy=True)", f"{name}.to(d0, copy=True)",
        f"{name}.to('cpu', copy=True).to(d1, copy=True)",
        f"{name}.to('cpu', copy=True).to(d0, non_blocking=True, copy=True)",
        f"{name}.to(d1, {dtype}, copy=True, non_blocking=True)", f"{name}.clone()",
    )  # fmt: skip
    if apart and is_writable(c.of(name)) and c.chance(0.3):
        return Statement(f"{name}.copy_({other}, non_blocking={c.chance(0.5)})")
    return Statement(f"{c.new()} = {call}", terms=1)


def matmul(c: Choice) -> Statement:
    name = c.any(lambda t: 1 <= t.dim() <= 3 and is_number(t) and t.numel() < 2000)
    inner = c.of(name).shape[-1]
    other = c.on_same_device(
        name,
        lambda t: (
            t.dtype == c.of(name).dtype
            and 1 <= t.dim() <= 3
            and t.shape[-2 if t.dim() > 1 else 0] == inner
        ),
    )
    call = c.one(f"{name} @ {other}", f"torch.matmul({name}, {name}.transpose(-1, 0))", f"{name} @ {other}",
                 f"torch.tensordot({name}, {name}, dims={c.of(name).dim()})", f"torch.outer({name}, {other})")  # fmt: skip
    return Statement(f"{c.new()} = {call}", terms=max(inner, 1) * 4)


def gradient(c: Choice) -> Statement:
    name = c.any(lambda t: is_float(t) and has_dims(1)(t) and t.numel() < 200)
    body = "x"
    for _ in range(c.number(1, 3)):
        body = re.sub(
            r"\bx\b", body if body == "x" else f"({body})", c.random.choice(DIFFERENTIABLE)
        )
    function = f"lambda x, i: ({body}).sum()"
    index = f"torch.zeros(2, dtype=torch.int64, device={name}.device)"
    return Statement(
        f"{c.new()} = torch.func.grad({function})({name}.detach().clone(), {index})",
        terms=max(c.of(name).numel(), 1) * 8,
    )


def item(c: Choice) -> Statement:
    name = c.any()
    other = c.broadcasting(name)
    numel = c.of(name).numel()
    call = c.one(f"{name}.tolist()" if numel < 20 else f"{name}.shape[0]", f"torch.equal({name}, {other})",
                 f"{name}.flatten()[0].item()" if numel else f"{name}.numel()", f"torch.allclose({name}, {name})",
                 f"bool({name}.flatten().isnan().any())")  # fmt: skip
    return Statement(f"{c.new()} = repr({call})")


def switch(c: Choice) -> Statement:
    return Statement(f"switch({c.one('d0', 'd1')}, {c.one(0, 1)})")


def special(c: Choice) -> Statement:
    name = c.any(lambda t: is_float(t) and has_dims(1)(t))
    number = c.one("float('nan')", "float('inf')", "-float('inf')", "-0.0", "1e-5", "300.0")
    return Statement(f"{name}.view(-1)[{c.number(0, c.of(name).numel() - 1)}] = {number}")


STEPS: dict[Callable[[Choice], Statement], int] = {
    create: 6, factory: 3, unary: 8, complex_unary: 2, binary: 12, with_number: 5, power: 2, select_values: 3,
    clamp: 3, reduction: 8, scan: 4, with_indices: 4, order: 4, view: 16, expand: 3, diagonal: 2, bits: 6,
    arrange: 7, indexed: 7, index_write: 7, write: 12, into: 4, copies: 10, matmul: 4, gradient: 4, item: 3,
    switch: 4, special: 1,
}  # fmt: skip
"""The kinds, and their relative frequencies."""
