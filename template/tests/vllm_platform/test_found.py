"""How vLLM finds this device, and which releases of it are refused."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from typing import Any

import pytest
from backend import DEVICE, backend
from support import run_python

versions: Any = importlib.import_module(f"{backend.__name__}.vllm._versions")


def test_the_package_registers_the_platform_plugin() -> None:
    points = {
        point.name: point
        for point in importlib.metadata.entry_points(group="vllm.platform_plugins")
    }
    assert points[DEVICE].load() is backend.vllm_platform
    assert backend.vllm_platform() == f"{backend.__name__}.vllm.platform.DevicePlatform"


def test_importing_torch_imports_nothing_of_vllm() -> None:
    code = "import sys, torch; print([name for name in sys.modules if name.startswith('vllm')])"
    assert run_python(code).stdout.strip() == "[]"


@pytest.mark.parametrize("release", versions.TESTED)
def test_tested_releases_are_accepted_with_any_version_suffix(release: str) -> None:
    for suffix in (".0", ".1+cpu", ".0rc1", ".2.dev3+gabc"):
        versions.check(release + suffix)


@pytest.mark.parametrize("release", [None, "0.1.0", "99.0", "99.0.0+cu130"])
def test_an_untested_release_is_refused_in_one_sentence(release: str | None) -> None:
    says = f"not with {release}:" if release else "which is not installed:"
    with pytest.raises(ImportError, match=re.escape(says)) as raised:
        versions.check(release)
    assert "\n" not in str(raised.value)
