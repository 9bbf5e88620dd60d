"""`python device/tests/check.py acme` lists what a device has, what works, and what to write next.

It runs about thirty of the device's tests: one for each common kernel family, and a few of the
runtime.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import textwrap
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

try:
    import pytest
except ImportError:
    sys.exit("pytest is not installed here: pip install -r device/tests/requirements.txt")

HERE = Path(__file__).parent

RUNTIME = (
    "devices.py::test_properties_are_filled_in",
    "memory.py::test_describe_finds_every_byte_of_an_allocation",
    "copies.py::test_bytes_are_equal_after_a_copy_there_and_back",
    "copies.py::test_a_fill_sets_every_byte_and_no_other",
    "streams.py::test_work_of_a_stream_runs_in_order",
    "events.py::test_a_stream_waits_for_long_work_before_an_event",
)
# In the order of the time that three steps of examples/gpt.py spend in their operators on the CPU.
# Families that the tests of others need come first; those that the example does not use, last.
FAMILIES = {
    "fill": ("fill.py::test_fill",),
    "copy": ("copy.py::test_copy",),
    "matmul": ("matmul.py::test_matmul", "matmul.py::test_bias_is_added"),
    "normalize": ("normalize.py::test_normalize_of_any_shape",),
    "attention": ("attention.py::test_layouts",),
    "unary": ("unary.py::test_unary",),
    "binary": ("binary.py::test_binary", "binary.py::test_binary_with_a_scalar"),
    "normalize_backward": ("normalize.py::test_gradients_of_any_shape",),
    "reduce": ("reduce.py::test_reduce", "reduce.py::test_statistics"),
    "softmax": ("softmax.py::test_softmax_of_any_shape",),
    "arg_reduce": ("arg_reduce.py::test_arg_reduce",),
    "gather": ("gather.py::test_select", "gather.py::test_along_a_dimension"),
    "scatter": ("scatter.py::test_rows", "scatter.py::test_along_a_dimension"),
    "softmax_backward": ("softmax.py::test_gradients",),
    "ternary": ("ternary.py::test_ternary",),
    "sequence": ("sequence.py::test_sequence_is_rounded_once",),
    "random": ("random.py::test_bits",),
    "optimizer_step": ("optimizer_step.py::test_optimizer_step",),
    "compact": ("compact.py::test_nonzero",),
    "scan": ("scan.py::test_running_sums_and_products",),
    "sort": ("sort.py::test_stable_sort",),
    "triangular": ("triangular.py::test_triangular",),
    "convolution": ("convolution.py::test_convolution",),
    "pool": ("pool.py::test_averages",),
}
# Optional functions of runtime.h.
OPTIONAL = ("launch_host", "elapsed_ms", "host_address", "native_handle")
UNSUPPORTED = "but not declared in support.toml"


@dataclass(eq=False)
class Run:
    """A plugin for pytest: chooses one case of each test, and stores its outcome."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # test name to message

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keeps the first case of each test, with float32 if there is one."""
        chosen: dict[str, pytest.Item] = {}
        for item in sorted(items, key=lambda item: "float32" not in item.name):
            chosen.setdefault(item.nodeid.partition("[")[0], item)
        items[:] = chosen.values()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stores the outcome and the message."""
        name = report.nodeid.partition("[")[0].rpartition("/test_")[2]
        if report.passed:
            if report.when == "call":
                self.passed.add(name)
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failed.setdefault(name, crash.message if crash else report.longreprtext)

    def run(self, names: list[str]) -> None:
        """Runs tests without their output."""
        arguments = ["-p", "no:cacheprovider", "-m", "not full", *names]
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = pytest.main(arguments, plugins=[self])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            sys.exit(output.getvalue())


def find(folder: str, name: str) -> list[str]:
    """Return the test of this name, or nothing in a project without its feature."""
    file, _, function = name.partition("::")
    path = HERE / folder / f"test_{file}"
    return [f"{path}::{function}"] if path.exists() else []


def first_line(text: str) -> str:
    """The reason for a failure, as one line."""
    return text.strip().partition("\n")[0].removeprefix("AssertionError: ").removeprefix("Failed: ")


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False)


def missing(functions: list[tuple[str, str, bool]]) -> list[str]:
    """Lines about the functions that are missing, group by group."""
    groups: dict[str, list[tuple[str, bool]]] = {}
    for group, function, present in functions:
        groups.setdefault(group, []).append((function, present))
    lines: list[str] = []
    absent = []
    for group, entries in groups.items():
        gaps = [
            f"{name}{' (optional)' * (name in OPTIONAL)}" for name, there in entries if not there
        ]
        if not gaps:
            lines.append(f"{group}: all {len(entries)} functions are present")
        elif len(gaps) == len(entries):
            absent.append(group)
        else:
            lines += wrapped(f"missing from {group}: {', '.join(gaps)}")
    return [
        *lines,
        *(wrapped(f"missing optional groups: {', '.join(absent)}") if absent else []),
    ]


def absent_from_runtime(functions: list[tuple[str, str, bool]]) -> list[str]:
    """The functions of runtime.h that every device needs and this one does not have."""
    return [
        name
        for group, name, present in functions
        if group == "runtime" and not present and name not in OPTIONAL
    ]


def next_steps(
    functions: list[tuple[str, str, bool]], unsupported: Collection[str], failed: Collection[str]
) -> list[str]:
    """What to write or fix, the most useful first."""
    there = {function for _, function, present in functions if present}
    steps = [f"write {name} of runtime.h" for name in absent_from_runtime(functions)]
    steps += [f"fix the failure of {name}" for name in failed]
    for family, names in FAMILIES.items():
        if family not in there and any(find("kernels", name) for name in names):
            steps.append(f"write the family {family}, which kernels.h describes")
        elif any(name in unsupported for name in names):
            steps.append(f"extend the family {family} to its unsupported case")
    return steps[:3]


def main() -> int:
    """Checks the device and prints the results; returns 1 if a test fails."""
    parser = argparse.ArgumentParser(prog="python device/tests/check.py", description=__doc__)
    parser.add_argument("device", nargs="?", help="a folder of device/, or a path")
    parser.add_argument("--json", action="store_true", help="report as JSON")
    given = parser.parse_args()
    if given.device:
        prefix = (HERE / "device_library.py").read_text().partition('ENV_PREFIX = "')[2]
        os.environ[f"{prefix.partition(chr(34))[0]}_DEVICE"] = given.device

    import device_library
    from kernels import support

    try:
        api = device_library.load()
    except (device_library.BuildError, ImportError) as error:
        sys.exit(str(error))
    support.Support.load = staticmethod(support.Support)  # type: ignore[method-assign, assignment]
    functions = api.functions()
    there = {function for _, function, present in functions if present}
    tests = {name: find("runtime", name) for name in RUNTIME}
    for family, names in FAMILIES.items():
        tests |= {name: find("kernels", name) for name in names if family in there}
    run = Run()
    run.run([test for found in tests.values() for test in found])
    reasons = {name: first_line(why) for name, why in run.failed.items()}
    unsupported = {
        name: why.partition(f", {UNSUPPORTED}")[0]
        for name, why in reasons.items()
        if UNSUPPORTED in why
    }
    failed = {name: why for name, why in reasons.items() if name not in unsupported}
    steps = next_steps(functions, unsupported, failed)
    if given.json:
        absent = [f"{group}.{name}" for group, name, present in functions if not present]
        report = {"missing": absent, "passed": sorted(run.passed)}
        print(json.dumps({**report, "unsupported": unsupported, "failed": failed, "next": steps}))
        return int(bool(failed))
    print(*missing(functions), sep="\n")
    print(f"{len(run.passed)} cases work, {len(unsupported)} are unsupported, {len(failed)} fail")
    for name, why in {**unsupported, **failed}.items():
        print(*wrapped(f"  {name}: {why}"), sep="\n")
    for number, step in enumerate(steps, 1):
        print(f"{number}. {step}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
