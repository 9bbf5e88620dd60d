"""Compares an OpenCL device with PyTorch's CPU device with the same number of threads.

``python benchmarks/opencl.py`` prints a table, with limits for a driver that runs on the CPU. The
driver's share of an operator's time is the time of a kernel that does nothing.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
import timeit
from statistics import median

import torch
from cases import COPIES, EXAMPLES, GPT, MATRIX, ONE
from names import DEVICE, ENV_PREFIX
from rich.console import Console
from run import table
from timing import MICROSECONDS, Case, Figure, measure

CALLS, ROUNDS = 100, 100

LARGE = "x, y = (torch.ones(1 << 24, device=device) for _ in range(2)); sync()"
WORK = [
    Case("add, 16M elements", "x + y; sync()", LARGE, 1, 20, limit=1.3),
    Case("sum, 16M elements", "x.sum(); sync()", LARGE, 1, 20, limit=1.5),
    Case("mm, 1024 x 1024", "x @ y; sync()", MATRIX.format(1024), 1, 20, limit=4),
    *(Case(case.name, case.statement, case.setup, 1, 30, limit=1 / 0.8) for case in COPIES),
    Case("training step of examples/gpt.py", "step()", GPT, 1, 30, limit=6),
]

CL_QUEUE_CONTEXT = 0x1090


def checked(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"OpenCL has refused a call of this benchmark with status {status}")


def empty_kernel() -> float:
    """Return the microseconds in which the driver enqueues an empty kernel, called from Python."""
    opencl = ctypes.CDLL("libOpenCL.so.1")
    opencl.clCreateProgramWithSource.restype = ctypes.c_void_p
    opencl.clCreateKernel.restype = ctypes.c_void_p
    queue = ctypes.c_void_p(torch.get_device_module(DEVICE).current_stream().native_handle)
    context = ctypes.c_void_p()
    checked(opencl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, 8, ctypes.byref(context), None))
    source = ctypes.c_char_p(b"kernel void nothing() {}")
    program = ctypes.c_void_p(
        opencl.clCreateProgramWithSource(context, 1, ctypes.byref(source), None, None)
    )
    checked(opencl.clBuildProgram(program, 0, None, None, None, None))
    kernel = ctypes.c_void_p(opencl.clCreateKernel(program, b"nothing", None))
    one = ctypes.byref(ctypes.c_size_t(1))

    def enqueue() -> None:
        checked(opencl.clEnqueueNDRangeKernel(queue, kernel, 1, None, one, None, 0, None, None))
        opencl.clFlush(queue)

    times = []
    for _ in range(ROUNDS):
        times.append(timeit.timeit(enqueue, number=CALLS) / CALLS * MICROSECONDS)
        checked(opencl.clFinish(queue))
    return median(times)


def process_time(*arguments: str) -> float:
    """Return the microseconds of a new Python process, after its modules are compiled."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times) * MICROSECONDS


def main() -> None:
    # By default, PyTorch's idle threads spin for a while, on processors that such a driver needs.
    if os.environ.get("OMP_WAIT_POLICY") != "passive":
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    properties = torch.get_device_module(DEVICE).get_device_properties(0)
    if not properties.architecture.startswith("OpenCL"):
        raise SystemExit(
            f"{DEVICE} is {properties.name}, which is no OpenCL device: build the project with "
            f"-C cmake.define.{ENV_PREFIX}_DEVICE=opencl first"
        )
    enqueued = measure(Case("add, 1 element", "x + x", ONE, CALLS, ROUNDS)).device
    figures = [
        Figure("add, 1 element, beside an empty kernel of the driver", empty_kernel(), enqueued),
        *map(measure, WORK),
        Figure(
            "quickstart, beside importing PyTorch",
            process_time("-c", "import torch"),
            process_time(str(EXAMPLES / "quickstart.py")),
            excess_limit=5 * MICROSECONDS,
        ),
    ]
    threads = torch.get_num_threads()
    Console().print(table(figures, f"{threads} threads each" if threads > 1 else "one thread"))


if __name__ == "__main__":
    main()
