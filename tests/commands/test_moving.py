"""Files that a small template moves, deletes or adds, and that its users have changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from commanding import Torchsmith
from rendering import commit, contents, git
from tiny import LINES, MOVED, SECOND, conflicts, edited, files, release
from torchsmith.files import swap
from torchsmith.git import address


def with_ours(text: str) -> str:
    return text.replace("line 8\n", "line 8\nours\n")


def both(text: str) -> str:
    """Return a text with both sides of the line that the template changed."""
    conflict = "<<<<<<< yours\nours\n=======\nline two\n>>>>>>> template-v2.0.0\n"
    return text.replace("line 2\n", conflict)


def beside(text: str) -> str:
    """Return a conflict of a template file and a user's file at the same path."""
    return f"<<<<<<< yours\nours\n=======\n{text}>>>>>>> template-v2.0.0\n"


def do(project: Path, deed: str) -> None:
    """Make a user's change, and commit it."""
    what, *paths = deed.split()
    if what == "insert":
        edited(project, paths[0], "line 8\n", "line 8\nours\n")
    elif what == "replace":
        edited(project, paths[0], "line 2\n", "ours\n")
    elif what == "write":
        (project / paths[0]).parent.mkdir(exist_ok=True)
        (project / paths[0]).write_text("ours\n", "utf-8")
        commit(project, deed)
    elif what == "ignore":
        (project / ".git" / "info" / "exclude").write_text(f"{paths[0]}\n", "utf-8")
    else:
        git(project, what, *paths)
        commit(project, deed)


RENAMED = "you renamed kept.txt; own.txt takes what the template changed in it"
# The user's changes to the first release, the output of an update to the second, the files that
# differ from the second, and those in conflict.
CASES: list[tuple[list[str], str, dict[str, str | None], dict[str, str]]] = [
    (["insert here.txt"], "your edits of here.txt follow it to there/it-is.txt",
     {"there/it-is.txt": with_ours(SECOND["there/it-is.txt"])}, {}),
    (["replace here.txt"], "", {"there/it-is.txt": both(LINES)}, {"there/it-is.txt": "UU"}),
    (["insert gone.txt"], "! gone.txt  is removed; your edits stay as a conflict",
     {"gone.txt": with_ours(LINES)}, {"gone.txt": "UD"}),
    (["ignore new.txt"], "", {}, {}),
    (["mv kept.txt own.txt"], RENAMED, {"kept.txt": None, "own.txt": SECOND["kept.txt"]}, {}),
    (["mv kept.txt own.txt", "insert own.txt"], RENAMED,
     {"kept.txt": None, "own.txt": with_ours(SECOND["kept.txt"])}, {}),
    (["mv kept.txt own.txt", "replace own.txt"], "", {"kept.txt": None, "own.txt": both(LINES)},
     {"own.txt": "UU"}),
    (["mv here.txt own.txt"], "",
     {"there/it-is.txt": None, "own.txt": SECOND["there/it-is.txt"]}, {}),
    (["mv gone.txt own.txt"], "own.txt was gone.txt, which the template no longer has",
     {"own.txt": LINES}, {}),
    (["rm kept.txt"], "you deleted kept.txt, which the template changed: it stays deleted",
     {"kept.txt": None}, {}),
    (["rm here.txt"], "you deleted there/it-is.txt, which the template changed: it stays deleted",
     {"there/it-is.txt": None}, {}),
    (["write new.txt"], "", {"new.txt": beside("of the template\n")}, {"new.txt": "AA"}),
    (["write there/it-is.txt"], "", {"there/it-is.txt": beside(SECOND["there/it-is.txt"])},
     {"there/it-is.txt": "AA"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("deeds", "says", "differing", "conflicting"), CASES, ids=[", ".join(case[0]) for case in CASES]
)
def test_update_keeps_or_reports_each_user_change(
    deeds: list[str], says: str, differing: dict[str, str | None], conflicting: dict[str, str],
    small: Path, torchsmith: Torchsmith,
) -> None:  # fmt: skip
    for deed in deeds:
        do(small, deed)
    assert says in torchsmith("preview", cwd=small).out
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == bool(conflicting), done.err
    assert says in done.out
    if removed := [path for path, state in conflicting.items() if state == "UD"]:
        assert done.err == f"Move your edits of {removed[0]} to other files, then git rm them.\n"
    elif conflicting:
        assert (
            done.err == f"Resolve the conflicts in {', '.join(conflicting)}, then git add them.\n"
        )
    else:
        assert done.err.endswith(
            "Done, and staged. Read `git diff --cached`, rebuild, run pytest, commit.\n"
        )
    expected = {**SECOND, **differing}
    assert files(small) == {path: text for path, text in expected.items() if text is not None}
    assert conflicts(small) == conflicting


def test_a_deleted_file_is_not_named_if_the_template_did_not_change_it(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    do(small, "rm kept.txt")
    torchsmith("update", "--yes", cwd=small).passed()
    commit(small, "updated")
    release(template, "v3.0.0", {**SECOND, "newer.txt": "newer\n"}, MOVED)
    done = torchsmith("update", "--yes", cwd=small).passed()
    assert "kept.txt" not in done.out


def test_renaming_the_backend_names_files_that_the_user_renamed(
    template: Path, small: Path, torchsmith: Torchsmith
) -> None:
    page, other = "torch_{{ backend_name }}/page.txt", "torch_{{ backend_name }}/other.txt"
    release(template, "v3.0.0", {page: "{{ backend_name }}\n" + LINES, other: LINES}, {})
    torchsmith("update", "--yes", cwd=small).passed()
    commit(small, "updated")
    do(small, "mv torch_foo/page.txt torch_foo/ours.txt")
    do(small, "mv torch_foo/other.txt torch_foo/our-other.txt")
    rename = ("update", "--to", "current", "-d", "backend_name=bar", "--yes")
    said = torchsmith(*rename, cwd=small).passed().out
    assert re.findall(r"you renamed .*", said) == [
        "you renamed torch_foo/page.txt; torch_bar/ours.txt takes what the template changed in it"
    ]
    assert files(small) == {
        "torch_bar/ours.txt": f"bar\n{LINES}", "torch_bar/our-other.txt": LINES,
    }  # fmt: skip


def test_a_preview_shows_edits_that_are_not_utf_8(small: Path, torchsmith: Torchsmith) -> None:
    text = LINES.encode().replace(b"line 4\n", b"line 4\na line of S\xf6hne\n")
    (small / "here.txt").write_bytes(text)
    commit(small, "edited")
    shown = torchsmith("preview", cwd=small).passed()
    assert "your edits of here.txt follow it to there/it-is.txt" in shown.out


def test_a_file_that_git_ignores_is_not_overwritten(small: Path, torchsmith: Torchsmith) -> None:
    (small / ".git" / "info" / "exclude").write_text("new.txt\n", "utf-8")
    (small / "new.txt").write_text("ours\n", "utf-8")
    before = contents(small)
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert "new.txt would be overwritten, and git does not track it: move it away" in done.err
    assert contents(small) == before


def test_a_file_that_git_ignores_is_not_replaced_by_a_folder(
    small: Path, torchsmith: Torchsmith
) -> None:
    (small / ".git" / "info" / "exclude").write_text("there\n", "utf-8")
    (small / "there").write_text("ours\n", "utf-8")
    before = contents(small)
    done = torchsmith("update", "--yes", cwd=small)
    assert "there would be overwritten, and git does not track it: move it away" in done.err
    assert (done.status, contents(small)) == (2, before)


def test_a_device_copied_from_one_that_the_user_deletes_is_not_changed(
    small: Path, template: Path, torchsmith: Torchsmith
) -> None:
    starter = "device/starter/runtime.cpp"
    release(template, "v3.0.0", {starter: LINES, "device/other/runtime.cpp": "other\n"}, {})
    torchsmith("update", "--yes", cwd=small).passed()
    commit(small, "updated")
    do(small, "mv device/starter device/acme")
    release(template, "v4.0.0", {starter: LINES.replace("line 2", "line two")}, {})
    torchsmith("update", "--yes", cwd=small).passed()
    assert files(small) == {"device/acme/runtime.cpp": LINES}


def test_a_change_while_an_update_waits_for_another_command_stops_it(
    small: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap_later(*arguments: Any, **named: Any) -> None:
        (small / "kept.txt").write_text("ours\n")
        swap(*arguments, **named)

    monkeypatch.setattr("torchsmith.update.swap", swap_later)
    done = torchsmith("update", "--yes", cwd=small)
    assert "has uncommitted changes (kept.txt): commit them first" in done.err
    assert (done.status, git(small, "status", "--porcelain")) == (2, " M kept.txt\n")


def test_the_release_of_a_commit_is_recorded_and_no_other_tag(
    small: Path, template: Path, torchsmith: Torchsmith
) -> None:
    git(template, "tag", "v2", "v2.0.0")
    torchsmith("update", "--yes", "--to", "v2.0.0", cwd=small).passed()
    assert "_commit: v2.0.0\n" in (small / ".copier-answers.yml").read_text("utf-8")


def test_a_release_during_the_confirmation_is_not_merged(
    small: Path, template: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merge applies the plan that the user confirmed."""

    def agree(_: str) -> bool:
        release(template, "v3.0.0", {**SECOND, "new.txt": "newer\n"}, MOVED)
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", agree)
    torchsmith("update", cwd=small).passed()
    assert files(small) == SECOND
    assert "_commit: v2.0.0" in (small / ".copier-answers.yml").read_text("utf-8")


def test_a_template_that_moved_is_found_and_recorded(
    small: Path, template: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    template.rename(tmp_path / "elsewhere")
    done = torchsmith("update", "--yes", cwd=small)
    done.refused(str(template), "torchsmith update --template")
    torchsmith("update", "--yes", "--template", "../elsewhere", cwd=small).passed()
    assert f"_src_path: {tmp_path / 'elsewhere'}\n" in (small / ".copier-answers.yml").read_text()
    assert files(small) == SECOND
    commit(small, "updated")
    done = torchsmith("update", "--template", "../nowhere", "--yes", cwd=small)
    done.refused("there is no template in '../nowhere'")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gh:acme/torchsmith", "https://github.com/acme/torchsmith.git"),
        ("gl:acme/torchsmith.git", "https://gitlab.com/acme/torchsmith.git"),
        ("git+https://example.com/t", "https://example.com/t"),
        ("/a/folder", "/a/folder"),
    ],
)
def test_short_template_addresses_are_expanded_for_git(source: str, expected: str) -> None:
    assert address(source) == expected


def test_a_relative_template_is_refused_with_a_fix(
    small: Path, template: Path, torchsmith: Torchsmith
) -> None:
    edited(small, ".copier-answers.yml", str(template), "../template")
    for command in (("update", "--yes"), ("diff",)):
        done = torchsmith(*command, cwd=small)
        done.refused("_src_path of the project is '../template'", "update --template PATH")
    torchsmith("update", "--yes", "--template", "../template", cwd=small).passed()
    assert files(small) == SECOND
