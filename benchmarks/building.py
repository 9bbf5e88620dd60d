"""Measures the build of a rendered project, and the speed of the result."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks import units
from benchmarks.costs import Cost, cost_of
from benchmarks.figures import Row

RANKS = Path(__file__).with_name("ranks.py")


def configure(project: Path, build: Path, *options: str) -> list[str]:
    """Return the command that configures a build of the project."""
    return [
        "cmake", "-S", str(project), "-B", str(build), "-G", "Ninja",
        f"-DPython_EXECUTABLE={sys.executable}", *options,
    ]  # fmt: skip


def clean_build(project: Path) -> tuple[Cost, list[units.Unit]]:
    """Build a project clean, without ccache."""
    plain, log = project / "build/plain", project / "build/compilers.log"
    cost_of(configure(project, plain, units.launcher(log)), CCACHE_DISABLE="1")
    clean = cost_of(["cmake", "--build", str(plain)], CCACHE_DISABLE="1")
    return clean, units.read(log, plain, project)


def building(
    minimal: Path, standard: Path, project: Path, scratch: Path
) -> tuple[list[Row], list[units.Unit]]:
    """Build presets clean, `full` again after touching a kernel, and from a warm ccache."""
    small, _ = clean_build(minimal)
    usual, _ = clean_build(standard)
    clean, compiled = clean_build(project)
    (project / "device/reference/unary.cpp").touch()
    touched = cost_of(["cmake", "--build", str(project / "build/plain")], CCACHE_DISABLE="1")
    rows = [
        Row("clean build of `minimal`, CPU time, against `full`", small.cpu / clean.cpu, 0.25, "x"),
        Row("clean build of `standard`, CPU time, against `full`", usual.cpu / clean.cpu, 0.5, "x"),
        Row("clean build of `standard`, no ccache, CPU time", usual.cpu, 125, "s"),
        Row("clean build of `full`, no ccache, CPU time", clean.cpu, 210, "s"),
        Row("its slowest translation unit, CPU time", compiled[0].seconds, 15, "s"),
        Row("clean build of `full`, wall time", clean.wall, None, "s"),
        Row("build after touching one kernel file", touched.wall, 15, "s"),
    ]
    if subprocess.run(["sh", "-c", "command -v ccache"], stdout=subprocess.DEVNULL).returncode == 0:
        cache = {"CCACHE_DIR": str(scratch / "ccache")}
        for attempt in ("cold", "warm"):
            build = project / f"build/cached-{attempt}"
            cost_of(configure(project, build), **cache)
            cached = cost_of(["cmake", "--build", str(build)], **cache)
        rows.append(Row("build of `full` from a warm ccache", cached.wall, 15, "s"))
    return rows, compiled


def running(environment: Path, project: Path, scratch: Path) -> list[Row]:
    """Run the rendered project's benchmarks in an environment that has only its backend."""
    python = environment / "python"
    found = {}
    for name in ("run", "fragmentation"):
        figures = scratch / f"{name}.json"
        cost_of([str(python), str(project / f"benchmarks/{name}.py"), "--json", str(figures)])
        found[name] = json.loads(figures.read_text())
    rows = []
    for case in found["run"]["cases"]:
        if case["excess_limit"] is not None:
            limit = case["excess_limit"]
            rows.append(Row(f"{case['name']}, above the CPU", case["excess"], limit, "µs"))
        else:
            rows.append(Row(f"{case['name']}, against the CPU", case["ratio"], case["limit"], "x"))
    ours, cudas = (100 * figure["fragmentation"] for figure in found["fragmentation"])
    return [
        *rows,
        Row("fragmentation after 100,000 allocations of a GPT in training", ours, 15, "%"),
        Row("fragmentation with CUDA's policy", cudas, None, "%"),
        *over_two_processes(python, scratch),
        *instructions(python, project, scratch),
    ]


def instructions(python: Path, project: Path, scratch: Path) -> list[Row]:
    """Count the host's instructions of some operators, if valgrind is installed."""
    if shutil.which("valgrind") is None:
        return []
    figures = scratch / "instructions.json"
    command = [str(python), str(project / "benchmarks/instructions.py"), "--json", str(figures)]
    cost_of(command)
    rows = []
    for name, counts in json.loads(figures.read_text()).items():
        for device, where, limit in (("null", "above the device", 1.0), ("foo", "in all", 1.3)):
            figure = f"instructions of `{name}`, {where}, against the CPU"
            rows.append(Row(figure, counts[device] / counts["cpu"], limit, "x"))
    return rows


def over_two_processes(python: Path, scratch: Path) -> list[Row]:
    """Compare collectives and training over two processes with Gloo on tensors of the CPU."""
    figures = scratch / "ranks.json"
    rows = []
    for way, limit in (("staged", 1 / 0.9), ("by the device", 1 / 2)):
        command = [str(python), str(RANKS), str(figures)]
        cost_of(command, FOO_COLLECTIVES="staged" if way == "staged" else "")
        found = json.loads(figures.read_text())
        name = f"`all_reduce` of 64 MiB over 2 processes, {way}, against Gloo"
        rows.append(Row(name, found["all_reduce"], limit, "x"))
        name = f"training step of an MLP over 2 processes by DDP, {way}, against the CPU's"
        rows.append(Row(name, found["training"], 1 / 0.95, "x"))
    return rows
