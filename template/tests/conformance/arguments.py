"""Calls overloads with wrong arguments, one at a time, and compares the device with the CPU.

``python -m conformance.arguments abs add`` tries the overloads that the samples of these operators
reach, ``--others`` those of argument_bases.py, and without either all overloads. There are three
kinds of findings. "harm": the call ends or blocks the process, fails an internal check, or accepts
a tensor of another device. "value": the result differs from the CPU's. "refusal": the call succeeds
although the CPU raises. If a call ends its process, another process continues with the next call.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import select
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from backend import DEVICE, backend
from conformance import compare
from conformance.argument_calls import Call, every_operator, native_overloads, record, run
from conformance.argument_variations import PLACES, Variation, variations
from conformance.samples import map_values, tensors_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

UNREACHED = {
    "aten::_functional_assert_async.msg": "an assertion that functionalization makes",
    "aten::_has_compatible_shallow_copy_type": "asked by PyTorch itself",
    "aten::_nested_view_from_buffer": "of nested tensors, which a call cannot copy",
    "aten::record_stream": "takes a stream",
    "aten::set_.source_Storage_storage_offset": "takes a storage",
}
"""Overloads without a valid call, and why."""
KNOWN = tomllib.loads(Path(__file__).with_name("known_arguments.toml").read_text("utf-8"))
TIMES = 20
"""Seconds that one call may take."""
MEMORY = 1 << 32
"""Bytes of address space that the calls of a process may use."""

RIGHT = "as it is"
"""The variation of a finding about the valid call itself, which replaces its "value" findings."""

BROKEN = re.compile(r"contract of |is not an address of|\(0\): ")
"""Matches errors of a device whose caller broke its contract."""


@dataclass(frozen=True)
class Outcome:
    """The result of a call and the arguments it wrote, as CPU tensors; or its exception."""

    value: Any = None
    error: Exception | None = None


def outcome(call: Call, place: str, variation: Variation | None) -> Outcome:
    """Run a call on the CPU or the device."""
    torch.manual_seed(0)
    arguments = call.on(place)
    try:
        if variation is not None:
            arguments = variation.apply(arguments, place)
    except Exception as error:
        return Outcome(error=error)
    try:
        result = run(call.overload, arguments)
        written = [
            arguments[item.name] for item in call.overload._schema.arguments if item.is_write
        ]
        value = map_values(
            (result, written), lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf
        )
        backend.synchronize()
        return Outcome(value)
    except Exception as error:
        return Outcome(error=error)
    finally:
        with suppress(NotImplementedError):  # the device may not support it
            backend.acknowledge_failure()


def may_differ(overload: torch._ops.OpOverload) -> bool:
    """Whether the result is random, depends on the device, or is uninitialised."""
    tagged = torch.Tag.nondeterministic_seeded in overload.tags
    return tagged or overload._schema.name in (
        f"{DEVICE}::top_k_top_p_sample",
        "aten::_fused_sdp_choice",
        "aten::empty",
        "aten::empty_strided",
        "aten::resize_",
        "aten::resize_as_",
        "aten::set_",
    )


def same(call: Call, mine: Any, expected: Any, narrow: bool = False) -> str:
    """Return the difference of two results on the host. ``narrow``: the inputs are float16."""
    tolerance = compare.TOLERANCES[torch.float16] if narrow else None
    if any(tensor.is_nested for tensor in tensors_of((mine, expected))):
        return ""
    one, other = compare.leaves(mine), compare.leaves(expected)
    if len(one) != len(other):
        return f"{len(one)} results, expected {len(other)}"
    for mine, expected in zip(one, other, strict=True):
        if not isinstance(mine, torch.Tensor) or not isinstance(expected, torch.Tensor):
            if isinstance(mine, (int, bool)) and mine != expected and not may_differ(call.overload):
                return f"{mine}, expected {expected}"
            continue
        if mine.shape != expected.shape or mine.dtype != expected.dtype:
            return f"{mine.dtype} of {tuple(mine.shape)}, expected {expected.dtype} of {tuple(expected.shape)}"
        if may_differ(call.overload) or mine.layout is not torch.strided:
            continue
        try:
            compare.check_values(mine, expected, tolerance, False)
        except compare.WrongResult as error:
            return str(error)[:160]
    return ""


def words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


ACCIDENTS = re.compile(r"INTERNAL ASSERT|TensorAccessor expected|create a primitive|MKL FFT error")
"""Matches errors of the CPU for arguments that it does not check."""


def harm(variation: Variation, cpu: Outcome | None, device: Outcome) -> str:
    """Return the error of the device if no call may raise it, whatever its arguments are."""
    said = device.error
    if said is None:
        return ""
    text = " ".join(str(said).split())
    if BROKEN.search(text) or not text or isinstance(said, SystemError):
        return f"raises {words(said)}"
    known = variation.what == "None" or (cpu and cpu.error and "INTERNAL ASSERT" in str(cpu.error))
    return f"raises {words(said)}" if "INTERNAL ASSERT" in text and not known else ""


def difference(call: Call, variation: Variation, cpu: Outcome | None, device: Outcome) -> str:
    """Return how the device's result differs from the CPU's. The device may refuse more."""
    if device.error is not None or cpu is None:
        return ""
    if cpu.error is None:
        narrow = variation.what == "of dtype float16"
        return same(call, device.value, cpu.value, narrow)
    lacks = isinstance(cpu.error, NotImplementedError) or variation.what.startswith("of dtype")
    if lacks or re.search(f"not implemented for|{ACCIDENTS.pattern}", str(cpu.error)):
        return ""
    return f"takes what the CPU refuses: {words(cpu.error)}"


def is_defined(call: Call, variation: Variation, cpu: Outcome) -> bool:
    """Whether the CPU's result does not depend on uninitialised memory."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        again = outcome(call, "cpu", variation)
    finally:
        torch.use_deterministic_algorithms(False)
    return again.error is None and not same(call, again.value, cpu.value)


def judge(call: Call, tried: list[Variation], start: int, undefined: set[int], told: int) -> None:
    """Try the variations from the ``start``-th on, and write each step to ``told`` before it."""

    def tell(*line: object) -> None:
        os.write(told, ("\t".join(map(str, line)) + "\n").encode())

    base: Outcome | None = None
    right: tuple[Outcome, ...] = ()
    for index in range(start, len(tried)):
        variation = tried[index]
        cpu: Outcome | None = None
        if not variation.is_about_places and index not in undefined:
            tell(index, "cpu")
            cpu = outcome(call, "cpu", variation)
        tell(index, "device")
        device = outcome(call, DEVICE, variation)
        if variation.is_elsewhere(call):
            base = base or outcome(call, DEVICE, None)
            cpu = base if base.error is None else None
        if found := harm(variation, cpu, device):
            tell(index, "harm", found)
        elif cpu and (found := difference(call, variation, cpu, device)):
            if variation.what in PLACES:
                tell(index, "harm", found)
            elif cpu.error is not None:
                tell(index, "refusal", found)
            elif is_defined(call, variation, cpu):
                right = right or (outcome(call, "cpu", None), outcome(call, DEVICE, None))
                both = all(side.error is None for side in right)
                differs = both and same(call, right[1].value, right[0].value)
                tell(index, RIGHT if differs else "value", differs or found)
    tell(len(tried), "end")


@dataclass(frozen=True)
class Finding:
    """A call and its problem, of the kind "harm", "value" or "refusal"."""

    kind: str
    overload: str
    variation: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}\t{self.overload}\t{self.variation}\t{self.what}"


def judged(call: Call) -> Iterator[Finding]:
    """Yield the findings of child processes. Each continues where the previous one ended.

    If a variation ends the process on the CPU, its result is undefined: only the device runs it.
    """
    tried = list(variations(call))
    start, undefined, differs = 0, set(), False
    while start < len(tried):
        told, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(told)
            quiet()
            judge(call, tried, start, undefined, writes)
            os._exit(0)
        os.close(writes)
        where = "device"
        for line in lines(told):
            if line is None:
                os.kill(child, signal.SIGKILL)
                break
            number, where, *rest = line.split("\t", 2)
            start = int(number)
            if where == RIGHT:
                if not differs:
                    yield Finding("value", call.name, RIGHT, rest[0])
                differs = True
            elif rest:
                yield Finding(where, call.name, str(tried[start]), rest[0])
        os.close(told)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # If the CPU writes beyond a tensor, the process may end later.
        if where == "cpu" or (where == "device" and start not in undefined):
            undefined.add(start)
        elif where != "end":
            what = "takes too long" if status == -signal.SIGKILL else f"ends the process: {status}"
            yield Finding("harm", call.name, str(tried[start]), what)
            start += 1


def quiet() -> None:
    """Silence standard error and limit the memory of this child process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    backend.synchronize()  # the device then has reserved its addresses
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def lines(told: int) -> Iterator[str | None]:
    """Yield the lines of a pipe; None if the next one does not come within TIMES seconds."""
    rest = b""
    while True:
        if not select.select([told], [], [], TIMES)[0]:
            yield None
            return
        part = os.read(told, 1 << 16)
        if not part:
            return
        *whole, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in whole)


def recorded(operators: list[Any], *, others: bool) -> dict[str, Call]:
    """Record in a child process, because forks of a process that used the device cannot use it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "calls.pt")
        child = os.fork()
        if child == 0:
            torch.save(record(operators, others=others), file)
            os._exit(0)
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise RuntimeError(f"recording ended with {status}")
        calls: dict[str, Call] = torch.load(file, weights_only=False)
        return calls


def is_declared(finding: Finding) -> bool:
    """Whether a finding is declared, or is a refusal of an overload that is not in ``refusing``."""
    if finding.kind == "harm":
        return False
    refusing = [name.format(backend=DEVICE) for name in KNOWN["refusing"]]
    if finding.kind == "refusal" and not any(fnmatch(finding.overload, name) for name in refusing):
        return True
    return any(
        any(fnmatch(finding.overload, name.format(backend=DEVICE)) for name in entry["overloads"])
        and any(fnmatch(finding.variation, pattern) for pattern in entry["variations"])
        for entry in KNOWN["difference"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m conformance.arguments", description=__doc__)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--others", action="store_true", help="those of argument_bases.py")
    parser.add_argument("--overloads", default="", help="a regular expression of their names")
    parser.add_argument("--part", default="0/1", help="a part of them")
    parser.add_argument("--all", action="store_true", help="what is declared as well")
    given = parser.parse_args()
    torch.set_num_threads(1)
    every = not given.operators and not given.others
    operators = [op for op in every_operator() if every or op.full_name in given.operators]
    calls = recorded(operators, others=given.others or every)
    if every:
        for name in sorted(set(native_overloads()) - set(calls) - set(UNREACHED)):
            print(Finding("harm", name, "", "no right call is known"))
    part, parts = map(int, given.part.split("/"))
    for name in sorted(calls)[part::parts]:
        if not re.search(given.overloads, name):
            continue
        for finding in judged(calls[name]):
            if given.all or not is_declared(finding):
                print(finding, flush=True)
        print(f"# {name}\t{len(list(variations(calls[name])))}", flush=True)


if __name__ == "__main__":
    main()
