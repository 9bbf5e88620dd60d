"""Prints as JSON which of PyTorch's operators a project of `full` computes on its device.

It runs in the project's folder, with the Python in which the project is installed.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from torch.testing._internal.common_methods_invocations import op_db

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, "tests")
evidence = importlib.import_module("conformance.evidence")
known = tomllib.loads(Path("tests/conformance/known.toml").read_text("utf-8"))
on_cpu = len(known["on_cpu"]["operators"])
counts = {"entries": len(op_db), "on device": len(op_db) - on_cpu, **evidence.overloads()}
print(json.dumps(counts))
