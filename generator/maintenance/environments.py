"""Runs a command in another environment: older CPU, other threads, signals or locale.

`python -m maintenance.environments terminal -- make test`; the default is today's.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Environment:
    """Environment variables, ignored signals and the umask of a process."""

    variables: dict[str, str] = field(default_factory=dict)
    ignored: tuple[signal.Signals, ...] = ()
    umask: int = 0o022


def instructions(aten: str, onednn: str, mkl: str, openblas: str, glibc: str) -> Environment:
    """Return an environment in which libraries select the code for an older CPU."""
    return Environment(
        {
            "ATEN_CPU_CAPABILITY": aten,
            "ONEDNN_MAX_CPU_ISA": onednn,
            "MKL_ENABLE_INSTRUCTIONS": mkl,
            "OPENBLAS_CORETYPE": openblas,
            "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={glibc}",
        }
    )


ENVIRONMENTS = {
    "avx2": instructions("avx2", "AVX2", "AVX2", "Haswell", "-AVX512F"),
    "sse4": instructions("default", "SSE41", "SSE4_2", "Nehalem", "-AVX512F,-AVX2,-FMA"),
    "one-thread": Environment({"OMP_NUM_THREADS": "1"}),
    "threads": Environment({"OMP_NUM_THREADS": "3"}),
    "background": Environment(ignored=(signal.SIGINT, signal.SIGHUP), umask=0o077),
    "terminal": Environment(
        {
            # Python uses UTF-8 with LC_ALL=C too; PyTorch's compilers need it at import.
            **{"LC_ALL": "C", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
            **{"COLUMNS": "40", "NO_COLOR": "1", "TERM": "dumb", "PAGER": "false"},
        }
    ),
}
"""The environments by name; each night uses the next one."""


def of(day: datetime.date) -> str:
    """Return the name of the environment of a day."""
    return list(ENVIRONMENTS)[day.toordinal() % len(ENVIRONMENTS)]


def run(name: str, command: list[str]) -> int:
    """Run a command in an environment, with an empty home, and return its status."""
    environment = ENVIRONMENTS[name]
    os.umask(environment.umask)
    for ignored in environment.ignored:
        signal.signal(ignored, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run(
            command, env={**os.environ, "HOME": home, **environment.variables}
        ).returncode


def main() -> int:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(prog="python -m maintenance.environments")
    parser.add_argument("name", nargs="?", choices=ENVIRONMENTS, default=of(datetime.date.today()))
    parser.add_argument("command", nargs="+", help="after --")
    options = parser.parse_args()
    print(f"environment: {options.name}", flush=True)
    return run(options.name, options.command)


if __name__ == "__main__":
    sys.exit(main())
