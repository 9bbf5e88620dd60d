"""Graphs, as in ``torch.cuda``: work that is captured once and replayed many times.

A capture records the work of its stream, and of streams that wait for its events, and runs none of
it. A replay runs all of it at the cost of one launch, in the memory of the capture: it reads the
current values of the captured inputs, and writes the results to the same tensors each time.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.utils import _pytree

from . import _C
from ._build import NAME
from .devices import synchronize
from .memory import empty_cache
from .streams import Stream, StreamContext

__all__ = ["Graph", "graph", "graph_pool_handle", "make_graphed_callables", "warm_up"]

PoolId: TypeAlias = "tuple[int, int]"

_MODES = ("global", "thread_local", "relaxed")


class Graph:
    """The recorded work of a capture, on the device that was current when it began.

    Args:
        keep_graph: ignored, for compatibility with ``torch.cuda``. A capture can be replayed as
            soon as it has ended.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._graph = _C.Graph()
        self._hook: weakref.finalize[..., Graph] | None = None

    def capture_begin(self, pool: PoolId | None = None, capture_error_mode: str = "global") -> None:
        """Start to record the work of the current stream. Prefer :class:`graph`.

        Args:
            pool: the id of the memory pool, from :func:`graph_pool_handle` or from :meth:`pool` of
                another graph; None for a new private pool. Graphs that share a pool must be
                replayed in the order of their captures, and never at the same time.
            capture_error_mode: ``global``, ``thread_local`` or ``relaxed``. All three are the same
                here: an operation that cannot be captured raises on the streams of the capture.

        Raises:
            NotImplementedError: the device library does not support graphs.
            RuntimeError: the default stream is current, another capture is active on the device,
                or the graph already has a capture.
            ValueError: ``capture_error_mode`` has another value.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"capture_error_mode is one of {', '.join(_MODES)}, not {capture_error_mode!r}"
            )
        self._graph.begin((0, 0) if pool is None else pool)
        # Also removes the hook if the graph is deleted during its capture.
        self._hook = weakref.finalize(
            self, register_optimizer_step_pre_hook(_check_optimizer).remove
        )

    def capture_end(self) -> None:
        """End the capture.

        Raises:
            RuntimeError: the capture failed; the message names the cause. The graph is reset.
        """
        self._forget_hook()
        self._graph.end()

    def instantiate(self) -> None:
        """Do nothing, as the graph can be replayed since its capture ended.

        Raises:
            RuntimeError: there is no capture.
        """
        self._graph.check_captured()

    def replay(self) -> None:
        """Enqueue the recorded work on the current stream of the graph's device.

        Replays of one graph run one after the other, also on different streams. The results are in
        the tensors of the capture, in the order of the current stream.

        Raises:
            RuntimeError: there is no capture, or the current stream is capturing.
        """
        self._graph.replay()

    def reset(self) -> None:
        """Delete the capture. Memory that no tensor uses is released to the device."""
        self._forget_hook()
        self._graph.reset()

    def pool(self) -> PoolId:
        """Return the id of the graph's memory pool, for ``pool=`` of other graphs.

        Raises:
            RuntimeError: there is no capture.
        """
        pool: PoolId = self._graph.pool()
        return pool

    def _forget_hook(self) -> None:
        if self._hook is not None:
            self._hook()

    def enable_debug_mode(self) -> None:
        """Do nothing, as :meth:`debug_dump` is not supported."""

    def debug_dump(self, debug_path: str) -> None:
        """Raise NotImplementedError, as device libraries do not describe their graphs."""
        raise NotImplementedError(
            f"a graph of {NAME} cannot be written to {debug_path!r}: its device library does not "
            "describe graphs"
        )


def _check_optimizer(optimizer: Optimizer, *_: object) -> None:
    """Raise if a captured optimizer counts its steps on the host: a replay would not count them."""
    steps_on_device = all(
        group.get("capturable", True) or group.get("fused") for group in optimizer.param_groups
    )
    if not steps_on_device and _C.is_current_stream_capturing():
        raise RuntimeError(
            f"{type(optimizer).__name__} counts its steps on the host, which cannot be recorded in "
            "a graph: make it with capturable=True"
        )


def graph_pool_handle() -> PoolId:
    """Return the id of a new memory pool that several graphs can share."""
    pool: PoolId = _C.graph_pool_handle()
    return pool


_capture_streams: dict[int, Stream] = {}


class graph:
    """Context manager that captures the work of the block into ``graph``.

    It waits for the current device, empties the cache, and makes ``stream`` current.

    Args:
        graph: a :class:`Graph`.
        pool: see :meth:`Graph.capture_begin`.
        stream: a stream of the current device. The default is one stream for all captures of the
            device.
        capture_error_mode: see :meth:`Graph.capture_begin`.
        enable_annotations: not supported, only ``False``.
        check_input_liveness: not supported, only ``False``.

    Raises:
        NotImplementedError: an argument is not supported.
        RuntimeError: on exit, if the capture failed; the message names the cause. An exception of
            the block takes precedence.
    """

    def __init__(
        self,
        graph: Graph,
        pool: PoolId | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if enable_annotations or check_input_liveness:
            raise NotImplementedError(
                "enable_annotations and check_input_liveness are not supported: leave them False"
            )
        self.graph = graph
        self.pool = pool
        self.capture_error_mode = capture_error_mode
        self._stream = stream
        self._context: StreamContext | None = None

    def __enter__(self) -> None:
        synchronize()
        empty_cache()
        device = _C.current_device()
        if self._stream is None:
            self._stream = _capture_streams.get(device) or Stream(device)
            _capture_streams[device] = self._stream
        self._context = StreamContext(self._stream)
        self._context.__enter__()
        try:
            self.graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        assert self._context is not None
        try:
            # The exception of the block names the cause.
            with contextlib.suppress(RuntimeError) if kind else contextlib.nullcontext():
                self.graph.capture_end()
        finally:
            self._context.__exit__()
        if kind is not None:
            self.graph.reset()


def warm_up(function: Callable[..., object], *arguments: Any, **keywords: Any) -> None:
    """Prepare the kernels that ``function(*arguments, **keywords)`` launches without running them.

    This captures the call and discards the graph: the device compiles the kernels and caches their
    plans, but reads and writes no memory. Tensors that the function creates are uninitialized. A
    function that stores such tensors, like the first step of an optimizer, must run once before.
    Afterwards, set the gradients that the function created to None.

    Raises:
        NotImplementedError: the device library does not support graphs; run the function instead.
        RuntimeError: the function cannot be captured; the message names the cause.
    """
    captured = Graph()
    with graph(captured):
        function(*arguments, **keywords)
    captured.reset()


# --- Callables ---


def make_graphed_callables(
    callables: Callable[..., Any] | tuple[Callable[..., Any], ...],
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: PoolId | None = None,
) -> Any:
    """Return callables that replay graphs of ``callables``, forward and backward.

    A module is changed in place: it replays in its current mode (training or eval), and runs its
    original ``forward`` in the other mode. A result is in graph memory and is valid until the next
    call.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will run.
        sample_args: a tuple of tensors with the shapes, dtypes and ``requires_grad`` of the later
            arguments; for a tuple of callables, a tuple of such tuples.
        num_warmup_iters: the number of calls of each callable before the capture.
        allow_unused_input: accept an input that does not affect the results; its gradient is None.
        pool: see :meth:`Graph.capture_begin`.

    Raises:
        RuntimeError: the autocast cache is enabled, or a capture failed.
        TypeError: an argument is not a tensor.
        ValueError: a module has hooks, or buffers that require gradients.
    """
    if torch.is_autocast_enabled(NAME) and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "a graph cannot use casts that autocast has cached: use "
            f"torch.autocast({NAME!r}, cache_enabled=False) around make_graphed_callables"
        )
    several = isinstance(callables, tuple)
    functions = callables if isinstance(callables, tuple) else (callables,)
    samples = sample_args if several else (sample_args,)
    makers = [
        _Callable(function, arguments, allow_unused_input)
        for function, arguments in zip(functions, samples, strict=True)
    ]
    synchronize()
    with StreamContext(Stream()):
        for maker in makers:
            maker.warm_up(num_warmup_iters)
    shared = graph_pool_handle() if pool is None else pool
    # The graphs share memory, so they are captured in the order of the replays: all forward passes,
    # then the backward passes from the last to the first.
    for maker in makers:
        maker.capture_forward(shared)
    for maker in reversed(makers):
        maker.capture_backward(shared)
    results = tuple(maker.replace() for maker in makers)
    return results if several else results[0]


class _Callable:
    """One callable, its two graphs and the tensors that the graphs read and write."""

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], allow_unused: bool
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.allow_unused = allow_unused
        self.given: list[torch.Tensor] = _pytree.tree_leaves(arguments)
        if not all(isinstance(argument, torch.Tensor) for argument in self.given):
            raise TypeError("sample_args must be tensors only: bind other arguments before")
        self.inputs = [*self.given]
        if isinstance(function, torch.nn.Module):
            _check_module(function)
            self.inputs += function.parameters()
        self.forward_graph = Graph()
        self.backward_graph = Graph()

    def differentiate(
        self, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """Return the gradients of all inputs, None for inputs without a gradient."""
        wanted = [tensor for tensor in self.inputs if tensor.requires_grad]
        found = iter(
            torch.autograd.grad(
                [output for output in outputs if output.requires_grad],
                wanted,
                gradients,
                allow_unused=self.allow_unused,
            )
        )
        return [next(found) if tensor.requires_grad else None for tensor in self.inputs]

    def warm_up(self, times: int) -> None:
        for _ in range(times):
            outputs = _pytree.tree_leaves(self.function(*self.arguments))
            gradients = [torch.zeros_like(output) for output in outputs if output.requires_grad]
            if gradients:
                self.differentiate(outputs, gradients)

    def capture_forward(self, pool: PoolId) -> None:
        with graph(self.forward_graph, pool):
            results = self.function(*self.arguments)
        self.outputs, self.form = _pytree.tree_flatten(results)

    def capture_backward(self, pool: PoolId) -> None:
        self.gradients = [
            torch.zeros_like(output) if output.requires_grad else None for output in self.outputs
        ]
        given = [gradient for gradient in self.gradients if gradient is not None]
        self.input_gradients: list[torch.Tensor | None] = [None] * len(self.inputs)
        if given:
            with graph(self.backward_graph, pool):
                self.input_gradients = self.differentiate(self.outputs, given)

    def replace(self) -> Callable[..., Any]:
        """Return a callable that replays the graphs; for a module, replace its ``forward``."""

        class Replay(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
                for fixed, argument in zip(self.given, inputs, strict=False):
                    _assign(fixed, argument)
                self.forward_graph.replay()
                return tuple(output.detach() for output in self.outputs)

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
                for fixed, gradient in zip(self.gradients, gradients, strict=True):
                    if fixed is not None:
                        _assign(fixed, gradient)
                self.backward_graph.replay()
                # The tensors themselves: a leaf copies a gradient that has other references.
                return tuple(self.input_gradients)

        apply: Any = Replay.apply
        parameters = self.inputs[len(self.given) :]

        def replay(*arguments: Any) -> Any:
            outputs = apply(*_pytree.tree_leaves(arguments), *parameters)
            return _pytree.tree_unflatten(outputs, self.form)

        module = self.function
        if not isinstance(module, torch.nn.Module):
            return replay
        captured_in = module.training
        original = module.forward

        def forward(*arguments: Any, **keywords: Any) -> Any:
            run = replay if module.training is captured_in else original
            return run(*arguments, **keywords)

        module.forward = forward
        return module


def _assign(fixed: torch.Tensor, value: torch.Tensor) -> None:
    with torch.no_grad():
        if fixed.data_ptr() != value.data_ptr():
            fixed.copy_(value)


def _check_module(module: torch.nn.Module) -> None:
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
        raise ValueError(
            "the module has hooks, which a replay does not call: register them afterwards"
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise ValueError("a buffer of the module requires gradients, but only parameters can")
