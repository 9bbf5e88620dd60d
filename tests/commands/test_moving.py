"""Edits to files that a template of a few lines moves, deletes or adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from commanding import Torchsmith
from rendering import commit, contents
from tiny import FIRST, LINES, MOVED, SECOND, conflicts, edited, files, release
from torchsmith.git import address


def test_edits_follow_a_file_that_moved(small: Path, torchsmith: Torchsmith) -> None:
    edited(small, "here.txt", "line 8\n", "line 8\nours\n")
    shown = torchsmith("preview", cwd=small)
    assert "your edits of here.txt follow it to there/it-is.txt" in shown.out
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    moved = SECOND["there/it-is.txt"].replace("line 8\n", "line 8\nours\n")
    assert files(small) == {**SECOND, "there/it-is.txt": moved}


def test_where_both_changed_a_line_of_it_both_are_shown(
    small: Path, torchsmith: Torchsmith
) -> None:
    edited(small, "here.txt", "line 2\n", "ours\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 1
    assert done.err.endswith("Resolve the conflicts in there/it-is.txt, then git add them.\n")
    text = (small / "there" / "it-is.txt").read_text("utf-8")
    assert "<<<<<<< yours\nours\n" in text
    assert "=======\nline two\n>>>>>>> template-v2.0.0\n" in text
    assert conflicts(small) == {"there/it-is.txt": "UU"}


def test_a_file_that_went_stays_with_its_edits(small: Path, torchsmith: Torchsmith) -> None:
    edited(small, "gone.txt", "line 8\n", "ours\n")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 1
    assert "! gone.txt  goes, but for your edits, which stay as a conflict" in done.out
    assert files(small) == {**SECOND, "gone.txt": LINES.replace("line 8\n", "ours\n")}
    assert conflicts(small) == {"gone.txt": "UD"}


def test_a_file_of_the_users_where_one_comes_is_a_conflict(
    small: Path, torchsmith: Torchsmith
) -> None:
    (small / "new.txt").write_text("ours\n", "utf-8")
    commit(small, "added")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 1
    assert "ours\n" in (small / "new.txt").read_text("utf-8")
    assert list(conflicts(small)) == ["new.txt"]


@pytest.mark.parametrize("ours", [b"a line of S\xf6hne\n", b"\0\1ours\n"], ids=["latin", "binary"])
def test_edits_that_are_not_utf_8_are_kept(
    small: Path, torchsmith: Torchsmith, ours: bytes
) -> None:
    (small / "here.txt").write_bytes(LINES.encode() + ours)
    commit(small, "edited")
    shown = torchsmith("preview", cwd=small)
    assert "your edits of here.txt follow it to there/it-is.txt" in shown.out
    done = torchsmith("update", "--yes", cwd=small)
    text = (small / "there" / "it-is.txt").read_bytes()
    assert text.endswith(ours)
    if b"\0" in ours:
        # Git merges no lines here: the user's file stays, as a conflict.
        assert (done.status, text) == (1, LINES.encode() + ours)
        assert conflicts(small) == {"there/it-is.txt": "UU"}
    else:
        assert (done.status, text) == (0, SECOND["there/it-is.txt"].encode() + ours)


def test_a_new_file_comes_though_the_user_ignores_its_name(
    small: Path, torchsmith: Torchsmith
) -> None:
    (small / ".git" / "info" / "exclude").write_text("new.txt\n", "utf-8")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    assert files(small) == SECOND


def test_back_to_an_older_release_too(small: Path, torchsmith: Torchsmith) -> None:
    assert torchsmith("update", "--yes", cwd=small).status == 0
    commit(small, "updated")
    edited(small, "there/it-is.txt", "line 8\n", "line 8\nours\n")
    done = torchsmith("update", "--yes", "--to", "v1.0.0", cwd=small)
    assert done.status == 0, done.err
    here = LINES.replace("line 8\n", "line 8\nours\n")
    assert files(small) == {**FIRST, "here.txt": here}


def test_a_file_that_git_ignores_is_not_written_over(small: Path, torchsmith: Torchsmith) -> None:
    (small / ".git" / "info" / "exclude").write_text("new.txt\n", "utf-8")
    (small / "new.txt").write_text("ours\n", "utf-8")
    before = contents(small)
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert "new.txt would be written over, which git knows nothing of: move it away" in done.err
    assert contents(small) == before


def test_what_the_template_did_meanwhile_waits(
    small: Path, template: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was shown is what happens."""

    def agree(_: str) -> bool:
        release(template, "v3.0.0", {**SECOND, "new.txt": "newer\n"}, MOVED)
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", agree)
    done = torchsmith("update", cwd=small)
    assert done.status == 0, done.err
    assert files(small) == SECOND
    assert "_commit: v2.0.0" in (small / ".copier-answers.yml").read_text("utf-8")


def test_after_an_update_that_was_cut_off_the_next_one_starts_anew(
    small: Path, torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half that was written has the answers of the new version in it."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    edited(small, "here.txt", "line 8\n", "line 8\nours\n")
    with monkeypatch.context() as patch:
        patch.setattr("torchsmith.git.stage", killed)
        patch.setattr("torchsmith.files._undo", lambda *_: None)
        assert torchsmith("update", "--yes", cwd=small).status == 130
    assert "_commit: v2.0.0" in (small / ".copier-answers.yml").read_text("utf-8")
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 0, done.err
    moved = SECOND["there/it-is.txt"].replace("line 8\n", "line 8\nours\n")
    assert files(small) == {**SECOND, "there/it-is.txt": moved}


def test_a_template_that_moved(
    small: Path, template: Path, torchsmith: Torchsmith, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    template.rename(elsewhere)
    done = torchsmith("update", "--yes", cwd=small)
    assert done.status == 2
    assert str(template) in done.err
    assert "torchsmith update --template" in done.err
    edited(small, "here.txt", "line 8\n", "ours\n")
    done = torchsmith("update", "--yes", "--template", str(elsewhere), cwd=small)
    assert done.status == 0, done.err
    assert f"_src_path: {elsewhere}" in (small / ".copier-answers.yml").read_text("utf-8")
    assert "ours\n" in (small / "there" / "it-is.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gh:acme/torchsmith", "https://github.com/acme/torchsmith.git"),
        ("gl:acme/torchsmith.git", "https://gitlab.com/acme/torchsmith.git"),
        ("git+https://example.com/t", "https://example.com/t"),
        ("/a/folder", "/a/folder"),
    ],
)
def test_short_addresses_of_copiers_are_written_out_for_git(source: str, expected: str) -> None:
    assert address(source) == expected
