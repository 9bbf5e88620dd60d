"""Runs a launch with each array in each layout: equal values give equal results."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from kernels import layouts
from kernels.support import Case
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kernels.harness import Array, Device

SMALLEST, LARGEST = 6, 4096
"""The numbers of elements of arrays that are tested in other layouts."""

MOST = 2
"""The number of cases for each operation and element type, unless every layout is tested."""

TRY_ALL_LAYOUTS = ("unary", "binary", "ternary", "convert")
"""Families whose own tests use all layouts."""

APART = (
    *(layouts.offset, layouts.transposed, layouts.stepped),
    *(layouts.channels_last, layouts.wide_columns),
)
"""Layouts without shared elements."""

Answer = tuple[str | None, list[NDArray[Any]]]


def broadcast(dim: int) -> layouts.Placer:
    """Return the placer of an array that repeats its first slice along a dimension."""

    def place(shape: tuple[int, ...]) -> layouts.Placement:
        inner = layouts.contiguous((*shape[:dim], 1, *shape[dim + 1 :])).strides
        return layouts.Placement.of(shape, (*inner[:dim], 0, *inner[dim + 1 :]))

    return place


def placers(array: Array) -> Iterator[tuple[str, layouts.Placer]]:
    """Return the layouts for an input. Indices stay distinct: equal ones may be undefined."""
    for place in APART:
        yield place.__name__, place
    if np.issubdtype(array.storage.dtype, np.integer):
        return
    for dim, size in enumerate(array.shape):
        if size > 1:
            yield f"broadcast dimension {dim}", broadcast(dim)


def arrays_of(arguments: Sequence[Any]) -> list[Array]:
    """Return the arrays among arguments and in their lists, each once."""
    from kernels.harness import Array

    every = [one for each in arguments for one in (each if isinstance(each, list) else [each])]
    return list({id(one): one for one in every if isinstance(one, Array)}.values())


def swapped(arguments: Sequence[Any], old: Array, new: Array) -> list[Any]:
    """Return the arguments with one array in the place of another."""
    return [
        swapped(each, old, new) if isinstance(each, list) else new if each is old else each
        for each in arguments
    ]


class Relayouts:
    """Runs cases again: the first few of each operation and element type, or all."""

    def __init__(self, device: Device, every: bool) -> None:
        self.device = device
        self.most = sys.maxsize if every else MOST
        self.seen: Counter[tuple[str, ...]] = Counter()

    def check(self, case: Case, outputs: Sequence[Array], arguments: Sequence[Any]) -> None:
        """Run the case's family with each array in turn in each layout, and compare the outputs."""
        key = (case.family, case.op, case.dtype)
        arrays = [
            array
            for array in arrays_of(arguments)
            if SMALLEST <= array.storage.size <= LARGEST
            and array.view.dtype.name == array.dtype  # not bytes that are viewed as another type
        ]
        if self.seen[key] == self.most or not arrays or case.family in TRY_ALL_LAYOUTS:
            return
        self.seen[key] += 1
        before = self.device.api.layers()
        # If the project has the layer.
        self.device.api.set_layers([*{"validate"} & {*self.device.api.known_layers()}])
        try:
            for array in arrays:
                if any(array is output for output in outputs):
                    self._check_output(case, outputs, arguments, array)
                else:
                    self._check_input(case, outputs, arguments, array)
        finally:
            self.device.api.set_layers(before)
            self._run(case, outputs, arguments)

    def _check_input(
        self, case: Case, outputs: Sequence[Array], arguments: Sequence[Any], given: Array
    ) -> None:
        values = given.read()  # another launch may have written them
        for name, placer in placers(given):
            changed = self.device.array(given.dtype, given.shape, placer).set(values)
            dense = self.device.array(given.dtype, given.shape).set(changed.values)
            unsupported, wanted = self._run(case, outputs, swapped(arguments, given, dense))
            answer, got = self._run(case, outputs, swapped(arguments, given, changed))
            self._compare(f"{case}: an input, {name}", unsupported or answer, wanted, got)

    def _check_output(
        self, case: Case, outputs: Sequence[Array], arguments: Sequence[Any], given: Array
    ) -> None:
        for placer in APART:
            changed = self.device.array(given.dtype, given.shape, placer).set(given.values)
            unsupported, wanted = self._run(case, outputs, arguments)
            given.upload()  # another argument may be the same array
            written, replaced = (swapped(each, given, changed) for each in (outputs, arguments))
            answer, got = self._run(case, written, replaced)
            self._compare(
                f"{case}: an output, {placer.__name__}", unsupported or answer, wanted, got
            )

    def _compare(
        self,
        what: str,
        unsupported: str | None,
        wanted: list[NDArray[Any]],
        got: list[NDArray[Any]],
    ) -> None:
        for one, other in zip(wanted, got, strict=True):
            assert unsupported is not None or same(one, other), f"{what}: another result"

    def _run(self, case: Case, outputs: Sequence[Array], arguments: Sequence[Any]) -> Answer:
        """Return the answer, or the reason why the layout is not allowed, and the outputs."""
        for output in outputs:
            output.upload()
        try:
            answer = self.device.call(case, arguments, "deterministic", probe=False)
        except self.device.api.DeviceError as error:
            if error.code is not self.device.api.ErrorCode.INVALID_ARGUMENT:
                raise
            answer = str(error)
        self.device.api.synchronize(self.device.stream)
        return answer, [output.read() for output in outputs]


def same(wanted: NDArray[Any], got: NDArray[Any]) -> bool:
    """Whether two results differ at most by the order of their sums."""
    if np.issubdtype(wanted.dtype, np.integer) or wanted.dtype == np.bool_:
        return bool((wanted == got).all())
    wide = np.complex128 if np.iscomplexobj(wanted) else np.float64
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(got.astype(wide), wanted.astype(wide), rtol=0.02, atol=0.02, equal_nan=True)
        )
