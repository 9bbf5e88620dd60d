"""`full` and `minimal` are built and installed, and pass their own tests and examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from maintenance.installing import Installed
from torchsmith import catalog

PROJECTS: dict[str, dict[str, Any]] = {
    "full": {"preset": "full"},
    # Another name, to find code that does not follow the answers.
    "minimal": {
        "preset": "minimal",
        "backend_name": "zq_nova",
        "ci_provider": "gitlab",
        "by_command": True,  # torchsmith new --build
    },
}
NAMES = {"full": "foo", "minimal": "zq_nova"}

# With fewer tests, some were not collected.
AT_LEAST = {"tests": 6000, "device/tests": 7500}
ALL = {"tests": 11000, "device/tests": 35000}


def run_tests(project: Installed, *arguments: str, **variables: str) -> int:
    """Run tests of the project, which must pass, and return their number.

    The tests run in several processes, which shortens the run.
    """
    pytest_of_project = ("-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider")
    done = project.run(*pytest_of_project, *arguments, **variables)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[:6000]
    passed = re.search(r"^(\d+) passed", done.stdout.splitlines()[-1])
    assert passed, done.stdout[-300:]
    return int(passed[1])


@pytest.fixture(params=["full", pytest.param("minimal", marks=pytest.mark.nightly)])
def project(request: pytest.FixtureRequest, install: Callable[..., Installed]) -> Installed:
    return install(request.param, **PROJECTS[request.param])


@pytest.mark.parametrize("tests", ["tests", "device/tests"])
def test_the_tests_of_full_pass(tests: str, install: Callable[..., Installed]) -> None:
    """The device's tests use the library of the project's own build, so that it is built once."""
    full = install("full", **PROJECTS["full"])
    libraries = full.project.glob("build/*/device/libfoo_device.so")
    variables = {"FOO_DEVICE_LIBRARY": str(next(libraries))} if tests == "device/tests" else {}
    assert run_tests(full, tests, **variables) >= AT_LEAST[tests]


@pytest.mark.nightly
@pytest.mark.parametrize("tests", ["tests", "device/tests"])
def test_all_tests_of_full_pass(tests: str, install: Callable[..., Installed]) -> None:
    assert run_tests(install("full", **PROJECTS["full"]), tests, "-m", "full") >= ALL[tests]


@pytest.mark.nightly
def test_the_tests_of_minimal_pass(install: Callable[..., Installed]) -> None:
    assert run_tests(install("minimal", **PROJECTS["minimal"])) >= 450


@pytest.mark.nightly
def test_the_tests_of_standard_pass(install: Callable[..., Installed]) -> None:
    standard = install("standard")
    assert run_tests(standard) >= 9000
    done = standard.run("examples/quickstart.py")
    assert done.returncode == 0, done.stdout + done.stderr


# The project's own tests run the quickstart, and train each model for fewer steps.
@pytest.mark.nightly
def test_the_examples_run(project: Installed) -> None:
    features = catalog.presets()[project.name]
    models = {"gpt"}
    models |= {"moe", "resnet", "speech", "unet"} if "networks" in features else set()
    models |= {"lstm"} if "more_operators" in features else set()
    examples = sorted((project.project / "examples").glob("*.py"))
    with_features = {"distributed": "gpt_sharded", "compile": "graph_compiler"}
    elsewhere = {name for feature, name in with_features.items() if feature in features}
    alone = models | {"quickstart", "open_registration"}
    assert {path.stem for path in examples} == alone | elsewhere
    for example in examples:
        if example.stem in elsewhere:  # the tests of its feature run it
            continue
        done = project.run(str(example))
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{NAMES[project.name]}:0" in done.stdout + done.stderr
        if example.stem in models:
            losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
            assert losses[-1] < losses[0] / 4, done.stdout
            # The starter device has few kernels.
            ends_natively = done.stdout.endswith("\nNothing ran on the CPU.\n")
            assert ends_natively == (project.name == "full"), done.stdout


def test_import_torch_loads_the_backend_and_its_enabled_features(project: Installed) -> None:
    name = NAMES[project.name]
    done = project.run(
        "-c",
        f"import torch; print(torch.ones(2, device='{name}').sum().item());"
        f"from torch_{name}._features import FEATURES;"
        "print(sorted(id for id, feature in FEATURES.items() if feature.enabled))",
    )
    enabled = sorted(catalog.presets()[project.name])
    assert done.stdout.splitlines() == ["2.0", str(enabled)], done.stderr


def test_the_doctor_of_full_finds_nothing_missing(install: Callable[..., Installed]) -> None:
    done = install("full", **PROJECTS["full"]).run("-m", "torch_foo.doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "generated without" not in done.stdout


@pytest.mark.nightly
def test_the_error_for_an_absent_name_names_the_feature_and_the_command(
    install: Callable[..., Installed],
) -> None:
    minimal = install("minimal", **PROJECTS["minimal"])
    done = minimal.run("-c", "import torch; torch.zq_nova.get_amp_supported_dtype")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("AttributeError: zq_nova was generated without amp")
    assert last.endswith("add it with: torchsmith add amp")


def test_a_torch_of_another_minor_version_is_refused_in_one_sentence(
    install: Callable[..., Installed],
) -> None:
    full = install("full", **PROJECTS["full"])
    off = "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'"
    other = "import torch; torch.__version__ = '2.12.9'"
    done = full.run("-c", f"{off}; {other}; import torch_foo")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0
    assert last.startswith("ImportError: torch_foo was built for PyTorch 2.")
    assert "PyTorch 2.12.9 is installed" in last


def test_pip_installs_only_the_package_folder(
    install: Callable[..., Installed],
) -> None:
    full = install("full", **PROJECTS["full"])
    done = full.run(
        "-c",
        "from importlib.metadata import files;"
        "print(sorted({str(path).split('/')[0].split('-')[0] for path in files('torch-foo')}))",
    )
    assert done.stdout.strip() == "['torch_foo']"
