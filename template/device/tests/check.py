"""`python device/tests/check.py acme`: what a device has, what of it works, and what to write next.

About thirty of the device's tests run, one for each common kernel family and a few of the runtime.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).parent

RUNTIME = (
    "devices.py::test_properties_are_filled_in",
    "memory.py::test_describe_knows_every_byte_of_an_allocation",
    "copies.py::test_bytes_survive_the_way_to_the_device_and_back",
    "copies.py::test_a_fill_sets_every_byte_and_no_other",
    "streams.py::test_work_of_a_stream_runs_in_order",
    "events.py::test_a_stream_waits_for_long_work_before_an_event",
)
# By the time that three steps of examples/gpt.py spend in their operators on the CPU. Those without
# which the others cannot be tested come first; those that it does not use, last.
FAMILIES = {
    "fill": ("fill.py::test_fill",),
    "copy": ("copy.py::test_copy",),
    "matmul": ("matmul.py::test_matmul", "matmul.py::test_bias_is_added"),
    "normalize": ("normalize.py::test_normalize_of_any_shape",),
    "attention": ("attention.py::test_layouts",),
    "unary": ("unary.py::test_unary", "unary.py::test_unary_of_any_size"),
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
# Functions of runtime.h that need not be written.
OPTIONAL = ("launch_host", "elapsed_ms", "host_address", "native_handle")
DECLINED = "but support.toml says nothing"


@dataclass(eq=False)
class Run:
    """Chooses one case of each test, and keeps what became of it: a plugin of pytest."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # with what was said

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keeps the first case of each test, of float32 where there is one."""
        chosen: dict[str, pytest.Item] = {}
        for item in sorted(items, key=lambda item: "float32" not in item.name):
            chosen.setdefault(item.nodeid.partition("[")[0], item)
        items[:] = chosen.values()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes the outcome, with the last line of what was said."""
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
    """The test of this name; none in a project without its feature."""
    file, _, function = name.partition("::")
    path = HERE / folder / f"test_{file}"
    return [f"{path}::{function}"] if path.exists() else []


def first_line(text: str) -> str:
    """The reason of a failure, in a line."""
    return text.strip().partition("\n")[0].removeprefix("AssertionError: ").removeprefix("Failed: ")


def wrapped(text: str) -> list[str]:
    """Text in lines of a terminal."""
    return textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False)


def missing(functions: list[tuple[str, str, bool]]) -> list[str]:
    """Lines about the functions that are not there, group by group."""
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
            lines.append(f"{group}: all {len(entries)} functions are there")
        elif len(gaps) == len(entries):
            absent.append(group)
        else:
            lines += wrapped(f"{group} without: {', '.join(gaps)}")
    return [
        *lines,
        *(wrapped(f"optional groups that are not there: {', '.join(absent)}") if absent else []),
    ]


def absent_from_runtime(functions: list[tuple[str, str, bool]]) -> list[str]:
    """The functions of runtime.h that every device needs and this one lacks."""
    return [
        name
        for group, name, present in functions
        if group == "runtime" and not present and name not in OPTIONAL
    ]


def main() -> int:
    """Looks at the device and prints what it found; the status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python device/tests/check.py", description=__doc__)
    parser.add_argument("device", nargs="?", help="a folder of device/, or a path")
    chosen = parser.parse_args().device
    if chosen:
        prefix = (HERE / "device_library.py").read_text().partition('ENV_PREFIX = "')[2]
        os.environ[f"{prefix.partition(chr(34))[0]}_DEVICE"] = chosen

    import device_library
    from kernels import support

    try:
        api = device_library.load()
    except (device_library.BuildError, ImportError) as error:
        print(error)
        return 1
    support.Support.load = staticmethod(support.Support)  # type: ignore[method-assign, assignment]
    functions = api.functions()
    print(*missing(functions), sep="\n")
    there = {function for _, function, present in functions if present}
    tests = {name: find("runtime", name) for name in RUNTIME}
    for family, names in FAMILIES.items():
        tests |= {name: find("kernels", name) for name in names if family in there}
    run = Run()
    run.run([test for found in tests.values() for test in found])
    declined = {name: why for name, why in run.failed.items() if DECLINED in why}
    failed = {name: why for name, why in run.failed.items() if name not in declined}
    print(f"{len(run.passed)} cases work, {len(declined)} are declined, {len(failed)} do not work")
    for name, why in {**declined, **failed}.items():
        print(*wrapped(f"  {name}: {first_line(why).replace(', ' + DECLINED, '')}"), sep="\n")
    steps = [f"write {name} of runtime.h" for name in absent_from_runtime(functions)]
    steps += [f"mend what {name} tests" for name in failed]
    for family, names in FAMILIES.items():
        if family not in there and any(find("kernels", name) for name in names):
            steps.append(f"write the family {family}, which kernels.h describes")
        elif any(name in declined for name in names):
            steps.append(f"let the family {family} take the case that it declines")
    for number, step in enumerate(steps[:3], 1):
        print(f"{number}. {step}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
