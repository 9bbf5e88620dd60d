"""Random changes by a user and by the template lose no edit.

A project of one of six invented releases is edited, updated, downgraded, extended and reduced at
random. After each command, git's index equals the result of `git merge` with two renders of
copier's, and the project has each line that the user wrote.
"""

from __future__ import annotations

import logging
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import copier
import pytest

import plain_git
from commanding import Torchsmith
from invented import FEATURES, MOVED, TAGS, takes
from rendering import answers_in, commit, contents, git

SHARDS = 10
HISTORIES = 50
FEW = 20
STEPS = 3
LOG = logging.getLogger(__name__)

# The events that must occur in each shard.
REACHED = {"update", "downgrade", "the same", "add", "remove", "refused", "merged by git",
           "conflicts", "moved", "renamed", "lost", "deleted"}  # fmt: skip


class Renders:
    """Copier's renders of a template, each made once."""

    def __init__(self, template: Path, folder: Path) -> None:
        """Render ``template`` into folders in ``folder``."""
        self.template = template
        self.folder = folder

    def __call__(self, tag: str, answers: dict[str, Any]) -> Path:
        """Return a folder that tests must not change."""
        words = ("_".join(answer) if isinstance(answer, list) else answer
                 for _, answer in sorted(answers.items()))  # fmt: skip
        folder = self.folder / "-".join([tag, *words])
        if not folder.exists():
            copier.run_copy(str(self.template), folder, data=answers, vcs_ref=tag, defaults=True,
                            quiet=True, settings=copier.Settings())  # fmt: skip
        return folder


class History:
    """A project and its user."""

    def __init__(
        self, draw: random.Random, folder: Path, renders: Renders, torchsmith: Torchsmith
    ) -> None:
        """Render a project, alone in its repository or in a folder of a larger one."""
        self.draw = draw
        self.folder = folder
        self.renders = renders
        self.torchsmith = torchsmith
        self.reached: Counter[str] = Counter()
        self.repository = folder / "repository"
        self.root = draw.choice([self.repository, self.repository / "a folder"])
        self.tag = draw.choice(TAGS[:4])
        features = [id for id in FEATURES[self.tag] if draw.random() < 0.7]
        LOG.warning("a project of %s with %s", self.tag, features)
        shutil.copytree(renders(self.tag, {"preset": "custom", "features": features}), self.root)
        commit(self.repository, "rendered")

    def step(self) -> None:
        """Make some edits, then run a command."""
        for _ in range(self.draw.randint(1, 4)):
            work = (self.edit, self.add_file, self.delete, self.move)
            self.draw.choices(work, (7, 1, 1, 2))[0]()
        if git(self.repository, "status", "--porcelain"):
            commit(self.repository, "by the user")
        self.draw.choices((self.update, self.toggle), (3, 2))[0]()

    # Actions of the user.

    def edit(self) -> None:
        """Change a file."""
        path = self.choose()
        lines = path.read_bytes().splitlines(keepends=True)
        line = self.draw.randint(0, len(lines))
        ends = {"insert": b"\n", "mode": b"\n", "latin": b" S\xf6hne\n", "binary": b"\0\n",
                "crlf": b"\r\n", "replace": b"\n", "endless": b"", "delete": b""}  # fmt: skip
        how = self.draw.choice(list(ends))
        if how == "mode":
            path.chmod(0o755)
        if how in ("replace", "delete"):
            lines[line : line + 1] = []
        if how != "delete":
            place = len(lines) if how == "endless" else line
            lines.insert(place, self.ours() + ends[how])
        path.write_bytes(b"".join(lines))
        LOG.warning("the user: %s in %s", how, path)

    def add_file(self) -> None:
        """Add a file, possibly at a path that the template has in another release."""
        name = self.draw.choice([
            "own/x.txt", "src/mine.txt", "src/c.txt", "lib/b.txt", "doc/new.txt", "amp/mine.txt",
            "storage/keep.txt", "rng/seed.txt", "a name with spaces.txt", "\u00fc.txt",
        ])  # fmt: skip
        if not (self.root / name).exists():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(self.ours() + b"\n")
            LOG.warning("the user adds %s", name)

    def delete(self) -> None:
        """Delete a file."""
        path = self.choose()
        path.unlink()
        LOG.warning("the user deletes %s", path)

    def move(self) -> None:
        """Move a file."""
        path = self.choose()
        target = self.root / self.draw.choice(["own/moved.txt", "src/c.txt", "doc/new.txt", "new"])
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            LOG.warning("the user moves %s to %s", path, target)

    def choose(self) -> Path:
        """Return one of the project's files."""
        return self.root / self.draw.choice([p for p in contents(self.root) if p[0] != "."])

    def ours(self) -> bytes:
        """Return a new, unique line."""
        return f"ours {self.draw.getrandbits(64):016x}".encode()

    # Commands.

    def update(self) -> None:
        """Update to a newer or an older release, possibly with another answer."""
        tag = self.draw.choice(TAGS)
        question = "owner" if tag < TAGS[2] else "vendor"
        change = {question: self.draw.choice(["Acme", "S\u00f6hne"])}
        change = change if self.draw.random() < 0.3 else {}
        given = [word for key, value in change.items() for word in ("-d", f"{key}={value}")]
        arguments = ("update", "--to", tag, *given)
        if not self.chosen() <= takes(tag):
            self.refused(arguments)  # a user's answer is not dropped silently
        else:
            self.note(
                "update" if tag > self.tag else "the same" if tag == self.tag else "downgrade"
            )
            self.run(arguments, tag, change)

    def toggle(self) -> None:
        """Add or remove a feature."""
        feature = self.draw.choice(["amp", "rng", "storage"])
        if feature not in FEATURES[self.tag]:
            return
        command, on = "remove", self.chosen() - {feature}
        if self.draw.random() < 0.5:
            command, on = "add", {*self.chosen(), feature}
        self.note(command)
        change = {"features": sorted(on)} if on != self.chosen() else {}
        self.run((command, feature), self.tag, change)

    def chosen(self) -> set[str]:
        """Return the features that the user chose."""
        return set(answers_in(self.root)["features"])

    def refused(self, arguments: tuple[str, ...]) -> None:
        """Run a command that must be refused, and check that nothing changes."""
        self.torchsmith(*arguments, "--yes", cwd=self.root).refused("does not take your features")
        assert git(self.root, "status", "--porcelain") == ""
        self.note("refused")

    def run(self, arguments: tuple[str, ...], tag: str, change: dict[str, Any]) -> None:
        """Run a command, and compare the project with git's merge."""
        discard = arguments[0] != "add" and self.draw.random() < 0.3
        arguments = (*arguments, "--yes", "--json", *(["--discard-edits"] if discard else []))
        answers = {k: v for k, v in answers_in(self.root).items() if k[0] != "_"}
        before, after = self.renders(self.tag, answers), self.renders(tag, {**answers, **change})
        mine = contents(self.root)
        merged = plain_git.Merge(self.folder / "shadow", before, self.root).result(after)
        done = self.torchsmith(*arguments, cwd=self.root)
        report = done.json
        assert done.status == bool(report["conflicts"]), done
        actual = plain_git.index(self.root)
        assert plain_git.differing(actual, merged)[:9] == []
        if actual == merged:
            self.note("merged by git")
        gone = report["lost"] if discard else []
        lines = re.findall(b"ours [0-9a-f]{16}", b"".join(
            text for path, text in mine.items() if path not in gone
        ))  # fmt: skip
        there = b"".join(contents(self.root).values())
        assert [line for line in lines if line not in there] == []
        self.came(before, after)
        self.explained(report)
        for what in REACHED & report.keys():
            self.reached[what] += bool(report[what])
        self.tag = tag
        self.resolve(report["conflicts"])

    # Checks.

    def came(self, before: Path, after: Path) -> None:
        """Check that each new template file is in the project, possibly with a conflict."""
        there, new = contents(self.root), contents(after)
        # The user may have renamed or deleted files that move.
        moved = {path for moves in MOVED for move in moves.items() for path in move}
        for path in new.keys() - contents(before).keys() - moved:
            if b"\0" not in there[path]:
                assert set(new[path].splitlines()) <= set(there[path].splitlines()), path

    def explained(self, report: dict[str, Any]) -> None:
        """Check that git shows the changes of the plan, and no others."""
        listed = git(self.root, "-c", "status.relativePaths=true", "status", "--porcelain", "-z",
                     "--untracked-files=all", "--no-renames", "--", ".")  # fmt: skip
        prefix = git(self.root, "rev-parse", "--show-prefix").strip("\n")
        shown = [(row[:2], row[3:].removeprefix(prefix)) for row in listed.split("\0")[:-1]]
        conflicts = set(report["conflicts"])
        assert {path for state, path in shown if state not in ("A ", "M ", "D ")} == conflicts
        for state, key in (("A ", "added"), ("M ", "changed"), ("D ", "removed")):
            paths = {path for each, path in shown if each == state}
            assert paths == set(report[key]) - conflicts, key

    def resolve(self, conflicts: list[str]) -> None:
        """Resolve each conflict by keeping both sides."""
        marks = (b"<<<<<<< ", b"=======", b">>>>>>> ")
        for path in conflicts:
            lines = (self.root / path).read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if not line.startswith(marks)]
            (self.root / path).write_bytes(b"".join(kept))

    def note(self, what: str) -> None:
        """Record an event, and count it."""
        LOG.warning(what)
        self.reached[what] += 1


# The gate runs the first histories of one shard. The tests write the template.
@pytest.mark.parametrize(
    ("shard", "histories"),
    [
        (0, FEW),
        *(pytest.param(each, HISTORIES, marks=pytest.mark.nightly) for each in range(SHARDS)),
    ],
)
def test_random_histories_lose_no_edit(
    shard: int, histories: int, six_releases: Path, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    reached: Counter[str] = Counter()
    for number in range(histories):
        folder = tmp_path / str(number)
        draw = random.Random(f"{shard} {number}")
        history = History(draw, folder, Renders(six_releases, tmp_path), torchsmith)
        for _ in range(STEPS):
            history.step()
        reached += history.reached
        shutil.rmtree(folder)
    LOG.warning(reached)
    assert reached.keys() >= REACHED


def test_an_update_to_a_version_without_a_chosen_feature_is_refused(
    six_releases: Path, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    project = tmp_path / "project"
    answers = {"preset": "custom", "features": ["storage"]}
    shutil.copytree(Renders(six_releases, tmp_path)(TAGS[2], answers), project)
    commit(project, "rendered")
    assert torchsmith("update", "--yes", "--to", TAGS[1], cwd=project).refused() == (
        "v2.0.0 of the template does not take your features=['storage']: change it first, "
        "with torchsmith update --to current -d features=..."
    )
    assert git(project, "status", "--porcelain") == ""
