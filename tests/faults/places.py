"""The two places for faults: a rendered project that is built, and a checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.listing import ROOT, Fault
from maintenance.installing import Installed, link_packages, make_environment
from rendering import Renderer, files, git, snapshot

# Seconds; a test that hangs counts as failed.
LONGEST = 900
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^:\s]+)", re.MULTILINE)


class NotBuiltError(Exception):
    """The fault does not compile; the text is the compiler's."""


def pytest(python: str, folder: Path, variables: dict[str, str], *arguments: str) -> set[str]:
    """Run tests; return the files of those that failed, or how the run ended without one."""
    command = [python, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said, _ = running.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, 9)
            return {f"{arguments[0]} hangs"}
    if running.returncode in (0, 5):  # 5: no test was collected
        return set()
    return set(FAILED.findall(said)) or {f"{arguments[0]} ends with {running.returncode}"}


def folders(root: Path, *parents: str) -> Iterator[str]:
    """Yield the folders of tests."""
    for parent in parents:
        for folder in sorted((root / parent).iterdir()):
            if any(folder.glob("test_*.py")):
                yield f"{parent}/{folder.name}"


class Place:
    """A folder for faults, and its suites of tests."""

    folder: Path

    def suites(self, path: str) -> list[str]:
        """Return the suites that can catch a fault in a file."""
        raise NotImplementedError

    def run(self, suite: str, *, slow: bool, first: bool) -> set[str]:
        """Run a suite, with its slow tests or only until the ``first`` failure."""
        raise NotImplementedError

    def build(self, path: str) -> None:
        """Rebuild what contains a changed file."""

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Plant a fault for the length of the block."""
        file = self.folder / fault.path
        before = file.read_text("utf-8")
        file.write_text(fault.planted(before), "utf-8")
        try:
            self.build(fault.path)
            yield
        finally:
            file.write_text(before, "utf-8")


class Project(Place):
    """A render of `full`, built and installed; a change compiles only what depends on it."""

    def __init__(self, scratch: Path) -> None:
        """Build it in ``scratch``, or use the build of an earlier run there."""
        self.folder = scratch / "project"
        python = scratch / "venv" / "bin" / "python"
        self.installed = Installed("full", self.folder, python)
        for left in ("template", "renders"):
            shutil.rmtree(scratch / left, ignore_errors=True)
        (scratch / "renders").mkdir(parents=True)
        rendered = Renderer(snapshot(scratch / "template"), scratch / "renders")(preset="full")
        if not (scratch / "built").exists():
            make_environment(scratch / "venv", link_packages(scratch / "packages"))
            shutil.copytree(rendered, self.folder)
            done = self.installed.build()
            if done.returncode != 0:
                raise NotBuiltError(done.stdout + done.stderr)
            (scratch / "built").touch()
        # Files that changed since, or that a killed run has left.
        for folder in ("csrc", "device", "python", "tests"):
            for path in files(self.folder / folder):
                if not (rendered / folder / path).exists():
                    (self.folder / folder / path).unlink()
        for path in files(rendered):
            file = self.folder / path
            if not file.exists() or file.read_bytes() != (rendered / path).read_bytes():
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(rendered / path, file)
        (self.compiled,) = (self.folder / "build").glob("cp*")
        (self.site,) = (scratch / "venv" / "lib").glob("python*/site-packages")
        self.stale = True

    def suites(self, path: str) -> list[str]:
        """Return the test folders and the examples; device tests are only for files of device/."""
        below = ["device/tests"] if path.startswith("device/") else []
        return [*folders(self.folder, *below, "tests"), "examples"]

    def run(self, suite: str, *, slow: bool, first: bool) -> set[str]:
        """Run tests, or all examples."""
        if suite == "examples":
            scripts = sorted((self.folder / "examples").glob("*.py"))
            alone = [script for script in scripts if script.stem != "gpt_sharded"]
            return {f"examples/{it.name}" for it in alone if self.installed.run(str(it)).returncode}
        arguments = [
            suite,
            *(["-m", "full"] if slow else []),
            *(["-x"] if first else []),
        ]
        return pytest(
            str(self.installed.python), self.folder, self.installed.environment, *arguments
        )

    def build(self, path: str) -> None:
        """Compile the changes, and install them."""
        # The next build replaces files that were compiled with the last fault.
        if path.startswith("python/"):
            if self.stale:
                self._compile()
            self.stale = False
        else:
            self._compile()
            self.stale = True
        shutil.copytree(self.folder / "python", self.site, dirs_exist_ok=True)

    def _compile(self) -> None:
        install = ["--install", str(self.compiled), "--prefix", str(self.site)]
        for arguments in (["--build", str(self.compiled)], install):
            done = subprocess.run(
                ["cmake", *arguments],
                env=self.installed.environment,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise NotBuiltError(done.stdout[-3000:])


class Checkout(Place):
    """A copy of this checkout."""

    def __init__(self, scratch: Path) -> None:
        """Copy the files of the working tree that git knows to ``scratch``."""
        self.folder = scratch
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.parent.mkdir(parents=True, exist_ok=True)
        git(ROOT, "clone", "--quiet", str(ROOT), str(scratch))
        listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, scratch / name, follow_symlinks=False)
            else:
                (scratch / name).unlink(missing_ok=True)

    def suites(self, path: str) -> list[str]:
        """Return the folders of tests, without tests/faults."""
        # Tests that build projects catch few faults of the generator.
        return [
            suite
            for suite in folders(self.folder, "tests")
            if suite not in ("tests/projects", "tests/faults")
        ]

    def run(self, suite: str, *, slow: bool, first: bool) -> set[str]:
        """Run tests against the copy."""
        arguments = [suite, *([] if slow else ["-m", "not nightly"]), *(["-x"] if first else [])]
        variables = {**os.environ, "PYTHONPATH": "generator"}
        return pytest(sys.executable, self.folder, variables, *arguments)
