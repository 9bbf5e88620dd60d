"""Runs a compiler and logs the time of each call: ``python timed.py LOG COMPILER ARGUMENT…``."""

import resource
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run the compiler and append a line: CPU seconds, then the output file."""
    log, *command = sys.argv[1:]
    code = subprocess.run(command).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    written = command[command.index("-o") + 1] if "-o" in command else ""
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{used.ru_utime + used.ru_stime:.2f} {written}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
