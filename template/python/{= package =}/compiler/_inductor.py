"""Makes Inductor use the selected compiler. Imported after its ``compile_fx``."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._inductor import config

from .._build import NAME
from .._patches import uses_device
from .._patching import is_wanted
from . import _codegen, _cpp_build, _replay
from ._compilers import Compiler, current

_PASSES = "disabled_passes"
_compiling: ContextVar[bool] = ContextVar("compiling", default=False)
"""Whether the options of the selected compiler are set already, as ``compile_fx`` is recursive."""


def install() -> None:
    """Compile graphs with tensors of this device by the selected compiler."""
    module: Any = importlib.import_module("torch._inductor.compile_fx")
    original = module.compile_fx

    @functools.wraps(original)
    def compile_fx(
        model_: Any,
        example_inputs_: Sequence[Any],
        inner_compile: Callable[..., Any] = module.compile_fx_inner,
        config_patches: Mapping[str, Any] | None = None,
        **keywords: Any,
    ) -> Any:
        if _compiling.get() or not uses_device(model_, example_inputs_):
            return original(model_, example_inputs_, inner_compile, config_patches, **keywords)
        compiler = current()
        if (config_patches or {}).get("cpp_wrapper", config.cpp_wrapper):
            compiler = _in_cpp(compiler)
        known = config.get_config_copy()
        options = {name: value for name, value in compiler.options.items() if name in known}
        options.update(config_patches or {})
        replay = options.get("triton.cudagraphs", config.triton.cudagraphs)
        options["triton.cudagraphs"] = False
        inner = _Inner(compiler, inner_compile, replay)
        # Before PyTorch reads its caches, which may have results of other compilers.
        _codegen.register(compiler)
        token = _compiling.set(True)
        try:
            # Results from PyTorch's autograd cache bypass _Inner.
            with functorch_config.patch(enable_autograd_cache=inner.is_plain):
                return original(model_, example_inputs_, inner, options, **keywords)
        finally:
            _compiling.reset(token)

    module.compile_fx = compile_fx
    _cpp_build.install()
    _prefer_device()
    if not hasattr(config, _PASSES) and is_wanted("reinplacing"):
        _disable_reinplacing()


def _prefer_device() -> None:
    """Assign an operator with a CPU scalar before a tensor of this device to this device.

    Inductor does so only for the devices of its list of GPUs, which also controls other behaviour.
    """
    module: Any = importlib.import_module("torch._inductor.lowering")
    original = module.is_gpu
    module.is_gpu = lambda device: device == NAME or original(device)


def _in_cpp(compiler: Compiler) -> Compiler:
    """Return the variant of the compiler that writes the calls in C++."""
    if compiler.cpp_wrapper is None:
        raise NotImplementedError(
            f"AOTInductor and cpp_wrapper need kernels that are written for {NAME}, and the compiler "
            f"{compiler.name!r} writes none: save the program by torch.export.save, and compile what "
            "torch.export.load returns"
        )
    from .kernels._cpp_graph import prepare

    given = compiler.improve or (lambda _: None)

    @functools.wraps(given)  # the cache key includes its file
    def improve(graph: torch.fx.GraphModule) -> None:
        prepare(graph)
        given(graph)

    options = {**compiler.options, **_cpp_build.OPTIONS}
    return replace(compiler, name=f"{compiler.name} in C++", improve=improve, options=options)


def _disable_reinplacing() -> None:
    """Skip reinplacing if a compiler disables it, in PyTorch releases without ``disabled_passes``.

    Remove this when 2.11, the first release with the option, is the oldest supported release.
    """
    passes: Any = importlib.import_module("torch._inductor.fx_passes.post_grad")
    original = passes.reinplace_inplaceable_ops

    def reinplace_inplaceable_ops(updater: Any, graph: torch.fx.Graph) -> None:
        disabled = current().options.get(_PASSES, "")
        if not uses_device(graph.owning_module, ()) or original.__name__ not in disabled:
            original(updater, graph)

    passes.reinplace_inplaceable_ops = reinplace_inplaceable_ops


class _Inner:
    """Compiles one forward or backward pass."""

    def __init__(self, compiler: Compiler, compile_pass: Callable[..., Any], replay: bool) -> None:
        self._compile_pass = compile_pass
        self._compiler = compiler
        self._replay = replay

    @property
    def is_plain(self) -> bool:
        """Whether this returns Inductor's result unchanged."""
        return self._compiler.compile is None and not self._replay

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **keywords: Any) -> Any:
        _codegen.register(self._compiler)
        if self._compiler.compile is not None:
            made = self._compiler.compile(graph, inputs)
            if made is not None:
                return make_boxed_func(made)
        # All results of a backward pass are gradients, and none is visible to the user.
        shown = "user_visible_output_idxs" if not keywords.get("is_backward") else ""
        seen = graph.graph.output_node().meta.get(shown, ())
        refused = self._replay and _replay.refusal(graph.graph)
        code = self._compile_pass(graph, inputs, **keywords)
        if refused:
            _replay.warn(refused)
        # A pass without operators is the graph itself, and launches nothing.
        elif self._replay and hasattr(code, "current_callable"):
            code.current_callable = _replay.Replayed(
                code.current_callable,
                keywords.get("static_input_idxs") or (),
                code.mutated_input_idxs,
                seen,
            )
        return code
