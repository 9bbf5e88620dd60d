"""Rules for the files under template/, which do not depend on answers."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from rendering import Renderer, files
from torchsmith import catalog

CXX = (".h", ".cpp")
MACHINE_ONLY = "|".join(
    (
        r"strftime|expandvars|fileglob|\bnow\b|make_secret",
        r"ans_random|shuffle|random_mac",
        r"_copier_python|_copier_conf\.(os|sep|src_path|dst_path)",
    )
)


@pytest.fixture(scope="module")
def template(render: Renderer) -> Path:
    return render.template / "template"


def sources(template: Path, *suffixes: str) -> list[PurePosixPath]:
    return [path for path in files(template) if str(path).removesuffix(".jinja").endswith(suffixes)]


def offenders(template: Path, paths: list[PurePosixPath], pattern: str) -> list[str]:
    """Every line that matches, as path:line: text."""
    assert paths, "nothing to check"
    found = []
    for path in paths:
        for number, line in enumerate((template / path).read_text("utf-8").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{path}:{number}: {line.strip()}")
    return found


def test_no_jinja_logic_in_code(template: Path) -> None:
    assert not offenders(
        template, sources(template, *CXX, ".py", ".pyi"), r"^\s*#%|\{%|\{#|\{=[^=]*\|"
    )


def test_placeholders_in_cxx_occur_only_in_includes_and_namespaces(template: Path) -> None:
    allowed = re.compile(
        r"#include <\{= backend_name =\}/(device/\w+|extension|stable|aoti)\.h>"
        r"|(namespace|using namespace) \{= package =\}(::\w+)*( \{|;)"
        r"|namespace \w+ = \{= package =\}(::\w+)*;"
        r"|\}  // namespace \{= package =\}(::\w+)*"
    )
    found = offenders(template, sources(template, *CXX), r"\{=")
    assert found
    assert not [line for line in found if not allowed.fullmatch(line.split(": ", 1)[1])]


LAYERS: dict[str, set[str]] = {
    "runtime": set(),
    "memory": {"runtime"},
    "core": {"runtime", "memory"},
    "fallback": {"runtime", "memory", "core"},
    "aten": {"runtime", "memory", "core", "fallback", "rng"},
}
"""The folders of csrc that each folder includes; bindings also include python/binding.h."""


@pytest.mark.parametrize("folder", LAYERS)
def test_the_folders_of_csrc_have_no_include_cycle(template: Path, folder: str) -> None:
    csrc = PurePosixPath("csrc")
    others = "|".join(path.name for path in (template / csrc).iterdir() if path.is_dir())
    allowed = "|".join({folder, *LAYERS[folder]})
    parts = [
        path
        for path in sources(template, *CXX)
        if path.is_relative_to(csrc / folder) and not path.name.startswith("bindings.")
    ]
    assert not offenders(template, parts, rf'#include "(?!({allowed})/)({others})/')


def test_only_files_with_placeholders_are_rendered(template: Path) -> None:
    """Copier copies other files unchanged, and tools can read them."""
    rendered = [path for path in files(template) if path.suffix == ".jinja"]
    idle = [
        path
        for path in rendered
        if not re.search(r"\{=|^\s*#%", (template / path).read_text("utf-8"), re.M)
    ]
    assert rendered
    assert not idle


def test_placeholders_name_answers_or_computed_values(template: Path) -> None:
    known = set(catalog.questions()) | set(catalog.load("computed")) | {
        "torch_window", "dtype_catalog", "catalog", "_copier_answers", "_copier_conf",
    }  # fmt: skip
    used = set()
    for path in files(template):
        text = str(path) + ((template / path).read_text("utf-8") if path.suffix == ".jinja" else "")
        used |= set(re.findall(r"\{=\s*(\w+)", text))
    assert used
    assert used <= known


def test_nothing_depends_on_the_machine_or_the_clock(render: Renderer, template: Path) -> None:
    catalog = render.template / "generator" / "catalog"
    # names.jinja and messages.yml use the destination, but write no file.
    tables_only = [
        path
        for path in files(catalog)
        if path.name not in ("names.jinja", "messages.yml", "reserved.yml")
    ]
    assert not offenders(catalog, tables_only, MACHINE_ONLY)
    rendered = [path for path in files(template) if path.suffix == ".jinja"]
    assert not offenders(template, rendered, r"\{=.*(" + MACHINE_ONLY + ")")


def test_sources_include_no_header_of_all_operators(template: Path) -> None:
    assert not offenders(
        template,
        sources(template, *CXX),
        r"#\s*include\s*[<\"](torch/extension|torch/all|torch/torch|ATen/ATen|ATen/Functions)\.h",
    )


def test_nothing_below_the_device_interface_includes_pytorch(template: Path) -> None:
    below = [path for path in sources(template, *CXX) if path.parts[0] == "device"]
    assert not offenders(template, below, r"#\s*include\s*[<\"](torch|ATen|c10|caffe2)/")


def test_nothing_above_the_device_interface_names_the_simulator(template: Path) -> None:
    above = [path for path in sources(template, *CXX) if path.parts[0] == "csrc"]
    assert not offenders(template, above, r"(?i)simulator")


# Files without waits, or that run on the backend's own threads, without signal handlers.
WITHOUT_SIGNALS = {
    "distributed/comm_streams.cpp",
    "distributed/staged.cpp",
    "distributed/watch.cpp",
    "memory/device_cache.cpp",
    "memory/fence.h",
    "memory/host_allocator.cpp",
    "memory/settings.cpp",
    "memory_tools/history.cpp",
}


def test_no_handler_discards_an_interrupt(template: Path) -> None:
    """Signal handlers throw ``std::exception``s in waits: catching all requires ``NoSignals``."""
    swallows = re.compile(
        r"try \{(?P<tried>(?:(?!try \{).)*?)\} catch \((?:const std::exception&[^)]*|\.\.\.)\) "
        r"\{(?P<handled>.*?)\n *\}",
        re.DOTALL,
    )
    found = []
    for path in sources(template, *CXX):
        name = str(PurePosixPath(*path.parts[1:])).removesuffix(".jinja")
        if path.parts[0] != "csrc" or name in WITHOUT_SIGNALS:
            continue
        text = (template / path).read_text("utf-8")
        for match in swallows.finditer(text):
            lines_above = text[: match.start()].splitlines()[-6:]
            is_thrown_on = re.search(r"\bthrow\b|current_exception", match["handled"])
            if not is_thrown_on and "NoSignals" not in "".join(lines_above):
                found.append(f"{path}: {match['handled'].strip()}")
    assert not found


def test_no_file_has_a_todo_comment(template: Path) -> None:
    assert not offenders(template, list(files(template)), r"\bTODO\b|\bFIXME\b|\bXXX\b|\bHACK\b")


def test_files_are_short(template: Path) -> None:
    paths = sources(template, *CXX, ".py", ".pyi")
    long = {
        str(path): count
        for path in paths
        if (count := (template / path).read_text("utf-8").count("\n")) > 400
    }
    assert not long


def test_file_names_are_valid_on_every_system(template: Path) -> None:
    reserved = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
    for path in files(template):
        plain = re.sub(r"\{= [\w.]+ =\}", "name", str(path))
        assert re.fullmatch(r"[\w./-]+", plain), path
        assert len(plain) < 120, path
        assert not [
            part
            for part in PurePosixPath(plain).parts
            if reserved.match(part) or part.endswith(".")
        ], path


def test_file_names_differ_by_more_than_case(template: Path) -> None:
    paths = [str(path).lower() for path in files(template)]
    assert len(paths) == len(set(paths))


def test_no_file_exists_with_and_without_the_jinja_suffix(template: Path) -> None:
    """Copier drops the file without the suffix, and prints no warning."""
    paths = {str(path) for path in files(template)}
    assert not [path for path in paths if f"{path}.jinja" in paths]


def test_the_template_has_no_settings_that_require_trust(render: Renderer) -> None:
    catalog_files = (render.template / "generator" / "catalog").glob("*.yml")
    topics = [path.stem for path in catalog_files]
    keys = set().union(*(catalog.load(topic) for topic in topics))
    assert len(topics) > 5
    assert not keys & {"_tasks", "_jinja_extensions", "_migrations", "_external_data"}
