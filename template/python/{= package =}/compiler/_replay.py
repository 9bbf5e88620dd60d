"""``mode="reduce-overhead"``: what was compiled is captured once and launched again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch._inductor.compile_fx import get_expanded_dims, index_expanded_dims_and_copy_

from .. import _C
from .._build import NAME
from ..graphs import Graph, graph

_MOST_GRAPHS = 8
"""How many captures one piece of code may have: each keeps memory of its own."""

Code = Callable[[list[Any]], Sequence[Any]]


class Replayed:
    """Calls compiled code: as it is at first, by a graph from the second call with the same shapes.

    A graph writes its results to the same memory each time. Outputs that the caller sees are copied
    out of it. The others, which go to the backward pass or become gradients, are usually gone
    before the next call; while somebody holds one of them, the code is called as it is.

    Args:
        code: takes a list of inputs, which it empties, and returns its outputs.
        fixed: which inputs are likely to be in the same memory each time, as parameters are.
        mutated: which inputs it writes to.
        seen: which outputs the caller sees.
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
        key = tuple(value.shape if isinstance(value, torch.Tensor) else value for value in inputs)
        if key not in self._captures:
            if len(self._captures) < _MOST_GRAPHS:
                self._captures[key] = None
            return self._code(inputs)
        capture = self._captures[key] or self._capture(key, inputs)
        if capture is None or capture.is_in_use():
            return self._code(inputs)
        moved = capture.moved(inputs)
        if moved:
            # Copied into the capture from now on. What is written to has to stay where it is.
            self._captures[key] = None
            self._fixed -= moved - self._mutated
            return self._code(inputs)
        return capture.replay(inputs)

    def _capture(self, key: tuple[Any, ...], inputs: list[Any]) -> _Capture | None:
        try:
            capture = _Capture(self._code, inputs, self._fixed, self._seen)
        except RuntimeError as error:
            self._refused = True
            warnings.warn(f"{NAME}: compiled code runs without a graph: {error}", stacklevel=3)
            return None
        self._captures[key] = capture
        return capture


class _Capture:
    """One capture of compiled code, and the memory that it reads and writes."""

    def __init__(
        self, code: Code, inputs: Sequence[Any], fixed: Collection[int], seen: Collection[int]
    ) -> None:
        self._graph = Graph()
        self._inputs = list(inputs)
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
                self._inputs[index] = held
                self._copied.append((index, held, get_expanded_dims(value)))
        self._copy(inputs)
        with graph(self._graph):
            outputs = code(list(self._inputs))
        places = {id(value): index for index, value in enumerate(self._inputs)}
        self._outputs = list(outputs)
        self._passed = {
            index: places[id(value)]
            for index, value in enumerate(self._outputs)
            if isinstance(value, torch.Tensor) and id(value) in places
        }
        self._seen = frozenset(seen)
        # Only what is given out without a copy can be held by others.
        shared = {
            value.untyped_storage()._cdata: value
            for index, value in enumerate(self._outputs)
            if isinstance(value, torch.Tensor)
            and index not in self._passed
            and index not in self._seen
        }
        self._storages = [value.untyped_storage() for value in shared.values()]
        # The fixed inputs belong to others, and the capture may give parts of them out.
        del outputs, shared
        self._inputs = [held for _, held, _ in self._copied]
        self._holders = [self._count(storage) for storage in self._storages]

    def is_in_use(self) -> bool:
        """Say whether somebody holds an output that the next replay writes to."""
        return any(
            self._count(storage) > holders
            for storage, holders in zip(self._storages, self._holders, strict=True)
        )

    def moved(self, inputs: Sequence[Any]) -> set[int]:
        """Return which inputs are not where the capture reads them, and are not copied there."""
        return {index for index, place in self._fixed if inputs[index].data_ptr() != place}

    def replay(self, inputs: list[Any]) -> Sequence[Any]:
        """Return the outputs for ``inputs``, which is emptied."""
        self._copy(inputs)
        self._graph.replay()
        outputs = [
            inputs[self._passed[index]] if index in self._passed else self._given(index, value)
            for index, value in enumerate(self._outputs)
        ]
        inputs.clear()
        return outputs

    def _given(self, index: int, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.clone() if index in self._seen else value.detach()

    def _copy(self, inputs: Sequence[Any]) -> None:
        for index, held, expanded in self._copied:
            index_expanded_dims_and_copy_(held, inputs[index], expanded)

    @staticmethod
    def _count(storage: torch.UntypedStorage) -> int:
        count: int = torch._C._storage_Use_Count(storage._cdata)
        return count
