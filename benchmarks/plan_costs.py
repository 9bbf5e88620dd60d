"""Prints, as JSON, the additional microseconds of a launch with a plan."""

import json
import os
import time
from collections.abc import Callable
from statistics import median

import torch

CALLS, ROUNDS = 100, 400
VARIABLE = "FOO_SIMULATOR_COMPILE_MS"


def switch(plans: bool) -> None:
    """Enable plans for all kernel families, or for none. The layer `null` skips the kernels."""
    if plans:
        os.environ[VARIABLE] = "0"
    else:
        os.environ.pop(VARIABLE, None)
    torch.get_device_module("foo").set_device_layers(["null"])


def main() -> None:
    """Measure in turns and print the difference of the medians."""
    x = torch.ones(4, 4, device="foo")
    out = torch.empty(4, 4, device="foo")
    cases: dict[str, Callable[..., object]] = {
        "an addition": torch.add,
        "a product of matrices": torch.mm,
    }
    excess = {}
    for name, function in cases.items():
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for plans, measured in times.items():
                switch(plans)
                function(x, x, out=out)
                start = time.thread_time()
                for _ in range(CALLS):
                    function(x, x, out=out)
                measured.append(1e6 * (time.thread_time() - start) / CALLS)
        excess[name] = median(times[True]) - median(times[False])
    print(json.dumps(excess))


if __name__ == "__main__":
    main()
