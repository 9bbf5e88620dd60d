"""The audit of PyTorch's virtual functions, and the comparison with another PyTorch."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend import PACKAGE

CSRC = Path(__file__).resolve().parents[2] / "csrc"
AGAINST: Any = importlib.import_module(f"{PACKAGE}.doctor.against")
AUDIT: Any = importlib.import_module(f"{PACKAGE}.doctor.audit")
HEADERS: Any = importlib.import_module(f"{PACKAGE}.doctor.headers")
INTERFACES: dict[str, Any] = {
    interface.name: interface
    for interface in importlib.import_module(f"{PACKAGE}.doctor.interfaces").INTERFACES
}
FEATURES = importlib.import_module(f"{PACKAGE}._features").FEATURES

CLASSES = {
    "DeviceGuardImplInterface": "Guard",
    "AcceleratorHooksInterface": "Hooks",
    "PrivateUse1HooksInterface": "Hooks",
    "Allocator": "Allocator",
    "DeviceAllocator": "Allocator",
    "CachingHostAllocatorImpl": "HostCache",
    "GeneratorImpl": "Generator",
    "GraphImplInterface": "AcceleratorGraph",
    "ProfilerStubs": "Profiler",
    "Backend": "Group",
    "Work": "StreamWork",
}
# Without the keyword `override` in the sources, because older releases lack the base functions.
UNMARKED = {"getStreamNativeHandle", "isStreamCapturing"}


def test_every_virtual_function_of_this_pytorch_is_overridden_or_declined() -> None:
    findings = AUDIT.audit()
    assert [(item.name, item.detail) for item in findings if item.status == "missing"] == []
    recent = {name for name, interface in INTERFACES.items() if interface.recent}
    assert {item.section for item in findings} >= {*CLASSES} - recent


@pytest.mark.parametrize("name", CLASSES)
def test_functions_listed_as_overridden_are_overridden(name: str) -> None:
    interface = INTERFACES[name]
    if interface.feature and not FEATURES[interface.feature].enabled:
        pytest.skip(f"generated without {interface.feature}")
    offered = AUDIT.virtuals(AUDIT.INSTALLED, interface)
    if offered is None:
        pytest.skip(f"this PyTorch has no {name}")
    head = re.compile(rf"class {CLASSES[name]} final :")
    texts = [path.read_text() for path in CSRC.rglob("*.*") if head.search(path.read_text())]
    (text,) = texts
    assert offered.keys() & HEADERS.overrides(text, CLASSES[name]).keys() == (
        offered.keys() & set(interface.overridden.split()) - UNMARKED
    )


def a_tree(folder: Path, edit: Callable[[str, str], str]) -> Path:
    """Copy the files that are read of the installed PyTorch, changed by ``edit(path, text)``."""
    paths = [f"torch/include/{interface.header}" for interface in INTERFACES.values()]
    for path in {*paths, AGAINST.SCHEMAS}:
        if not (AUDIT.INSTALLED / path).is_file():
            continue  # of a later release
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(edit(path, (AUDIT.INSTALLED / path).read_text()))
    return folder


def test_an_unknown_virtual_function_is_reported(tmp_path: Path) -> None:
    def edit(path: str, text: str) -> str:
        text = text.replace(
            "virtual DeviceType type()",
            "virtual int rewind(Stream s = {}); virtual DeviceType type()",
        )
        # An overload is another function.
        return text.replace(
            "virtual bool supportsSplitting()",
            "virtual bool supportsSplitting(int) const;\n virtual bool supportsSplitting()",
        )

    findings = AUDIT.audit(a_tree(tmp_path, edit))
    missing = [(item.section, item.detail) for item in findings if item.status == "missing"]
    why = "neither overridden nor declined: "
    assert missing == [
        ("DeviceGuardImplInterface", f"{why}int rewind(Stream)"),
        ("Backend", f"{why}bool supportsSplitting(int) const"),
        ("Backend", f"{why}bool supportsSplitting() const"),
    ]


def against(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"{PACKAGE}.doctor", "--against", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_differences_from_a_wheel_are_named(tmp_path: Path) -> None:
    def edit(path: str, text: str) -> str:
        if path == AGAINST.SCHEMAS:
            text = re.sub(r"- func: empty_strided\(.*\n", "- func: gone_strided() -> ()\n", text)
            text = text.replace("- func: view(Tensor(a) self", "- func: view(Tensor(a) self, int n")
            text += "- func: view.twice(Tensor self) -> Tensor\n- func: unrelated() -> ()\n"
        for before, after in (
            ("virtual bool queryEvent(void*", "virtual bool queryEvent(const void*"),
            ("virtual void init()", "virtual void start()"),
            # Callers do not depend on names and defaults of arguments.
            ("virtual void setDevice(Device)", "virtual void setDevice(Device there = {})"),
        ):
            text = text.replace(before, after)
        return text

    tree = a_tree(tmp_path / "tree", edit)
    wheel = tmp_path / "torch-9.9.9-cp310-cp310-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in tree.rglob("*.*"):
            archive.write(path, path.relative_to(tree))

    done = against(str(wheel), "--json")
    assert done.returncode == 1, done.stderr
    changes = json.loads(done.stdout)
    assert [(item["kind"], item["part"], item["name"]) for item in changes] == [
        ("gone", "operator", "empty_strided"),
        ("changed", "operator", "view"),
        ("new", "operator", "view.twice"),
        ("changed", "DeviceGuardImplInterface", "queryEvent"),
        ("gone", "AcceleratorHooksInterface", "init"),
        ("new", "AcceleratorHooksInterface", "start"),
    ]
    event = changes[3]
    assert event["before"] == "bool queryEvent(void*) const"
    assert event["after"] == "bool queryEvent(const void*) const"
    text = AGAINST.to_text(AGAINST.compare(str(wheel)), "9.9.9")
    assert all(item[side] in text for item in changes for side in ("before", "after"))


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("0.0.0", r"pip cannot download torch 0.0.0: .*; give the path of a wheel"),
        ("no/torch.whl", r"no/torch.whl is neither a file, nor a folder, nor a version"),
        (__file__, r"is no wheel: give a version, a wheel or a folder"),
        (str(CSRC), r"has no torchgen.*: give a folder or wheel that torch is in"),
    ],
)
def test_a_wrong_path_or_version_is_refused_in_one_sentence(
    other: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(AGAINST.Unavailable, match=why):
        AGAINST.compare(other)
