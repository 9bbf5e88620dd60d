"""One Inductor kernel, which collects the code for a dialect."""

# mypy: allow-untyped-calls
# Inductor has few types.
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch._inductor import config
from torch._inductor.codegen.common import CSE, CSEVariable, DeferredLine, SizeArg
from torch._inductor.codegen.simd import SIMDKernel, pexpr
from torch._inductor.ops_handler import StoreMode
from torch._inductor.utils import IndentedBuffer, upcast_compute_type
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.symbol import SymT, symbol_is_type
from torch.utils._sympy.value_ranges import ValueRanges

from ._dialect import Accumulator, Dialect, Index, Parameter, Phase, Program
from ._expressions import Expressions, Indices
from ._reductions import reduction_of

_LITERAL = re.compile(r"\(?-?(\d[\w.+-]*|INFINITY|NAN)\)?|true|false")


class _Variables(CSE[CSEVariable, str]):
    """Declares each variable with its type, and computes values that are constant in a row once."""

    def generate(self, buffer: IndentedBuffer, expr: Any, **keywords: Any) -> CSEVariable:
        kernel: Kernel = V.kernel
        dtype = keywords.get("dtype")
        if isinstance(expr, str) and isinstance(dtype, torch.dtype):
            if _LITERAL.fullmatch(expr):
                bounds = keywords.get("bounds", ValueRanges.unknown())
                return kernel.create_cse_var(expr, bounds, dtype, ())
            # Not for integers: a division that a condition guards could trap here.
            if dtype.is_floating_point and kernel.is_of_row(expr):
                with kernel.once_a_row():
                    return super().generate(kernel.prologue, expr, **keywords)
        return super().generate(buffer, expr, **keywords)

    def newvar(self, *arguments: Any, **keywords: Any) -> CSEVariable:
        variable = super().newvar(*arguments, **keywords)
        self.prefix = V.kernel.declaration(variable)
        return variable


@dataclass(frozen=True)
class Argument:
    """The argument of a kernel for a parameter."""

    parameter: Parameter
    value: sympy.Expr | str
    """A number, or the name of a tensor."""
    is_host_scalar: bool = False
    """Whether it is a CPU tensor with one element, which the kernel receives as a number."""


@dataclass
class _Phase:
    """A :class:`Phase` whose lines can still be removed."""

    is_loop: bool
    indices: list[Index]
    body: IndentedBuffer
    stores: IndentedBuffer
    accumulators: list[Accumulator]

    def finished(self, is_ordered: bool) -> Phase | None:
        """Return the phase with the remaining lines, or None if it is empty."""
        body, stores = (each.getvalue().splitlines() for each in (self.body, self.stores))
        if not (body or stores or self.accumulators):
            return None
        return Phase(self.is_loop, is_ordered, self.indices, body, stores, self.accumulators)


class Kernel(SIMDKernel[CSEVariable]):
    """Computes rows of numbers, and reduces each row in the order of its index."""

    overrides = Expressions
    suffix = ";"
    sexpr = pexpr
    kexpr = Indices().doprint
    dialect: Dialect
    written: Program
    """The program for the dialect, set by :meth:`codegen_kernel`."""
    others: Sequence[Program] = ()
    """The same kernel in other shapes. The launch uses the fastest one."""

    def __init__(self, tiling: dict[str, sympy.Expr], **keywords: Any) -> None:
        self._row_variables: list[tuple[str, torch.dtype]] = []
        self._kept: set[CSEVariable] = set()
        self._indices: list[Index] = []
        self._phases: list[_Phase] = []
        self._accumulators: list[Accumulator] = []
        self.prologue = IndentedBuffer()
        self._is_ordered = False
        self._neighbours = 0
        self._results: list[tuple[str, str, sympy.Expr, CSEVariable]] = []
        super().__init__(tiling, **keywords)
        self.cse = _Variables(suffix=self.suffix)

    def is_of_row(self, expression: str) -> bool:
        """Return whether an expression within a loop is constant in a row."""
        if not self.inside_reduction or "ptr" in expression:
            return False
        names = set(re.findall(r"[A-Za-z_]\w*", expression))
        variables = {name for name in names if name.startswith("tmp")}
        digits = set(map(str, self.range_tree_nodes)) | {"r0_index", "xindex"}
        kept = {name for name, _ in self._row_variables}
        return bool(variables) and variables <= kept and not names & digits

    @contextmanager
    def once_a_row(self) -> Iterator[None]:
        """Context manager in which new variables belong to the row."""
        inside, self.inside_reduction = self.inside_reduction, False
        try:
            yield
        finally:
            self.inside_reduction = inside

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return self.dialect.types[dtype]

    def declaration(self, variable: CSEVariable) -> str:
        """Return the text before the first use of a variable."""
        dtype = variable.dtype or torch.float32
        if self.inside_reduction or not self.features.is_reduction():
            return f"const {self.dialect.types[dtype]} "
        # The variable belongs to the row, and a later phase may use it.
        self._row_variables.append((str(variable), dtype))
        self._kept.add(variable)
        return ""

    def declared(self, variable: CSEVariable) -> str:
        """Return the declaration of a variable that is assigned later."""
        return f"{self.cse.prefix.removeprefix('const ')}{variable}"

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        pointer = self.args.input(name)
        prepared = self.prepare_indexing(index)
        place = self.index_to_str(prepared)
        self._neighbours += self._direction(prepared)
        dtype = V.graph.get_dtype(name)
        if _is_host_scalar(name):
            value = f"({self.dialect.types[dtype]}){pointer}"
        else:
            value = self.dialect.unpack(f"{pointer}[{place}]", dtype)
        return self.cse.generate(self.loads, value, dtype=upcast_compute_type(dtype), shape=())

    def _direction(self, index: sympy.Expr) -> int:
        """Return 1 if adjacent elements in memory are in one row, -1 in different rows, else 0."""
        digits = [
            self.range_tree_nodes[each]
            for each in index.free_symbols & self.range_tree_nodes.keys()
        ]
        inner = [each for each in digits if each.divisor == 1 and index.coeff(each.symbol()) == 1]
        return sum(1 if each.prefix.startswith("r") else -1 for each in inner)

    def store(
        self, name: str, index: sympy.Expr, value: CSEVariable, mode: StoreMode = None
    ) -> None:
        if mode not in (None, "atomic_add") or (mode and not self.dialect.is_in_order):
            raise NotImplementedError(f"there are no kernels that store by {mode}")
        pointer, dtype = self.args.output(name), V.graph.get_dtype(name)
        place = self.index_to_str(self.prepare_indexing(index))
        self._is_ordered |= mode is not None
        before = f"{self.dialect.unpack(f'{pointer}[{place}]', dtype)} + " if mode else ""
        packed = self.dialect.pack(f"{before}{value}", dtype)
        # In the order of the computation, as a value may be stored over another.
        buffer = self.compute if self.inside_reduction else self.stores
        buffer.writeline(DeferredLine(name, f"{pointer}[{place}] = {packed};"))

    def store_reduction(self, name: str, index: sympy.Expr, value: CSEVariable) -> None:
        self._results.append((name, self.args.output(name), index, value))

    def reduction(
        self, dtype: torch.dtype, src_dtype: torch.dtype, reduction_type: Any, value: Any
    ) -> Any:
        known: dict[Any, Any] = self.cse.reduction_cache  # type: ignore[assignment]
        key = (src_dtype, reduction_type, value)
        if key not in known:
            known[key] = self._reduction(dtype, src_dtype, reduction_type, value)
        return known[key]

    def _reduction(
        self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any
    ) -> CSEVariable | tuple[CSEVariable, ...]:
        values = list(value) if isinstance(value, tuple) else [value]
        if kind.startswith("arg") and len(values) == 1:
            values.append("(long)r0_index")
        computed = upcast_compute_type(src_dtype if kind.startswith("arg") else dtype)
        how = reduction_of(kind, computed, self.dialect)
        with self.once_a_row():
            types = [torch.bool if how.as_bool else how.types[part] for part in how.results]
            results = [self.cse.newvar(dtype=each, shape=()) for each in types]
        names = [f"{results[0]}_{part}" for part in range(len(how.types))]
        parts = list(zip(names, how.types, how.first, strict=True))
        own = {f"a{part}": name for part, name in enumerate(names)}
        given = {f"v{part}": str(each) for part, each in enumerate(values)}
        self.compute.splice(how.take.format(**own, **given))
        found = list(zip(map(str, results), how.results, strict=True))
        self._accumulators.append(Accumulator(parts, how.merge, found))
        return tuple(results) if len(results) > 1 else results[0]

    def codegen_iteration_ranges_entry(self, entry: Any) -> None:
        text = self.kexpr(self.rename_indexing(entry.expr))
        step, length = (_known(each) for each in (entry.divisor, entry.length))
        self._indices.append(Index(entry.name, text, step, length))

    def codegen_body(self) -> None:
        """End a phase."""
        body, stores = IndentedBuffer(), IndentedBuffer()
        body.splice(self.loads)
        body.splice(self.compute)
        stores.splice(self.stores)
        if self.prologue:
            common = IndentedBuffer()
            common.splice(self.prologue)
            self._phases.append(_Phase(False, [], common, IndentedBuffer(), []))
        if body or stores or self._accumulators:
            is_loop = self.inside_reduction and self.features.is_reduction()
            self._phases.append(_Phase(is_loop, self._indices, body, stores, self._accumulators))
        for each in (self.loads, self.compute, self.stores, self.prologue):
            each.clear()
        self._indices, self._accumulators = [], []
        if not self.features.is_reduction():
            return
        self.cse.invalidate(self._kept)  # type: ignore[arg-type]
        for tree in self.range_trees:
            tree.cache_clear()
        if self._results:
            self._store_results()

    def _store_results(self) -> None:
        results, self._results = self._results, []
        with self.once_a_row():
            for name, pointer, index, value in results:
                place = self.index_to_str(self.prepare_indexing(index))
                packed = self.dialect.pack(str(value), V.graph.get_dtype(name))
                self.stores.writeline(DeferredLine(name, f"{pointer}[{place}] = {packed};"))
            self.codegen_body()

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        if not self.dialect.is_in_order:
            return  # indices from tensors are left to operators; these are Inductor's own
        place, limit = (self.index_to_str(self.prepare_indexing(each)) for each in (expr, size))
        wrong = [f"{place} < 0"] * lower + [f"{place} >= {limit}"] * upper
        if wrong:
            self.compute.writeline(f"if ({' || '.join(wrong)}) fault_index({place}, {limit});")

    def codegen_kernel(self, name: str = "KERNEL") -> str:
        self.codegen_body()
        self.written = self.program(name)
        # C++ code is written before anything runs, so it cannot measure.
        if (config.max_autotune or config.max_autotune_pointwise) and not V.graph.cpp_wrapper:
            self.others = self._others()
        return self.dialect.write(self.written)

    def _others(self) -> list[Program]:
        used = self.written.group_rows, self.written.lanes
        return [
            replace(self.written, group_rows=rows, lanes=lanes)
            for rows, lanes in self.dialect.other_shapes(self._known_columns())
            if (rows, lanes) != used
        ]

    def _known_columns(self) -> int | None:
        return _hint(self.numels["r0_"]) if self.features.is_reduction() else None

    def program(self, name: str) -> Program:
        """Return the program for the dialect."""
        rows, columns = self.numels["x"], self.numels.get("r0_")
        if not self.features.is_reduction():
            columns = None
        group_rows, lanes = self.dialect.shape(self._known_columns(), self._neighbours < 0)
        return Program(
            name,
            [each.parameter for each in self._arguments()],
            self.get_index_dtype_as_torch_dtype(),
            _number(rows, "rows_"),
            None if columns is None else _number(columns, "columns_"),
            group_rows,
            lanes,
            self._row_variables,
            # Unused stores are known only now, and are removed.
            [phase for each in self._phases if (phase := each.finished(self._is_ordered))],
        )

    def _arguments(self) -> list[Argument]:
        """Return the arguments of the kernel in the order of its parameters."""
        _, passed, described, _ = self.args.python_argdefs()
        arguments = [
            self._argument(what, value) for value, what in zip(passed, described, strict=True)
        ]
        for prefix, name in (("x", "rows_"), ("r0_", "columns_")):
            if prefix in self.numels and not self.numels[prefix].is_Integer:
                arguments.append(Argument(Parameter(name, "long"), self.numels[prefix]))
        return arguments

    def _argument(self, what: Any, passed: Any) -> Argument:
        if isinstance(what, SizeArg):
            is_float = isinstance(what.expr, sympy.Symbol) and symbol_is_type(
                what.expr, SymT.UNBACKED_FLOAT
            )
            return Argument(Parameter(what.name, "float" if is_float else "long"), what.expr)
        name = str(passed)
        if _is_host_scalar(what.buffer):
            return Argument(Parameter(what.name, self._scalar(what.dtype)), name, True)
        kind = "read" if what.name.startswith("in_ptr") else "written"
        return Argument(Parameter(what.name, kind, what.dtype), name)

    def _scalar(self, dtype: torch.dtype) -> str:
        if not dtype.is_floating_point:
            return "long"
        return "double" if torch.float64 in self.dialect.types else "float"

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        wrapper: Any = V.graph.wrapper_code
        for size in self.args.sizevars:
            wrapper.ensure_size_computed(size)
        group = 1 if self.others else self.written.group_rows
        groups = FloorDiv(self.numels["x"] + group - 1, group)
        wrapper.launch(name, groups, self._arguments())


def _is_host_scalar(name: str) -> bool:
    buffer = V.graph.try_get_buffer(name)
    return buffer is not None and buffer.get_device_or_error().type == "cpu"


def _known(number: sympy.Expr) -> int | None:
    return int(number) if number.is_Integer else None


def _hint(length: sympy.Expr) -> int:
    return int(V.graph.sizevars.optimization_hint(length, fallback=4096))


def _number(length: sympy.Expr, name: str) -> str:
    return str(length) if length.is_Integer else name
