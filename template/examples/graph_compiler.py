"""Registers a compiler of whole graphs for ``torch.compile``: torch-mlir and IREE, as an example.

    pip install torch-mlir iree-base-compiler iree-base-runtime

Here IREE compiles for the host's processor, so inputs and results are copied. A compiler for the
device would use the addresses of the tensors, on the current stream. Any compiler needs the rest:
partitions of a graph that it supports, operators of the backend for the others, one program for
each set of sizes, and a cache on disk.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import logging
import operator
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport
from torch.utils._pytree import tree_leaves

logger = logging.getLogger(__name__)

LEFT = frozenset(
    [
        "_fft_c2c",
        "_fft_r2c",
        "_linalg_det",
        "bernoulli",
        "kthvalue",
        "linalg_qr",
        "linalg_slogdet",
        "multinomial",
        "native_dropout",
        "rand",
        "randn",
        "sort",
        "topk",
        "unique_consecutive",
        "unique_dim",
    ]
)
"""Operators that this compiler names but does not support."""
OPTIONS: dict[str, Any] = {
    "target_backends": ["llvm-cpu"],
    "extra_args": ["--iree-llvmcpu-target-cpu=generic"],
}
TYPES = frozenset({torch.bool, torch.int32, torch.int64, torch.float32, torch.float64})

counts: collections.Counter[str] = collections.Counter()
"""Counts of programs compiled, found in the cache and called, and of operators left."""


class Compiler:
    """Compiles graphs of ATen operators by torch-mlir and IREE.

    Args:
        cache: the folder for programs; a temporary one by default.
        left: the names of operators that it leaves to the backend.
    """

    def __init__(self, cache: Path | None = None, left: frozenset[str] = LEFT) -> None:
        self._cache = cache or Path(tempfile.mkdtemp(prefix="graph-compiler-"))
        self._left = left

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Return a function that runs the graph: parts as programs, the rest as operators."""
        supported = Supported(self._left)
        parts = CapabilityBasedPartitioner(graph, supported, allows_single_node_partition=True)
        whole = parts.partition_and_fuse()
        for node in whole.graph.nodes:
            if not isinstance(node.target, torch._ops.OperatorBase) or not tensors(node):
                continue  # a part, one of several results, or a size
            counts[f"left: {node.target}"] += 1
            logger.warning("%s is left to the backend's own operator", node.target)
        for node in whole.graph.find_nodes(op="call_module"):
            part = whole.get_submodule(str(node.target))
            # Weights that Inductor has frozen are constants of the program.
            weights = {
                place: getattr(whole, str(each.target))
                for place, each in enumerate(node.args)
                if each.op == "get_attr"
            }
            node.args = tuple(each for each in node.args if each.op != "get_attr")
            whole.set_submodule(str(node.target), Part(part, weights, self))
        whole.recompile()
        return whole.forward

    def program(
        self, function: Callable[..., Any], inputs: Sequence[torch.Tensor], weights: int
    ) -> Callable[..., list[torch.Tensor]]:
        """Return the program of a function of tensors on the CPU, for the sizes of ``inputs``.

        The first ``weights`` inputs are constants of the program.
        """
        from iree import compiler, runtime
        from torch_mlir import fx
        from torch_mlir.compiler_utils import TorchMlirCompilerError
        from torch_mlir.extras.fx_decomp_util import get_decomposition_table

        made_of_others = get_decomposition_table()
        with torch.no_grad():
            traced = make_fx(function, decomposition_table=made_of_others, tracing_mode="fake")
            graph = traced(*inputs)
        for node in graph.graph.find_nodes(op="placeholder")[:weights]:
            graph.register_buffer(f"weight_{node.name}", inputs[0])
            inputs = inputs[1:]
            with graph.graph.inserting_before(node):
                held = graph.graph.get_attr(f"weight_{node.name}")
            held.meta.update(node.meta)
            node.replace_all_uses_with(held)
            graph.graph.erase_node(node)
        try:
            source = str(fx.stateless_fx_import(graph, output_type="linalg-on-tensors"))
        except TorchMlirCompilerError as error:
            raise RuntimeError(
                "torch-mlir does not lower a part of the graph: the operator that it names on "
                "standard error must be added to LEFT"
            ) from error
        kept = self._cache / f"{hashlib.sha256(source.encode()).hexdigest()}.vmfb"
        counts["found" if kept.is_file() else "compiled"] += 1
        if not kept.is_file():
            self._cache.mkdir(parents=True, exist_ok=True)
            written = kept.with_suffix(".mlir")
            written.write_text(source)
            try:
                code = compiler.compile_file(str(written), **OPTIONS)
            except compiler.CompilerToolError as error:
                reason = next(line for line in str(error).splitlines() if "error" in line)
                raise RuntimeError(f"IREE does not compile {written}: {reason}") from error
            # Written atomically, because other processes may write it too.
            with tempfile.NamedTemporaryFile(dir=self._cache, delete=False) as part:
                part.write(code)
            Path(part.name).replace(kept)
        context = runtime.SystemContext(config=runtime.Config("local-task"))
        context.add_vm_module(runtime.VmModule.mmap(context.instance, str(kept)))
        main = context.modules.module.main
        returned = tree_leaves(graph.graph.output_node().args)
        results = [node.meta["val"] for node in returned]

        def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
            found = main(*(each.numpy() for each in tensors))
            several = found if isinstance(found, (tuple, list)) else (found,)
            # Later operators of the graph were traced with these strides.
            laid_out = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) for x in results]
            for to, each in zip(laid_out, several, strict=True):
                to.copy_(torch.from_numpy(each.to_host()))
            return laid_out

        return call


class Supported(OperatorSupport):
    """The nodes that the compiler supports."""

    def __init__(self, left: frozenset[str]) -> None:
        super().__init__()
        self._left = left

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        """Return whether a node may be in a part."""
        if node.target is operator.getitem:  # one of several results
            return self.is_node_supported(submodules, node.all_input_nodes[0])
        if not isinstance(node.target, torch._ops.OpOverload) or not tensors(node):
            return False
        if node.target._schema.is_mutable:  # copies of new values to the graph's inputs
            return False
        types = {each.dtype for each in tensors(node, *node.all_input_nodes)}
        return node.target._opname not in self._left and types <= TYPES and is_known(node.target)


@functools.cache
def is_known(operator: torch._ops.OpOverload) -> bool:
    """Return whether torch-mlir has an operator, or decomposes it."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as dialect
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    context = ir.Context()
    dialect.register_dialect(context)
    name = f"torch.{operator}".removesuffix(".default")
    return operator in get_decomposition_table() or context.is_registered_operation(name)


def tensors(*nodes: torch.fx.Node) -> list[torch.Tensor]:
    """Return the tensors that nodes return."""
    values = tree_leaves([node.meta.get("val") for node in nodes])
    return [value for value in values if isinstance(value, torch.Tensor)]


class Part(torch.nn.Module):
    """A part of a graph, with a program for each set of input sizes."""

    def __init__(self, part: Any, weights: Mapping[int, torch.Tensor], compiler: Compiler) -> None:
        super().__init__()
        for node in part.graph.nodes:
            if "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": torch.device("cpu")}
        part.recompile()
        (result, *_) = part.graph.output_node().all_input_nodes
        self._device = result.meta["val"].device
        self._part = part
        self._weights = weights
        self._compiler = compiler
        self._programs: dict[Any, Any] = {}

    def forward(self, *arguments: Any) -> Any:
        """Run the program for these sizes, and compile it first if there is none."""
        held = [each.cpu() if isinstance(each, torch.Tensor) else each for each in arguments]
        tensors = [each for each in held if isinstance(each, torch.Tensor)]
        key = tuple(each.shape if isinstance(each, torch.Tensor) else each for each in held)
        if key not in self._programs:

            def function(*values: torch.Tensor) -> Any:
                fixed, left = values[: len(self._weights)], iter(values[len(self._weights) :])
                passed = [next(left) if isinstance(each, torch.Tensor) else each for each in held]
                for place, weight in zip(sorted(self._weights), fixed, strict=True):
                    passed.insert(place, weight)
                return self._part(*passed)

            fixed = [self._weights[place].cpu() for place in sorted(self._weights)]
            self._programs[key] = self._compiler.program(function, [*fixed, *tensors], len(fixed))
        counts["called"] += 1
        results = [each.to(self._device) for each in self._programs[key](*tensors)]
        return results[0] if len(results) == 1 else tuple(results)


def register(device: str) -> None:
    """Make this the first compiler of ``torch.compile`` on a device."""
    backend: Any = torch.get_device_module(device)
    known = backend.find_compiler("operators")
    backend.register_compiler(replace(known, name="iree", compile=Compiler()))
