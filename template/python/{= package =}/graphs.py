"""Graphs: work of this device that is recorded once and launched often, as in ``torch.cuda``.

A capture records what is enqueued on its stream, and on streams that wait for events of it, and
runs nothing. A replay runs all of it at the cost of one launch, with the memory of the capture: the
inputs are what the captured tensors hold then, and the results are in the same tensors each time.
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
        keep_graph: for code that is written for ``torch.cuda``. A capture of this device can be
            launched as soon as it has ended, whatever this says.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._graph = _C.Graph()
        self._hook: weakref.finalize[..., Graph] | None = None

    def capture_begin(self, pool: PoolId | None = None, capture_error_mode: str = "global") -> None:
        """Record what is enqueued on the current stream from now on; :class:`graph` does it better.

        Args:
            pool: where its memory comes from: a new private pool, or one that other graphs use
                too, by :func:`graph_pool_handle` or :meth:`pool`. Graphs that share one are to be
                replayed in the order of their captures, and never at the same time.
            capture_error_mode: ``global``, ``thread_local`` or ``relaxed``, which are the same
                here: what cannot be recorded raises on the streams of the capture.

        Raises:
            NotImplementedError: the device library captures no graphs.
            RuntimeError: the default stream is current, a capture is under way on the device, or
                the graph has one already.
            ValueError: there is no such mode.
        """
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"capture_error_mode is one of {', '.join(_MODES)}, not {capture_error_mode!r}"
            )
        self._graph.begin((0, 0) if pool is None else pool)
        # Also where the graph goes in the middle of its capture.
        self._hook = weakref.finalize(
            self, register_optimizer_step_pre_hook(_check_optimizer).remove
        )

    def capture_end(self) -> None:
        """End the capture.

        Raises:
            RuntimeError: naming what broke the capture; the graph is then as new.
        """
        self._forget_hook()
        self._graph.end()

    def instantiate(self) -> None:
        """Do nothing: the graph can be launched since its capture ended.

        Raises:
            RuntimeError: there is no capture.
        """
        self._graph.check_captured()

    def replay(self) -> None:
        """Enqueue the recorded work on the current stream of the graph's device.

        Replays of one graph run one after the other, on whichever streams. What they compute is in
        the tensors of the capture, in the order of that stream.

        Raises:
            RuntimeError: there is no capture, or the stream is being captured itself.
        """
        self._graph.replay()

    def reset(self) -> None:
        """Give up the capture; memory that no tensor holds goes back to the device."""
        self._forget_hook()
        self._graph.reset()

    def pool(self) -> PoolId:
        """Return the id of the graph's memory pool, for ``pool=`` of others.

        Raises:
            RuntimeError: there is no capture.
        """
        pool: PoolId = self._graph.pool()
        return pool

    def _forget_hook(self) -> None:
        if self._hook is not None:
            self._hook()

    def enable_debug_mode(self) -> None:
        """Do nothing: :meth:`debug_dump` has nothing to write."""

    def debug_dump(self, debug_path: str) -> None:
        """Raise NotImplementedError: device libraries do not describe their graphs."""
        raise NotImplementedError(
            f"a graph of {NAME} cannot be written to {debug_path!r}: its device library does not "
            "describe graphs"
        )


def _check_optimizer(optimizer: Optimizer, *_: object) -> None:
    """Refuse to capture a step for which the host counts: each replay would be the same step."""
    countless = all(
        group.get("capturable", True) or group.get("fused") for group in optimizer.param_groups
    )
    if not countless and _C.is_current_stream_capturing():
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
    """Context manager that captures into ``graph`` what is enqueued within.

    It waits for the current device, empties the cache, and makes ``stream`` current.

    Args:
        graph: of this module.
        pool: see :meth:`Graph.capture_begin`.
        stream: of the current device; one for all captures of the device unless given.
        capture_error_mode: see :meth:`Graph.capture_begin`.

    Raises:
        RuntimeError: at the end, naming what broke the capture, unless an exception leaves the
            block anyway.
    """

    def __init__(
        self,
        graph: Graph,
        pool: PoolId | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
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
            # The exception that is on its way says what was wrong.
            with contextlib.suppress(RuntimeError) if kind else contextlib.nullcontext():
                self.graph.capture_end()
        finally:
            self._context.__exit__()
        if kind is not None:
            self.graph.reset()


def warm_up(function: Callable[..., object], *arguments: Any, **keywords: Any) -> None:
    """Let the device prepare what ``function(*arguments, **keywords)`` launches, and run nothing.

    The call is captured, and what was captured is thrown away: kernels are compiled, and the device
    keeps its plans for them, but no memory is read or written. So tensors that the function makes
    hold no values. One that keeps some of them, as an optimizer's first step does, is to be run
    once before; gradients that it leaves behind are to be set to None.

    Raises:
        NotImplementedError: the device library captures no graphs; run the function instead.
        RuntimeError: the function does what cannot be captured, as it says.
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

    A module is changed in place: it replays in the mode (training or not) that it has now, and
    runs as before in the other one. A result is in the memory of the graph, until the next call.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will run.
        sample_args: a tuple of tensors as the callable will get them, of the same sizes, dtypes
            and ``requires_grad``; for a tuple of callables, a tuple of such tuples.
        num_warmup_iters: how often each is run before the capture.
        allow_unused_input: accept an input without a part in the results; its gradient is None.
        pool: see :meth:`Graph.capture_begin`.

    Raises:
        RuntimeError: autocast caches casts, which a graph cannot do; or the capture is broken.
        TypeError: an argument is no tensor.
        ValueError: a module has hooks, or buffers that require gradients.
    """
    if torch.is_autocast_enabled(NAME) and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "a graph cannot keep the casts that autocast caches: use "
            f"torch.autocast({NAME!r}, cache_enabled=False) round make_graphed_callables"
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
    # They share memory, so they are captured in the order of the replays: all forward passes, then
    # the backward passes from the last to the first.
    for maker in makers:
        maker.capture_forward(shared)
    for maker in reversed(makers):
        maker.capture_backward(shared)
    results = tuple(maker.replace() for maker in makers)
    return results if several else results[0]


class _Callable:
    """One callable, its two graphs and the tensors that they work on."""

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], allow_unused: bool
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.allow_unused = allow_unused
        self.given: list[torch.Tensor] = _pytree.tree_leaves(arguments)
        if not all(isinstance(argument, torch.Tensor) for argument in self.given):
            raise TypeError("sample_args are to be tensors only: bind other arguments beforehand")
        self.inputs = [*self.given]
        if isinstance(function, torch.nn.Module):
            _check_module(function)
            self.inputs += function.parameters()
        self.forward_graph = Graph()
        self.backward_graph = Graph()

    def differentiate(
        self, outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """Return the gradients of all inputs, None for those that have none."""
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
        """Return what replays the graphs; a module's ``forward`` becomes that."""

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
                # These tensors and not others of their memory: a leaf copies what somebody else holds.
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
            "the module has hooks, which a replay would not call: register them afterwards"
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise ValueError("a buffer of the module requires gradients, which only parameters get")
