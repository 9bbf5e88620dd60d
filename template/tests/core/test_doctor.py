"""The report of ``python -m <package>.doctor`` about this backend."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE, PACKAGE, backend
from support import run_python

DOCS = Path(__file__).resolve().parents[2] / "docs"
FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES
REPORT: Any = importlib.import_module(f"{PACKAGE}.doctor.report")
SURFACES: Any = importlib.import_module(f"{PACKAGE}.doctor.probes").SURFACES


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"{PACKAGE}.doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    done = doctor("--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_every_surface_works_or_is_declined_with_a_reason(said: dict[str, Any]) -> None:
    assert said["healthy"]
    assert len(said["surfaces"]) == len(SURFACES)
    assert {item["status"] for item in said["surfaces"]} == {"works", "declined"}
    assert all(item["detail"] for item in said["surfaces"] if item["status"] == "declined")


def test_every_device_module_function_used_by_pytorch_is_checked() -> None:
    modules = r"(?:device_module|device_mod|device_handle|get_device_module\([^)]*\))"
    asked = re.compile(rf"{modules}\.(\w+)|attr\({modules}, \"(\w+)\"")
    names = {
        next(filter(None, match))
        for path in Path(torch.__file__).parent.rglob("*.py")
        for match in asked.findall(path.read_text("utf-8"))
    }
    assert {"current_device", "get_rng_state", "_initialized"} <= names
    tried = {word for item in SURFACES for word in re.findall(r"\w+", item.name)}
    # PyTorch uses the last two only on a device named hpu.
    assert names - tried - {"__wrapped__", "set_rng_ctx", "unset_rng_ctx"} == set()


def test_declined_interfaces_do_not_work(said: dict[str, Any]) -> None:
    declared = {(item.section, item.name) for item in SURFACES if item.declined}
    statuses = {(item["section"], item["name"]): item["status"] for item in said["surfaces"]}
    assert declared
    assert {statuses[place] for place in declared} == {"declined"}


def test_features_left_out_are_declined_with_the_command_that_adds_them(
    said: dict[str, Any],
) -> None:
    details = {(item["section"], item["name"]): item["detail"] for item in said["surfaces"]}
    for item in SURFACES:
        if item.feature is not None:
            left_out = details[item.section, item.name].startswith(
                f"generated without {item.feature}; add it with: torchsmith add "
            )
            assert left_out is not FEATURES[item.feature].enabled


def test_the_named_pages_exist(said: dict[str, Any]) -> None:
    pages = {item["page"] for item in (*said["surfaces"], *said["audit"])}
    assert [page for page in pages if not (DOCS / page).is_file()] == []


def test_the_environment_matches_this_process(said: dict[str, Any]) -> None:
    assert torch.__version__ in said["environment"]["torch"]
    devices = said["devices"]
    properties = [backend.get_device_properties(index) for index in range(len(devices))]
    assert [device["name"] for device in devices] == [item.name for item in properties]
    assert [device["total_memory"] for device in devices] == [
        item.total_memory for item in properties
    ]
    assert len(devices) == backend.device_count()


def test_libraries_have_their_loaded_paths(said: dict[str, Any]) -> None:
    libraries = {name: Path(path) for name, path in said["libraries"].items()}
    assert all(path.is_file() for path in libraries.values()), libraries
    assert libraries["libtorch_cpu.so"].samefile(
        Path(torch.__file__).parent / "lib/libtorch_cpu.so"
    )
    folders = [Path(folder) for folder in importlib.import_module(PACKAGE).__path__]
    own = {path.name: path for folder in folders for path in folder.rglob("*.so")}
    # Modules of features are loaded when they are used.
    own = {name: own[name] for name in own if not name.startswith("_") or name.startswith("_C.")}
    assert own.items() <= libraries.items()
    assert f"lib{PACKAGE}.so" in own


def test_the_text_matches_the_json(said: dict[str, Any]) -> None:
    def findings(part: str) -> list[Any]:
        return [
            REPORT.Finding(**{**item, "status": REPORT.Status(item["status"])})
            for item in said[part]
        ]

    parts = ("environment", "libraries", "devices")
    report = REPORT.Report(*(said[part] for part in parts), findings("surfaces"), findings("audit"))
    lines = report.text().splitlines()
    for item in said["surfaces"]:
        (line,) = [
            line
            for line in lines
            if f"  {item['section']} " in line and f"  {item['name']}  " in line
        ]
        assert line.split()[0] == item["status"]
        assert item["detail"] in line
        assert f"docs/{item['page']}" in line
    works = sum(item["status"] == "works" for item in said["surfaces"])
    assert any(line.startswith(f"surfaces: {works} work, ") for line in lines)
    assert any(f"  {DEVICE}:0" in line for line in lines)


def test_what_is_missing_is_named_and_the_status_is_1() -> None:
    done = run_python(
        f"""
        import sys, {PACKAGE} as package
        from {PACKAGE}.doctor import __main__ as program
        del package.memory_summary
        program.SURFACES[:] = [item for item in program.SURFACES if item.section == "module"]
        sys.exit(program.main([]))
        """,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("  missing")]
    assert "memory_summary" in line
    assert "AttributeError: " in line


def test_import_torch_does_not_load_it() -> None:
    run_python(
        f"""
        import sys, torch
        assert torch.{DEVICE}.is_available()
        assert [name for name in sys.modules if ".doctor" in name] == []
        assert "doctor" not in dir(torch.{DEVICE})
        """
    )
