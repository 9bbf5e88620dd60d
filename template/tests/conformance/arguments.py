"""Wrong arguments, one at a time: what the device makes of them beside what the CPU does.

``python -m conformance.arguments abs add`` tries the overloads that the samples of these operators
reach, ``--others`` those of argument_bases.py, and without either all of them. Harm is what no call
may do: end the process, or give the device what nobody may give it. A value is a result that is not
the CPU's, and a refusal a result where the CPU raises. Calls run in a process of their own, one
after the other, so that one which ends its process is named, and the rest goes on.
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
"""Overloads without a right call here, and why."""
KNOWN = tomllib.loads(Path(__file__).with_name("known_arguments.toml").read_text("utf-8"))
TIMES = 20
"""Seconds that one call may take."""
MEMORY = 1 << 32
"""Bytes of addresses that a process may take beyond what it has when calls begin."""

RIGHT = "as it is"
"""The variation of a finding about the right call, which then stands for the values of its variations."""

BROKEN = re.compile(r"contract of |is not an address of|\(0\): ")
"""What a device says that was given what nobody may give it."""


@dataclass(frozen=True)
class Outcome:
    """What a call gave, with what it wrote, on the CPU; or what it raised."""

    value: Any = None
    error: Exception | None = None


def outcome(call: Call, place: str, variation: Variation | None) -> Outcome:
    """Call on the CPU or the device."""
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
        with suppress(AttributeError):  # a device may have no way to forget
            backend.acknowledge_failure()


def may_differ(overload: torch._ops.OpOverload) -> bool:
    """Whether the elements are random, chosen, or whatever the memory holds."""
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
    """Return what differs between two results, of the host both; ``narrow``: of float16 inputs."""
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
"""What the CPU says of arguments that it does not look at."""


def harm(variation: Variation, cpu: Outcome | None, device: Outcome) -> str:
    """Return what no call may do, whatever its arguments are."""
    said = device.error
    if said is None:
        return ""
    text = " ".join(str(said).split())
    if BROKEN.search(text) or not text or isinstance(said, SystemError):
        return f"raises {words(said)}"
    known = variation.what == "None" or (cpu and cpu.error and "INTERNAL ASSERT" in str(cpu.error))
    return f"raises {words(said)}" if "INTERNAL ASSERT" in text and not known else ""


def difference(call: Call, variation: Variation, cpu: Outcome | None, device: Outcome) -> str:
    """Return how the device's result is another than the CPU's; it may refuse more than the CPU."""
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
    """Whether the CPU gives the same result where new memory is filled: it has read nothing of that."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        again = outcome(call, "cpu", variation)
    finally:
        torch.use_deterministic_algorithms(False)
    return again.error is None and not same(call, again.value, cpu.value)


def judge(call: Call, tried: list[Variation], start: int, undefined: set[int], told: int) -> None:
    """Try the variations from the ``start``-th on, and tell each step before it is made."""

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
    """A call and what is wrong with it: harm, or a value or a refusal that is not the CPU's."""

    kind: str
    overload: str
    variation: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}\t{self.overload}\t{self.variation}\t{self.what}"


def judged(call: Call) -> Iterator[Finding]:
    """Yield what is wrong, from processes of which each goes on where the one before it ended.

    What ends a process on the CPU is undefined, and the device alone is tried.
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
        # What the CPU writes beyond a tensor may end the process later.
        if where == "cpu" or (where == "device" and start not in undefined):
            undefined.add(start)
        elif where != "end":
            what = "takes too long" if status == -signal.SIGKILL else f"ends the process: {status}"
            yield Finding("harm", call.name, str(tried[start]), what)
            start += 1


def quiet() -> None:
    """In a process of its own: nothing on standard error, bounds for memory."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    backend.synchronize()  # the device has its addresses then
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def lines(told: int) -> Iterator[str | None]:
    """Yield the lines of a pipe; None where the next one does not come in time."""
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
    """Record in a process of its own: one that has used the device has no children that may."""
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
    """Whether a difference is declared, or a refusal of an overload whose refusals are not compared."""
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
