"""`torchsmith features`, `dtypes` and `names`; and rules for every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from commanding import Torchsmith, run_python
from torchsmith import catalog, cli


def commands() -> Iterator[tuple[str, ...]]:
    for info in cli.app.registered_commands:
        assert info.callback
        yield ((info.name or info.callback.__name__),)
    for group in cli.app.registered_groups:
        assert isinstance(group.typer_instance, typer.Typer)
        for info in group.typer_instance.registered_commands:
            assert info.callback
            yield (str(group.name), info.name or info.callback.__name__)


COMMANDS = list(commands())
# Commands that work on a project.
PROJECTS = {
    "features", "add", "remove", "update", "preview", "diff", "doctor",
    "device new", "device check", "op add",
}  # fmt: skip


def test_features_are_those_of_the_catalog(torchsmith: Torchsmith, tmp_path: Path) -> None:
    rows = torchsmith("features", "--json", cwd=tmp_path).json
    assert [row["id"] for row in rows] == list(catalog.features())
    shown = torchsmith("features", cwd=tmp_path).out
    for feature in catalog.features().values():
        assert feature.title in shown


def test_features_lists_why_each_feature_is_enabled(torchsmith: Torchsmith, project: Path) -> None:
    rows = {row["id"]: row for row in torchsmith("features", "--json", cwd=project).json}
    assert (rows["amp"]["enabled"], rows["amp"]["because"]) == (True, "chosen")
    assert (rows["rng"]["enabled"], rows["rng"]["because"]) == (False, None)
    manifest = project / ".torchsmith.yml"
    more = "  storage: {requires: [rng], paths: [a]}\n  rng: {requires: [], paths: [b]}\n"
    manifest.write_text(
        manifest.read_text("utf-8").replace("parts:\n", "parts:\n" + more, 1), "utf-8"
    )
    rows = {row["id"]: row for row in torchsmith("features", "--json", cwd=project).json}
    assert rows["rng"]["because"] == "required by storage"
    listed = torchsmith("features", cwd=project / "csrc").out
    assert re.search(r"(?m)^(✓|\*) rng ", listed)
    assert re.search(r"(?m)^  ipc ", listed)
    shown = torchsmith("features", "rng", cwd=project / "csrc").out
    assert "in this project: yes, required by storage\n" in shown


def test_dtypes_are_those_of_the_catalog(torchsmith: Torchsmith) -> None:
    rows = torchsmith("dtypes", "--json").json
    assert [row["name"] for row in rows] == list(catalog.dtypes())
    assert [row["name"] for row in rows if row["required"]] == ["bool", "int64", "float32"]


def test_names_reports_the_problem_and_a_suggestion(torchsmith: Torchsmith) -> None:
    good = torchsmith("names", "acme", "--json")
    assert (good.status, good.json) == (0, [{"name": "acme", "works": True, "problem": None}])
    bad = torchsmith("names", "acme", "cuda")
    assert bad.status == 1
    assert "'cuda' is a device type of PyTorch's own: try 'my_cuda'" in bad.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_reports_json(
    command: tuple[str, ...], torchsmith: Torchsmith
) -> None:
    name = " ".join(command)
    done = torchsmith(*command, "--help").passed()
    assert f"Example: torchsmith {name} " in re.sub(r"\s+", " ", done.out) + " "
    options = set(re.findall(r"--[a-z-]+", done.out))
    assert "--json" in options
    # An option has the same name in all commands.
    assert ("--project" in options) == (name in PROJECTS)
    assert ("--to" in options) == (name in ("new", "update", "preview"))
    assert not options & {"--ref", "--vcs-ref", "--version", "--folder"}
    usage, _, _ = done.out.partition("\n\n")
    words = r"(\s+([A-Z]+(\.\.\.)?|\[[A-Z]+(\.\.\.)?\]))*"
    assert re.fullmatch(rf"Usage: torchsmith {name} \[OPTIONS\]{words}", usage), usage


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        (("add",), "add [OPTIONS] FEATURE..."),
        (("names",), "names [OPTIONS] NAME..."),
        (("diff",), "diff [OPTIONS] [FILE...]"),
        (("new",), "new [OPTIONS] [FOLDER]"),
        (("doctor",), "doctor [OPTIONS]"),
        (("op", "add"), "op add [OPTIONS] OPERATOR"),
    ],
)
def test_usage_lines_list_the_arguments(
    command: tuple[str, ...], usage: str, torchsmith: Torchsmith
) -> None:
    assert torchsmith(*command, "--help").out.startswith(f"Usage: torchsmith {usage}\n")


@pytest.mark.parametrize("command", [(), ("op",), ("device",)], ids=" ".join)
def test_help_of_commands_is_not_truncated(
    command: tuple[str, ...], torchsmith: Torchsmith
) -> None:
    assert "..." not in torchsmith(*command, "--help").out.partition("Commands:")[2]


@pytest.mark.parametrize("command", [(), *COMMANDS], ids=" ".join)
def test_help_fits_a_narrow_terminal(command: tuple[str, ...], torchsmith: Torchsmith) -> None:
    shown = torchsmith(*command, "-h", columns=40).passed().out
    assert max(map(len, shown.splitlines())) <= 40
    words = re.sub(r"-\s+", "-", shown).split()  # lines may end after a hyphen
    assert words == torchsmith(*command, "--help").out.split()


def test_a_narrow_table_splits_no_word(torchsmith: Torchsmith) -> None:
    shown = torchsmith("dtypes", columns=40).out
    assert {*catalog.dtypes()} <= {*shown.split()}
    assert max(map(len, shown.splitlines())) <= 40
    name = "a" * 60
    listed = torchsmith("names", name, "acme", columns=40).out
    assert f"name: {name}\n  works: no\n  because: '{name}' is longer than 50" in listed
    assert "name: acme\n  works: yes\n" in listed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_the_commands(shell: str) -> None:
    """The command is run for completions, as the script of --show-completion does."""
    code = "import sys; from torchsmith.cli import main; sys.argv = ['torchsmith']; main()"
    words = "torchsmith feat"
    done = run_python(
        "-c", code, _TORCHSMITH_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_ARGS=words,
        _TYPER_COMPLETE_FISH_ACTION="get-args", COMP_WORDS=words, COMP_CWORD="1",
    )  # fmt: skip
    assert "features" in done.out
