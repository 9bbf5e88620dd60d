"""A pytest plugin that writes conformance.json to the project's root.

Each test attaches its outcome to its report, so that the process that writes the file gets it from
all workers of pytest-xdist. If a worker dies, only the name of its test is known.
"""

from __future__ import annotations

import datetime
import json
import platform
from typing import Any

import pytest

MODULE = "test_every_operator.py"
_KEY = "conformance"
_running: pytest.Item | None = None


def note(**values: Any) -> None:
    """Attach plain values to the report of the test that runs in this process."""
    if _running is not None:
        _running.user_properties.append((_KEY, values))


class Evidence:
    """Records the outcomes of the tests of every operator."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record which test runs, for ``note``."""
        global _running
        _running = item
        try:
            return (yield)
        finally:
            _running = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the last note of a test. pytest calls this for the tests of all workers."""
        if MODULE not in report.nodeid:
            return
        notes = [values for key, values in report.user_properties if key == _KEY]
        if notes:
            self.rows[report.nodeid] = notes[-1]
        elif report.outcome == "skipped":  # by one of PyTorch's decorators
            self.rows.setdefault(report.nodeid, {"kind": "skip"})
        elif report.when == "call" or report.outcome == "failed":
            self.rows[report.nodeid] = {"kind": "crash" if report.when == "???" else "error"}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, unless only some tests were chosen."""
        option = self.config.option
        chosen = option.keyword or any("::" in argument for argument in self.config.args)
        if self.rows and not chosen and not hasattr(self.config, "workerinput"):
            path = self.config.rootpath / "conformance.json"
            path.write_text(json.dumps(self.document(), indent=0, sort_keys=True), "utf-8")

    def document(self) -> dict[str, Any]:
        """Return the contents of the file."""
        results: dict[str, dict[str, dict[str, Any]]] = {}
        for nodeid, row in sorted(self.rows.items()):
            operator, dtype, aspect = decode(nodeid)
            results.setdefault(operator, {}).setdefault(dtype, {})[aspect] = row
        return {"versions": versions(), "overloads": overloads(), "results": results}


def decode(nodeid: str) -> tuple[str, str, str]:
    """Return operator, dtype and aspect of a test, from only its id."""
    from backend import DEVICE
    from conformance.aspects import ASPECTS
    from torch.testing._internal.common_methods_invocations import op_db

    test = nodeid.rpartition("::")[2]
    formatted, _, dtype = test.rpartition(f"_{DEVICE}_")
    aspect = next(name for name in ASPECTS if formatted.startswith(f"test_{name}_"))
    formatted = formatted.removeprefix(f"test_{aspect}_")
    names = {op.formatted_name: op.full_name for op in op_db}
    return names.get(formatted, formatted), dtype, aspect


def overloads() -> dict[str, int]:
    """Count the overloads that the CPU computes, and those of them with a kernel of this backend."""
    from conformance import routes

    return {"computed": len(routes.computed_overloads()), "native": len(routes.native_overloads())}


def versions() -> dict[str, Any]:
    """Return the versions of the tested software, its device and dtypes, and the date."""
    import torch
    from backend import DEVICE, PACKAGE, backend

    return {
        "backend": DEVICE,
        "package": f"{PACKAGE} {backend.__version__}",
        "device": backend.get_device_properties(0).name,
        "dtypes": [str(dtype).removeprefix("torch.") for dtype in backend.supported_dtypes()],
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }
