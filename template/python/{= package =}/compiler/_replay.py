"""``mode="reduce-overhead"``: compiled code is captured once and replayed."""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.compile_fx import index_expanded_dims_and_copy_
from torch._inductor.output_code import get_expanded_dims

from .. import _C
from .._build import NAME

_DRAWING = "_scaled_dot_product_fused_attention_overrideable"
"""The operators that return CPU tensors to identify their random numbers. Replays ignore them."""
_MOST_GRAPHS = 8
"""The maximum number of captures of one compiled graph. Each has its own memory."""

Code = Callable[[list[Any]], Sequence[Any]]


class Replayed:
    """Calls compiled code directly at first, then by a graph for each set of shapes and strides.

    The second call with the same shapes and strides captures the code. A graph writes its results
    to the same memory each time. Outputs that are visible to the caller are copied. Other outputs,
    for the backward pass or as gradients, are usually released before the next call. While one of
    them is in use, the code is called directly.

    Args:
        code: a function that clears its list of inputs and returns its outputs.
        fixed: the inputs that are likely to be in the same memory each time, such as parameters.
        mutated: the inputs that the code writes to.
        seen: the outputs that are visible to the caller.
    """

    def __init__(
        self,
        code: Code,
        fixed: Collection[int],
        mutated: Collection[int],
        seen: Collection[int],
    ) -> None:
        self._code = code
        self._fixed = set(fixed) | set(mutated)
        self._mutated = frozenset(mutated)
        self._seen = frozenset(seen)
        self._captures: dict[tuple[Any, ...], _Capture | None] = {}
        self._refused = False

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self._refused or _C.is_current_stream_capturing():
            return self._code(inputs)
        key = tuple(
            (value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
            for value in inputs
        )
        if key not in self._captures:
            if len(self._captures) < _MOST_GRAPHS:
                self._captures[key] = None
            return self._code(inputs)
        capture = self._captures[key] or self._capture(key, inputs)
        if capture is None or capture.is_in_use():
            return self._code(inputs)
        moved = capture.moved(inputs)
        if moved & self._mutated:
            self._refuse("it writes to an input whose address differs between calls")
        if moved:
            # The next captures copy these inputs.
            self._captures[key] = None
            self._fixed -= moved
            return self._code(inputs)
        return capture.replay(inputs)

    def _capture(self, key: tuple[Any, ...], inputs: list[Any]) -> _Capture | None:
        try:
            capture = _Capture(self._code, inputs, self._fixed, self._seen)
        # AttributeError: the backend was generated without graphs; the message says so.
        except (AttributeError, RuntimeError) as error:
            self._refuse(str(error))
            return None
        self._captures[key] = capture
        return capture

    def _refuse(self, reason: str) -> None:
        self._refused = True
        self._captures.clear()
        warn(reason)


def warn(reason: str) -> None:
    """Warn that compiled code is not captured."""
    warnings.warn(f"{NAME}: compiled code runs without a graph: {reason}", stacklevel=3)


def refusal(graph: torch.fx.Graph) -> str | None:
    """Return why code for ``graph`` cannot be captured, or None if it uses one device only."""
    used: set[torch.device] = set()
    for node in graph.nodes:
        if node.op in ("output", "get_attr") or not node.users:
            continue
        values = node.meta.get("val")
        found = {
            value.device
            for value in (values if isinstance(values, (tuple, list)) else (values,))
            if isinstance(value, torch.Tensor)
        }
        if _DRAWING in str(node.target) or all(
            _DRAWING in str(user.target) or user.op == "output" for user in node.users
        ):
            found.discard(torch.device("cpu"))
        source = node.args[0] if node.target is operator.getitem else None
        if isinstance(source, torch.fx.Node) and _DRAWING in str(source.target):
            found.discard(torch.device("cpu"))
        used |= found
    if len(used) <= 1:
        return None
    return f"it uses {' and '.join(sorted(map(str, used)))}"


@dataclass(frozen=True)
class _View:
    """An output that is a view of an input. A replay returns the view of the caller's input."""

    source: int
    dtype: torch.dtype
    shape: torch.Size
    stride: tuple[int, ...]
    offset: int  # in bytes, from the first element of the input

    def of(self, inputs: Sequence[Any]) -> torch.Tensor:
        """Return the view of the current input."""
        source: torch.Tensor = inputs[self.source]
        start = source.storage_offset() * source.element_size() + self.offset
        view = torch.empty(0, dtype=self.dtype, device=source.device)
        return view.set_(
            source.untyped_storage(), start // self.dtype.itemsize, self.shape, self.stride
        )


def _views(
    outputs: Sequence[Any], read: Sequence[Any], passed: Collection[int]
) -> dict[int, _View]:
    sources = {
        value.untyped_storage()._cdata: index
        for index, value in enumerate(read)
        if isinstance(value, torch.Tensor) and value.numel() > 0
    }
    views = {}
    for index, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor) or index in passed:
            continue
        source = sources.get(value.untyped_storage()._cdata)
        if source is None or value.numel() == 0:
            continue
        if value.is_conj() or value.is_neg():
            raise RuntimeError("an output is a lazily conjugated or negated view of an input")
        offset = value.data_ptr() - read[source].data_ptr()
        views[index] = _View(source, value.dtype, value.shape, value.stride(), offset)
    return views


def _clone(value: torch.Tensor) -> torch.Tensor:
    """Return a copy with the strides of ``value``, also if its elements share memory."""
    copy = value.clone()
    if copy.stride() == value.stride() or value.numel() == 0:
        return copy
    extent = 1 + sum((n - 1) * step for n, step in zip(value.shape, value.stride(), strict=True))
    memory = value.as_strided((extent,), (1,), value.storage_offset()).clone()
    return memory.as_strided(value.shape, value.stride(), 0)


class _Capture:
    """One capture of compiled code, and the memory that it reads and writes."""

    def __init__(
        self, code: Code, inputs: Sequence[Any], fixed: Collection[int], seen: Collection[int]
    ) -> None:
        backend: Any = torch.get_device_module(NAME)
        self._graph = backend.Graph()
        read = list(inputs)
        self._copied: list[tuple[int, torch.Tensor, list[int]]] = []
        self._fixed: list[tuple[int, int]] = []
        for index, value in enumerate(inputs):
            if not isinstance(value, torch.Tensor):
                continue
            if index in fixed:
                self._fixed.append((index, value.data_ptr()))
            else:
                held = torch.empty_strided(
                    value.shape, value.stride(), dtype=value.dtype, device=value.device
                )
                read[index] = held
                self._copied.append((index, held, get_expanded_dims(value)))
        self._copy(inputs)
        with backend.graph(self._graph):
            outputs = code(list(read))
        places = {id(value): index for index, value in enumerate(read)}
        self._outputs = list(outputs)
        self._passed = {
            index: places[id(value)]
            for index, value in enumerate(self._outputs)
            if isinstance(value, torch.Tensor) and id(value) in places
        }
        self._views = _views(self._outputs, read, self._passed)
        self._seen = frozenset(seen)
        self._shared = self._shared_storages()
        # Only outputs that are returned without a copy can be in use.
        lasting = {inputs[index].untyped_storage()._cdata for index, _ in self._fixed}
        storages = {
            value.untyped_storage()._cdata: value.untyped_storage()
            for index, value in enumerate(self._outputs)
            if isinstance(value, torch.Tensor)
            and index not in self._passed
            and index not in self._views
            and index not in self._seen
        }
        self._storages = [storages[place] for place in storages.keys() - lasting]
        del outputs, read, storages
        self._holders = [self._count(storage) for storage in self._storages]

    def _shared_storages(self) -> dict[int, Any]:
        """Return the storages that several outputs share. Their copies share a storage too."""
        storages = [
            self._outputs[index].untyped_storage()
            for index in self._seen - self._passed.keys() - self._views.keys()
            if isinstance(self._outputs[index], torch.Tensor)
        ]
        counts = Counter(storage._cdata for storage in storages)
        return {each._cdata: each for each in storages if counts[each._cdata] > 1}

    def is_in_use(self) -> bool:
        """Return whether an output that the next replay writes to is in use."""
        return any(
            self._count(storage) > holders
            for storage, holders in zip(self._storages, self._holders, strict=True)
        )

    def moved(self, inputs: Sequence[Any]) -> set[int]:
        """Return the fixed inputs whose address differs from that of the capture."""
        return {index for index, place in self._fixed if inputs[index].data_ptr() != place}

    def replay(self, inputs: list[Any]) -> Sequence[Any]:
        """Return the outputs for ``inputs``, and clear ``inputs``."""
        self._copy(inputs)
        self._graph.replay()
        shared: dict[int, Any] = {place: each.clone() for place, each in self._shared.items()}
        outputs = [
            self._given(index, value, inputs, shared) for index, value in enumerate(self._outputs)
        ]
        inputs.clear()
        return outputs

    def _given(
        self,
        index: int,
        value: Any,
        inputs: Sequence[Any],
        shared: Mapping[int, Any],
    ) -> Any:
        if index in self._passed:
            return inputs[self._passed[index]]
        if index in self._views:
            return self._views[index].of(inputs)
        if not isinstance(value, torch.Tensor):
            return value
        if index not in self._seen:
            return value.detach()
        memory = shared.get(value.untyped_storage()._cdata)
        if memory is None:
            return _clone(value)
        view = torch.empty(0, dtype=value.dtype, device=value.device)
        return view.set_(memory, value.storage_offset(), value.shape, value.stride())

    def _copy(self, inputs: Sequence[Any]) -> None:
        for index, held, expanded in self._copied:
            index_expanded_dims_and_copy_(held, inputs[index], expanded)

    @staticmethod
    def _count(storage: torch.UntypedStorage) -> int:
        count: int = torch._C._storage_Use_Count(storage._cdata)
        return count
