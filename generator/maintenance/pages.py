"""Writes the parts of README.md and docs/ that are generated.

They follow from the release, the catalog, a render and the benchmarks, and are between
`<!-- NAME: begin -->` and `<!-- NAME: end -->`. `python -m maintenance.pages` writes all of them.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from benchmarks import evidence
from benchmarks.figures import STORE, Report
from maintenance import device_evidence
from torchsmith import __version__, catalog
from torchsmith.git import address
from torchsmith.render import Job, render
from torchsmith.template import REPOSITORY, TAG, TEMPLATE

PACKAGE = "torch_foo"
NPU = "device/tests/npu"
# Folders whose contents the tree lists.
OPEN = {"csrc", "device", "docs", "python", f"python/{PACKAGE}", "tests"}

_PART = re.compile(r"(<!-- (\w+): begin -->\n)(.*?)(<!-- \2: end -->)", re.DOTALL)


def tree() -> str:
    """The rendered project, two levels deep, with the feature that owns an entry."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "torch-foo"
        render(project, Job({"preset": "full"}))
        lines = ["torch-foo/", *_branches(project, PurePosixPath())]
    return "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```\n"


def _branches(folder: Path, at: PurePosixPath, indent: str = "") -> Iterator[str]:
    entries = sorted(folder.iterdir(), key=lambda entry: (entry.is_file(), entry.name))
    for number, entry in enumerate(entries, 1):
        last = number == len(entries)
        path = at / entry.name
        name = entry.name + ("/" if entry.is_dir() else "")
        owner = catalog.owner(path, catalog.places(PACKAGE)) or ""
        label = f"{indent}{'└── ' if last else '├── '}{name}"
        yield f"{label:<33} {owner}"
        if entry.is_dir() and str(path) in OPEN:
            yield from _branches(entry, path, indent + ("    " if last else "│   "))


def features_table() -> str:
    """The table of features, by group, with their sizes."""
    parts = catalog.sizes()["parts"]
    rows = ["| feature | what it is | requires | files | lines |", "|---|---|---|---|---|"]

    def row(id: str, name: str, what: str, requires: str) -> str:
        return f"| {name} | {what} | {requires} | {parts[id]['files']} | {parts[id]['lines']:,} |"

    what = "devices, memory, streams, operators, the CPU fallback; always on"
    rows.append(row("core", "core", what, ""))
    group = ""
    for each in catalog.features().values():
        if each.group != group:
            group = each.group
            rows.append(f"| **{group}** | | | | |")
        requires = ", ".join(f"`{id}`" for id in each.requires)
        rows.append(row(each.id, f"`{each.id}`", f"{each.title}: {each.help}", requires))
    return "\n".join(rows) + "\n"


def presets_table() -> str:
    """The table of presets, with their sizes and the time of a clean build."""
    named = catalog.load("features")["presets"]["default"]
    rows = ["| preset | features | files | lines | clean build |", "|---|---|---|---|---|"]
    for id, size in catalog.sizes()["presets"].items():
        features = ", ".join(f"`{each}`" for each in named.get(id, [])) or "none: the core alone"
        features = "all" if id == "full" else features
        build = f"{size['build']} CPU s" if "build" in size else ""
        rows.append(f"| `{id}` | {features} | {size['files']} | {size['lines']:,} | {build} |")
    rows.append("| `custom` | those named in `features`, and what they require | | | |")
    return "\n".join(rows) + "\n"


def questions_table() -> str:
    """The table of questions."""
    rows = ["| question | help | default | choices |", "|---|---|---|---|"]
    asked = catalog.load("questions")
    special = {
        "display_name": "from `backend_name`",
        "description": "from `display_name`",
        "device": "`simulator` if that feature is chosen, else `starter`",
        "dtypes": "the dtypes that the simulator supports fully",
        "preset": "`standard`, or `custom` if `features` is given",
        "features": "none",
    }
    listed = {"dtypes": "see below", "features": "[features](features/index.md)"}
    for name in catalog.questions():
        question = asked[name]
        default = special.get(name, f"`{question['default']}`")
        choices = question.get("choices", {})
        values = listed.get(name) or ", ".join(f"`{value}`" for value in choices.values())
        rows.append(f"| `{name}` | {question['help']} | {default} | {values} |")
    return "\n".join(rows) + "\n"


def dtypes_table() -> str:
    """The table of element types."""
    rows = ["| dtype | | kernels by default |", "|---|---|---|"]
    for name, row in catalog.dtypes().items():
        rows.append(
            f"| `{name}` | {row['title']} | {'yes' if row['default'] else 'no, storage only'} |"
        )
    return "\n".join(rows) + "\n"


def accuracies_table() -> str:
    """The table of the required accuracy of kernels, from the tests of a device."""
    source = (TEMPLATE / "template/device/tests/kernels/tolerances.py").read_text("utf-8")
    values = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("EXACT", "ULP")
    }
    named: dict[float, list[str]] = {}
    for operation, units in values["ULP"].items():
        named.setdefault(units, []).append(f"`{operation}`")
    rows = [
        "| ulp | operations |",
        "|---|---|",
        f"| {values['EXACT']} | all others: correctly rounded |",
    ]
    rows += [f"| {units} | {', '.join(named[units])} |" for units in sorted(named)]
    return "\n".join(rows) + "\n"


def is_released() -> bool:
    """Whether this version is published: its heading in the changelog then has a date."""
    changes = (TEMPLATE / "CHANGELOG.md").read_text("utf-8")
    return f"\n## {__version__} (20" in changes


def shell(*lines: str) -> str:
    """A block of commands."""
    return "\n".join(["```sh", *lines, "```"]) + "\n"


def clone() -> str:
    """The commands of the demo: with a clone once published, else in this checkout."""
    demo = "make demo    # renders, builds and runs a sample backend: 98 seconds on 2 cores"
    test = "make test    # tests of the generator and the backend: 20 minutes; make check: 5"
    if not is_released():
        return shell(demo, test)
    url = address(REPOSITORY).removesuffix(".git")
    return shell(f"git clone {url} && cd {url.rpartition('/')[2]}", demo, test)


def copying() -> str:
    """The command that renders with copier alone."""
    if is_released():
        return shell(f"copier copy --vcs-ref {TAG} {REPOSITORY} torch-acme")
    return shell('.venv/bin/copier copy --vcs-ref HEAD "$PWD" ../torch-acme')


def own() -> str:
    """The commands that render, build and test: the published one, or that of the clone."""
    window = catalog.torch_window()
    folder = "torch-acme" if is_released() else "../torch-acme"
    command = f"uvx torchsmith=={__version__}" if is_released() else ".venv/bin/torchsmith"
    first, *_, last = window["versions"]
    tools = f"torch=={window['tested']} -r requirements-build.txt"
    return shell(
        f"{command} new {folder}    # asks for a name, a purpose and, on request, more",
        f"cd {folder}",
        f"pip install {tools}    # or another torch, {first} to {last}",
        "pip install --no-build-isolation '.[test]'",
        "pytest -n auto",
    )


def figures() -> str:
    """All figures of the last run of the benchmarks."""
    return Report.load(STORE).part()


def numbers() -> str:
    """The numbers of the first page."""
    report, versions = Report.load(STORE), catalog.torch_window()["versions"]
    native, computed = report.count(evidence.NATIVE), report.count(evidence.COMPUTED)
    on_device, entries = report.count(evidence.ON_DEVICE), report.count(evidence.ENTRIES)
    guide = "docs/bring-up.md"
    rows = {
        "overloads of PyTorch's operators with a kernel": f"{native} of the CPU's {computed}",
        "entries of PyTorch's OpInfo table that run without the CPU": f"{on_device} of {entries}",
        "PyTorch releases in one tree": f"{len(versions)}, {versions[0]} to {versions[-1]}",
        f"the driver of the [example NPU]({guide}#a-third-example-an-npu)": (
            f"{_driver_lines():,} lines"
        ),
    }
    lines = [f"| {what} | {number} |" for what, number in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines]) + "\n"


def _driver_lines() -> int:
    """Count the lines of the example NPU's driver: neither its SDK nor its tests."""
    files = (path for path in (TEMPLATE / "template" / NPU).rglob("*") if path.is_file())
    return sum(
        len(path.read_text("utf-8").splitlines())
        for path in files
        if not path.name.startswith(("sdk.", "test_"))
    )


PARTS: dict[str, Callable[[], str]] = {
    "accuracies": accuracies_table,
    "clone": clone,
    "copying": copying,
    "devices": device_evidence.table,
    "dtypes": dtypes_table,
    "features": features_table,
    "figures": figures,
    "numbers": numbers,
    "own": own,
    "presets": presets_table,
    "questions": questions_table,
    "tree": tree,
}


def pages() -> list[Path]:
    """Return the files that may have generated parts."""
    rendered = TEMPLATE / "template/docs/features/device_tests.md.jinja"
    return [TEMPLATE / "README.md", *sorted((TEMPLATE / "docs").rglob("*.md")), rendered]


def current(text: str) -> str:
    """Return a page with its parts generated again."""

    def fill(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        return begin + PARTS[name]() + end

    return _PART.sub(fill, text)


def main() -> None:
    """Write every page whose parts changed, and print its name."""
    for page in pages():
        text = page.read_text("utf-8")
        if (wanted := current(text)) != text:
            page.write_text(wanted, "utf-8")
            print(f"{page.relative_to(TEMPLATE)}: written")


if __name__ == "__main__":
    main()
