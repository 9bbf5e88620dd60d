"""Runs one case on the device: arrays in any layout, a probe, the launch, and checks of memory."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from kernels import layouts, oracle, tolerances
from kernels.element_types import DTYPES, STORED
from kernels.relayouts import Relayouts
from kernels.support import UPDATE, Case, Outcome, Support
from numpy.typing import NDArray

# The reason that the splitting layer returns for arrays beyond max_index_bits.
TOO_LARGE = "an array that is larger than the device's indices reach"

# The modes in support.toml: whether equal arguments must give equal bits.
FREE, DETERMINISTIC = "free", "deterministic"


def rng(*case: object) -> np.random.Generator:
    """Random numbers that depend only on the case."""
    return np.random.default_rng(zlib.crc32(" ".join(map(str, case)).encode()))


def uniform(dtype: str, shape: tuple[int, ...], *key: object) -> NDArray[Any]:
    """Numbers between -1 and 1, with such imaginary parts if the type has any."""
    random = rng(dtype, shape, *key)
    values = random.uniform(-1, 1, shape)
    if dtype in oracle.COMPLEX:
        values = values + 1j * random.uniform(-1, 1, shape)
    return np.asarray(values).astype(DTYPES[dtype])


class Array:
    """A strided array on the device, between guard bands, and its expected storage."""

    def __init__(
        self,
        api: ModuleType,
        dtype: str,
        shape: tuple[int, ...],
        place: layouts.Placer,
        filled: bool = True,
    ) -> None:
        self.filled = filled  # probes read no contents
        self.dtype = dtype
        self.shape = shape
        self.placement = place(shape)
        # All bits set: NaN, -1 or an invalid bool, to detect elements that are not written.
        self.storage = np.frombuffer(
            bytearray(b"\xff" * (self.placement.extent * STORED[dtype].itemsize)), STORED[dtype]
        )
        self.buffer = api.Buffer(0, self.storage.nbytes)
        self.view = self.buffer.view(
            self.placement.offset * STORED[dtype].itemsize,
            api.DType[dtype],
            list(shape),
            list(self.placement.strides),
        )
        self.upload()

    @property
    def strides(self) -> tuple[int, ...]:
        return self.placement.strides

    def upload(self) -> None:
        if self.filled:
            self.buffer.write(self.storage.view(np.uint8))

    def _strided(self, storage: NDArray[Any]) -> NDArray[Any]:
        size = storage.itemsize  # as_strided supports only numpy's own types
        strides = [stride * size for stride in self.placement.strides]
        memory = storage.view(np.uint8).data
        return np.ndarray(self.shape, storage.dtype, memory, self.placement.offset * size, strides)

    def set(self, values: NDArray[Any]) -> Array:
        """Sets the elements. If several share memory, the value of the first one counts."""
        first = tuple(
            slice(0, 1) if stride == 0 else slice(None) for stride in self.placement.strides
        )
        self._strided(self.storage)[first] = values[first] if values.ndim else values
        self.upload()
        return self

    @property
    def values(self) -> NDArray[Any]:
        """The elements as they were set."""
        return self._strided(self.storage).copy()

    def read(self) -> NDArray[Any]:
        """The elements on the device now. Fails if anything else in or around the storage changed."""
        assert self.buffer.guards_intact(), "bytes outside the array were written"
        now = np.frombuffer(self.buffer.read(), self.storage.dtype)
        around = self.storage.copy()
        self._strided(around)[...] = self._strided(now)
        same = now.view(np.uint8) == around.view(np.uint8)
        assert same.all(), f"byte {np.flatnonzero(~same)[0]} between the elements was written"
        return self._strided(now).copy()

    def unchanged(self) -> bool:
        """Whether the device still holds what was uploaded."""
        return bool(self.buffer.read() == self.storage.tobytes())


class Device:
    """The device under test. Runs cases on it."""

    def __init__(
        self,
        api: ModuleType,
        support: Support,
        probes_only: bool = False,
        every_layout: bool = False,
    ) -> None:
        self.api = api
        self.support = support
        # Whether to probe only, to write support.toml.
        self.probes_only = probes_only
        # The outcomes of the test so far.
        self.outcomes: list[Outcome] = []
        # The modes to run cases in, and whether their results have differed in this test.
        self.modes: tuple[str, ...] = (FREE, DETERMINISTIC)
        self.differs = False
        # The arguments of the test's descriptors, kept alive until the test ends, because a
        # descriptor stores only addresses.
        self.described: list[dict[str, Any]] = []
        self.relayouts = Relayouts(self, every_layout)
        self.stream = api.default_stream(0)
        properties = api.properties(0)
        self.flushes_denormals: bool = properties.flushes_denormals
        self.float64_arithmetic: bool = properties.float64_arithmetic
        self.reports_errors: bool = properties.reports_errors

    def array(
        self,
        dtype: str,
        shape: tuple[int, ...],
        place: layouts.Placer = layouts.contiguous,
        values: NDArray[Any] | None = None,
    ) -> Array:
        """A new array; without values, every bit of it is set."""
        array = Array(self.api, dtype, shape, place, filled=not self.probes_only)
        if values is None:
            return array
        with np.errstate(all="ignore"):
            return array.set(np.asarray(values).astype(STORED[dtype]))

    def integers(
        self, dtype: str, shape: tuple[int, ...], place: layouts.Placer, *key: object
    ) -> Array:
        """A new array of small integers, whose sums of products are exact in every type."""
        limit = 1 if dtype in ("float16", "bfloat16") else 3
        low = 0 if dtype == "uint8" else -limit
        values = rng(dtype, shape, *key).integers(low, limit + 1, shape)
        if dtype in oracle.COMPLEX:
            values = values + 1j * rng(dtype, shape, "imaginary", *key).integers(-3, 4, shape)
        return self.array(dtype, shape, place, values)

    def run(
        self,
        case: Case,
        outputs: Sequence[Array | None],
        *arguments: Any,
        more: Sequence[Any] = (),
    ) -> None:
        """Probes the case's family with these arguments, launches it, and waits, in each mode. The
        results of the deterministic mode stay in the outputs. `differs` is set if the other mode
        has other results.

        `more` are further arguments, whose integers are not part of the case's sizes. An
        unsupported case skips the test if support.toml declares it, else it fails the test.
        """
        arrays = [out for out in outputs if out is not None]
        given = [*arguments, *more]
        case = case.called(arguments, more)
        promises = self._ask(case, given)
        if not self.api.is_idle(self.stream):
            pytest.fail(f"{case}: the probe enqueued work")
        if self.probes_only:
            self._settle(case, promises)
            return
        assert all(out.unchanged() for out in arrays), f"{case}: the probe wrote to the output"
        results = []
        for mode, promise in promises.items():
            if results:
                for out in arrays:
                    out.upload()
            answer = self.call(case, given, mode, probe=False)
            assert promise == answer, f"{case}: the probe said {promise!r}, the launch {answer!r}"
            self.api.synchronize(self.stream)
            if answer is not None:
                same = all(out.unchanged() for out in arrays)
                assert same, f"{case} is unsupported, but the output was written"
                continue
            results.append([out.buffer.read() for out in arrays])
        self.differs |= any(result != results[0] for result in results)
        self._settle(case, promises)
        self.relayouts.check(case, arrays, given)

    def descriptor(self, name: str, **fields: Any) -> Any:
        """A descriptor with these fields: arrays, numbers, and enumerators by their names."""
        made = getattr(self.api, name)()
        self.described.append(fields)
        for field, value in fields.items():
            if isinstance(value, str):
                value = type(getattr(made, field))[value]
            setattr(made, field, _argument(value))
        return made

    def launch(self, case: Case, stream: Any, *arguments: Any) -> None:
        """Launches without waiting. Skips cases that support.toml declares unsupported."""
        case = case.called(arguments)
        family = getattr(self.api, case.family)
        answer = family(stream, *map(_argument, arguments), probe=self.probes_only)
        self._settle(case, {DETERMINISTIC: answer})

    def run_invalid(
        self, case: Case, message: str, *arguments: Any, more: Sequence[Any] = ()
    ) -> None:
        """Runs a case that fails on the device. Synchronisations throw until it is acknowledged."""
        if not self.reports_errors and case.family != "check":
            pytest.skip("properties: the device does not report errors of kernels")
        given = [*arguments, *more]
        case = case.called(arguments, more)
        promises = self._ask(case, given)
        self._settle(case, promises)
        for mode, promise in promises.items():
            if self.probes_only or promise is not None:
                continue
            assert self.call(case, given, mode, probe=False) is None
            with pytest.raises(self.api.DeviceError, match=message) as caught:
                self.api.synchronize(self.stream)
            assert caught.value.code == self.api.ErrorCode.INVALID_ARGUMENT
            if ("failures", "acknowledge_stream", True) in self.api.functions():
                self.api.acknowledge_stream(self.stream)
            self.api.synchronize(self.stream)

    def _ask(self, case: Case, arguments: Sequence[Any]) -> dict[str, str | None]:
        """The answer to a probe in each mode, modes with an unsupported case first."""
        promises = {mode: self.call(case, arguments, mode, probe=True) for mode in self.modes}
        return dict(sorted(promises.items(), key=lambda item: item[1] is None))

    def call(self, case: Case, arguments: Sequence[Any], mode: str, probe: bool) -> str | None:
        """The answer of the case's family: None, or the reason why it is unsupported."""
        family = getattr(self.api, case.family)
        given = map(_argument, arguments)
        answer: str | None = family(
            self.stream, *given, probe=probe, deterministic=mode == DETERMINISTIC
        )
        return answer

    def _settle(self, case: Case, answers: dict[str, str | None]) -> None:
        """Compares answers with support.toml, and stores them."""
        if TOO_LARGE in answers.values():
            pytest.skip(TOO_LARGE)
        if len(set(answers.values())) > 1:
            cases = {replace(case, mode=mode): answer for mode, answer in answers.items()}
        else:
            cases = {case: next(iter(answers.values()))}
        self.outcomes += [Outcome(case, answer) for case, answer in cases.items()]
        for one, answer in cases.items():
            line = None if self.probes_only else self.support.declares(one)
            if line and answer is None:
                pytest.fail(f"{one} works: remove {line!r} from support.toml, or `{UPDATE}`")
            if answer is not None and not line and not self.probes_only:
                pytest.fail(
                    f"{one} is unsupported ({answer}), but not declared in support.toml: "
                    f"implement it, or `{UPDATE}`"
                )
        if None not in cases.values():
            pytest.skip(next(iter(cases.values())) or "")

    def assert_exact(self, case: Case, out: Array, expected: NDArray[Any]) -> None:
        """Asserts that the output is `expected`, bit for bit. All NaNs are equal."""
        if self.probes_only:
            return
        got = out.read()
        with np.errstate(all="ignore"):
            wanted = np.broadcast_to(expected, got.shape).astype(got.dtype)
        _compare(case, got, wanted, _same_bits(got, wanted))

    def assert_close(
        self,
        case: Case,
        out: Array,
        expected: NDArray[Any],
        scale: NDArray[Any] | float = 0.0,
        signed_zeros: bool = True,
    ) -> None:
        """Asserts that the output is `expected` within the case's tolerance; integers exactly.

        `expected` is in double precision. `scale` is the magnitude of terms that cancel in the
        result.
        """
        if self.probes_only:
            return
        if out.dtype in oracle.INTEGERS + oracle.BOOL:
            self.assert_exact(case, out, expected)
            return
        got = out.read()
        expected = np.broadcast_to(expected, got.shape)
        units = tolerances.ulp(case, self.support)
        size = np.maximum(np.abs(_finite(expected)), np.abs(_finite(np.asarray(scale))))
        unit = tolerances.spacing(size, DTYPES[case.dtype])
        self.assert_within(case, got, expected, units * unit, signed_zeros)

    def assert_within(
        self,
        case: Case,
        got: NDArray[Any],
        expected: NDArray[Any],
        allowed: NDArray[Any] | float,
        signed_zeros: bool = True,
    ) -> None:
        """Asserts that every element is within `allowed`; infinities and NaN must be equal."""
        wide = np.complex128 if np.iscomplexobj(got) else np.float64
        with np.errstate(all="ignore"):
            rounded = np.asarray(expected).astype(got.dtype).astype(wide)
            result = got.astype(wide)
            error = np.abs(result - expected)
            good = (error <= allowed) | (result == rounded)
            good |= np.isnan(result) & np.isnan(rounded)
            # At the limit of the range, an overflow may occur one step early or late.
            limit = tolerances.largest(got.dtype)
            edge = np.abs(_finite(expected, limit)) + allowed >= limit
            good |= np.isinf(result) & edge & (np.sign(result.real) == np.sign(expected.real))
            if self.flushes_denormals:
                tiny = np.abs(expected) < tolerances.smallest_normal(got.dtype)
                good |= (result == 0) & tiny
            if signed_zeros and wide is np.float64:
                zero = (result == 0) & (expected == 0)
                good &= ~zero | (np.signbit(result) == np.signbit(expected))
        _compare(case, got, rounded, good)

    def verify(
        self,
        case: Case,
        op: oracle.Operation,
        out: Array,
        inputs: Sequence[NDArray[Any]],
        params: dict[str, Any],
    ) -> None:
        wide = [oracle.wide(values) for values in inputs]
        with np.errstate(all="ignore"):
            expected = np.asarray(op.compute(*wide, **params))
            scale = op.scale(*wide, **params)
        self.assert_close(case, out, expected, scale, op.signed_zeros)


def _argument(value: Any) -> Any:
    """A family's argument: arrays are replaced by views, in lists too."""
    if isinstance(value, Array):
        return value.view
    return [_argument(item) for item in value] if isinstance(value, list) else value


def _finite(values: NDArray[Any], otherwise: float = 0.0) -> NDArray[Any]:
    return np.where(np.isfinite(values), values, otherwise)


def _same_bits(got: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    got, wanted = np.ascontiguousarray(got), np.ascontiguousarray(wanted)
    size = got.dtype.itemsize
    same = got.reshape(-1).view(np.uint8) == wanted.reshape(-1).view(np.uint8)
    with np.errstate(invalid="ignore"):
        both_nan = (got != got) & (wanted != wanted)
    return np.asarray(same.reshape(-1, size).all(1).reshape(got.shape) | both_nan)


def _compare(case: Case, got: NDArray[Any], wanted: NDArray[Any], good: NDArray[np.bool_]) -> None:
    if good.all():
        return
    bad = np.argwhere(~good)
    index = tuple(int(i) for i in bad[0])
    raise AssertionError(
        f"{case}: {len(bad)} of {good.size} elements differ, first at {index}: "
        f"got {got[index]!r}, expected {wanted[index]!r}"
    )
