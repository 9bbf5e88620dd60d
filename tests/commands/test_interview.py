"""The questions of `torchsmith new` at a terminal, and their layout at any width."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rendering import Renderer, answers_in, git
from terminal import Terminal
from torchsmith import catalog

DOWN, UP, ENTER, ALL = "\x1b[B", "\x1b[A", "\r", "\x15"


def test_new_renders_a_project_from_three_answers(tmp_path: Path, render: Renderer) -> None:
    terminal = Terminal("new", "--template", str(render.template), cwd=tmp_path, columns=120)
    terminal.answer("Device name", f"{ALL}ac")
    terminal.answer("package torch_ac", f"{ALL}acme{ENTER}")
    terminal.answer("Folder", ENTER)
    terminal.answer("Purpose", DOWN + ENTER)
    terminal.answer("More options", ENTER)
    shown = "\n".join(terminal.answer("Write it?", ENTER))
    size = catalog.sizes()["presets"]["minimal"]
    assert f"torch-acme: {size['files']} files, {size['lines']:,} lines" in shown
    assert "torchsmith new torch-acme --defaults -d backend_name=acme -d preset=minimal" in shown
    terminal.answer("first commit", ENTER)
    terminal.wait_for("docs/bring-up.md")
    assert terminal.end() == 0
    found = answers_in(tmp_path / "torch-acme")
    assert (found["backend_name"], found["features"]) == ("acme", [])
    assert git(tmp_path / "torch-acme", "log", "--format=%s") == "Render torch-acme\n"


def test_more_options_are_remembered_and_a_reserved_name_gets_a_suggestion(
    tmp_path: Path, render: Renderer
) -> None:
    settings = tmp_path / "settings.yml"
    terminal = Terminal(
        *("new", "torch-cuda", "--template", str(render.template)),
        cwd=tmp_path,
        variables={"COPIER_SETTINGS_PATH": str(settings)},
    )
    terminal.answer("Device name", ENTER)
    terminal.answer("Purpose", UP + ENTER)
    terminal.answer("Features", "amp ")
    terminal.answer("amp", ENTER)
    terminal.answer("More options", "y")
    for question, keys in {
        "in prose": ENTER,
        "Maker": f"{ALL}Ac me{ENTER}",
        "in one line": ENTER,
        "Licence": DOWN * 2 + ENTER,
        "Element types": ENTER,
        "Default device": ENTER,
        "integration": ENTER,
        "Write it?": "y",
        "first commit": f"n{ENTER}",
    }.items():
        terminal.answer(question, keys)
    assert terminal.end() == 0
    found = answers_in(tmp_path / "torch-cuda")
    assert {key: found[key] for key in ("backend_name", "vendor", "license", "features")} == {
        "backend_name": "my_cuda", "vendor": "Ac me", "license": "mit", "features": ["amp"],
    }  # fmt: skip
    assert settings.read_text() == "defaults:\n  vendor: Ac me\n  license: mit\n"


def test_a_given_name_is_not_asked_for(tmp_path: Path, render: Renderer) -> None:
    arguments = ("new", "--template", str(render.template), "-d", "backend_name=acme")
    terminal = Terminal(*arguments, cwd=tmp_path)
    shown = terminal.answer("Folder: torch-acme", "\x03")
    assert "Device name" not in "\n".join(shown)
    assert terminal.end() == 130


@pytest.mark.parametrize(("end", "status"), [("\x03", 130), ("n", 0)])
def test_nothing_is_written_without_confirmation(
    end: str, status: int, tmp_path: Path, render: Renderer
) -> None:
    terminal = Terminal("new", "torch-acme", "--template", str(render.template), cwd=tmp_path)
    terminal.answer("Device name", ENTER)
    terminal.answer("Purpose", ENTER)
    terminal.answer("More options", ENTER)
    terminal.answer("Write it?", end)
    assert terminal.end() == status
    assert not list(tmp_path.iterdir())


def words_of(lines: list[str]) -> set[str]:
    """Return the words on a screen, without those of one letter."""
    return {word for line in lines for word in re.findall(r"[a-zA-Z_]{2,}", line)}


def test_no_word_is_cut_at_any_width(tmp_path: Path, render: Renderer) -> None:
    """Each word on a narrow screen is also on a wide screen, which splits no word."""

    def dialogue(columns: int) -> list[list[str]]:
        terminal = Terminal(
            *("new", "torch-acme", "--template", str(render.template)),
            cwd=tmp_path,
            columns=columns,
        )
        shown = [
            terminal.answer("acme", f"{ALL}Acme2{ENTER}"),
            terminal.answer("'acme'", f"{ALL}acme{ENTER}"),
            terminal.answer("Description", DOWN),
            terminal.answer("starter", UP * 2 + ENTER),
            terminal.answer("Operators", DOWN * 6),
            terminal.answer("sampling", " " + ENTER),
            terminal.answer("More options", "y"),
            terminal.answer("in prose", ENTER),
            terminal.answer("Maker", ENTER),
            terminal.answer("Description of", ENTER),
            terminal.answer("Apache", ENTER),
            terminal.answer("bool: truth", f" {ENTER}"),
            terminal.answer("dtypes lacks bool", f" {UP * 3}"),
            terminal.answer("exponent", ENTER),
            terminal.answer("Default device", "\x03"),
        ]
        terminal.end()
        return shown

    whole = dialogue(300)
    for columns in (40, 80, 120):
        for narrow, wide in zip(dialogue(columns), whole, strict=True):
            assert words_of(narrow) <= words_of(wide) | {"Description"}
        assert max(map(len, narrow)) < columns, narrow
