"""The gate of PyTorch's own tests, with the files in ``sample``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE
from pytorch import source

HERE = Path(__file__).parent
SAMPLE = HERE / "sample"
RELEASE = ".".join(torch.__version__.split(".")[:2])

KNOWN = """
[[xfail]]
files = ["verdicts.py"]
tests = ["test_fails"]
reason = "one is not two"

[[xfail]]
files = ["verdicts.py"]
tests = ["test_fails_for_*"]
reason = "only one of its dtypes fails"

[[tolerance]]
files = ["verdicts.py"]
classes = ["TestVerdicts"]
tests = ["test_is_off*"]
dtypes = ["float32"]
absolute = 0.01
reason = "a thousandth"

[[skip]]
files = ["generic.py"]
operators = ["linalg.det"]
tests = ["test_operator"]
reason = "no determinants"

[[skip]]
files = ["unimportable.py", "nested/*"]
tests = ["test_nobody_has_this"]
reason = "not judged, as one of its files cannot be imported"

[[skip]]
files = ["verdicts.py"]
operators = ["sin"]
reason = "there is no operator in this file"
"""


def checkout(folder: Path, version: str = f"{RELEASE}.0a0") -> Path:
    """Copy the sample into a tree like PyTorch's."""
    shutil.copytree(SAMPLE, folder / "test")
    (folder / "version.txt").write_text(version, "utf-8")
    return folder


def run(named: Path | None, work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the gate in a process, with its logs and results in ``work``."""
    environment = {key: value for key, value in os.environ.items() if key != source.VARIABLE}
    if named is not None:
        environment[source.VARIABLE] = str(named)
    command = [sys.executable, str(HERE), "--logs", str(work / "logs"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The document, the status and the output of a run of all sample files."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "known.toml").write_text(KNOWN, "utf-8")
    done = run(
        checkout(folder / "pytorch"),
        folder,
        *("--known", str(folder / "known.toml"), "--out", str(folder / "out.json")),
        *("--jobs", "2", "--timeout", "20"),
    )
    assert (folder / "out.json").is_file(), done.stdout + done.stderr
    document: dict[str, Any] = json.loads((folder / "out.json").read_text("utf-8"))
    return document | {"status": done.returncode, "printed": done.stdout}


def verdicts(seen: dict[str, Any], file: str) -> dict[str, str]:
    """Return the verdict of each test of a file by its name."""
    tests = seen["files"][file]["tests"]
    return {name.partition("::")[2]: cell["verdict"] for name, cell in tests.items()}


@pytest.mark.full
def test_device_tests_are_instantiated_and_other_tests_are_skipped(seen: dict[str, Any]) -> None:
    assert verdicts(seen, "generic.py") == {
        f"test_plain_{DEVICE}": "pass",
        f"test_dtype_{DEVICE}_float32": "pass",
        f"test_dtype_{DEVICE}_int64": "pass",
        f"test_size_size_0_{DEVICE}": "pass",
        f"test_size_size_3_{DEVICE}": "pass",
        f"test_operator_sin_{DEVICE}_float32": "pass",
        f"test_operator_linalg_det_{DEVICE}_float32": "skip",
        f"test_native_{DEVICE}": "pass",
        f"test_of_the_cpu_{DEVICE}": "skip",
        f"test_devices_{DEVICE}": "pass",
        f"test_left_out_{DEVICE}": "skip",
        f"test_unheard_of_{DEVICE}": "skip",
    }
    assert verdicts(seen, "nested/folder.py") == {f"test_imports_{DEVICE}": "pass"}
    assert set(seen["files"]) == {path.as_posix() for path in sample_files()}


def sample_files() -> list[Path]:
    """Return the sample files that define tests of devices."""
    helpers = {"neighbour.py", "beside.py", "__init__.py"}
    return [path.relative_to(SAMPLE) for path in SAMPLE.rglob("*.py") if path.name not in helpers]


@pytest.mark.full
def test_declared_failures_and_tolerances_are_applied(seen: dict[str, Any]) -> None:
    assert verdicts(seen, "verdicts.py") == {
        f"test_passes_{DEVICE}": "pass",
        f"test_fails_{DEVICE}": "xfail",
        f"test_fails_for_floats_{DEVICE}_float32": "xfail",
        f"test_fails_for_floats_{DEVICE}_int64": "stale",
        f"test_expected_{DEVICE}": "expected",
        f"test_is_off_by_a_thousandth_{DEVICE}_float32": "pass",
        f"test_is_set_up_{DEVICE}": "pass",
    }


@pytest.mark.full
def test_a_crash_or_hang_affects_only_its_own_test(seen: dict[str, Any]) -> None:
    assert verdicts(seen, "dying.py") == {
        f"test_a_runs_{DEVICE}": "pass",
        f"test_b_dies_{DEVICE}": "crash",
        f"test_c_runs_{DEVICE}": "pass",
        f"test_d_hangs_{DEVICE}": "timeout",
        f"test_e_leaves_{DEVICE}": "crash",
        f"test_f_runs_{DEVICE}": "pass",
    }
    died = seen["files"]["dying.py"]["tests"][f"TestDying::test_b_dies_{DEVICE}"]
    assert died["reason"] == "Fatal Python error: Aborted"


@pytest.mark.full
def test_the_gate_reports_exactly_the_expected_problems(seen: dict[str, Any]) -> None:
    assert seen["status"] == 1
    wanted = {
        f"dying.py::TestDying::test_b_dies_{DEVICE}: crash",
        f"dying.py::TestDying::test_d_hangs_{DEVICE}: timeout",
        f"dying.py::TestDying::test_e_leaves_{DEVICE}: crash",
        "unimportable.py: cannot be imported",
        f"verdicts.py::TestVerdicts::test_fails_for_floats_{DEVICE}_int64: passes",
        "known.toml, [[skip]] number 3: 'sin' of 'operators' fits no test",
    }
    found = [sentence for sentence in seen["problems"] if "of the tests that ran" not in sentence]
    assert len(found) == len(wanted), found
    for beginning in wanted:
        assert any(sentence.startswith(beginning) for sentence in found), beginning


def test_a_checkout_of_another_release_is_refused(tmp_path: Path) -> None:
    other = checkout(tmp_path / "old", "1.0.0a0")
    done = run(other, tmp_path, "--out", str(tmp_path / "out.json"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "names PyTorch 1.0.0a0" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_a_source_package_can_replace_a_checkout(tmp_path: Path) -> None:
    tree = checkout(tmp_path / "pytorch-v2.13.0", "2.13.0a0")
    (tree / "torch").mkdir()
    (tree / "torch" / "version.py").write_text("", "utf-8")
    package = tmp_path / "pytorch-v2.13.0.tar.gz"
    with tarfile.open(package, "w:gz") as archive:
        archive.add(tree, "pytorch-v2.13.0")
    unpacked = source.find(str(package), "2.13.1+cpu", tmp_path / "build")
    assert unpacked.version == "2.13.0a0"
    assert sorted(unpacked.files()) == sorted(path.as_posix() for path in sample_files())
    assert not (unpacked.folder.parent / "torch").exists()


@pytest.mark.full
def test_the_tests_of_the_wheel_pass(tmp_path: Path) -> None:
    done = run(None, tmp_path, "--out", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{source.VARIABLE} is not set" in done.stdout


def test_files_of_the_installed_release_are_fetched(tmp_path: Path) -> None:
    """From a local repository with a tag of that release and a newer commit."""
    origin = checkout(tmp_path / "origin")
    (origin / "torch").mkdir()
    (origin / "torch" / "large.py").write_text("", "utf-8")
    tag = f"v{torch.__version__.partition('+')[0]}"
    git = ["git", "-C", str(origin), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (
        ("init", "--quiet"),
        ("add", "."),
        ("commit", "--quiet", "-m", "release"),
        ("tag", tag),
        ("rm", "--quiet", "-r", "test"),
        ("commit", "--quiet", "-m", "newer"),
    ):
        subprocess.run([*git, *command], check=True)
    fetch = [sys.executable, str(HERE / "fetch.py"), str(tmp_path / "fetched")]
    done = subprocess.run([*fetch, "--repository", origin.as_uri()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fetched" / "test" / "generic.py").is_file()
    assert not (tmp_path / "fetched" / "torch").exists()
    again = subprocess.run(fetch, capture_output=True, text=True)
    assert again.returncode == 2
    assert (
        again.stderr == f"error: {tmp_path / 'fetched'} exists: name a new folder, or remove it\n"
    )
