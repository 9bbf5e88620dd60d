"""Whatever a user and the template do in whatever order, no edit is lost.

Hypothesis invents the histories: a project from one of six invented releases, which its user edits
and which is updated, taken back, extended, reduced and interrupted. After each command the project
is what a merge of each file by itself gives, done here from fresh renders.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
import typer
import yaml
from hypothesis import HealthCheck, note, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import invented
from commanding import Torchsmith
from dying import Dead, dying
from expected import ANSWERS, MANIFEST, Tree, carried, expectation
from invented import RELEASES, TAGS, Renders, public
from rendering import commit, contents, git
from torchsmith import update as merge
from torchsmith.commands import update
from torchsmith.errors import InputError

HISTORIES = 500
SHARDS = 10
STEPS = 3

# What a shard must have come to, or it proves nothing.
REACHED = {
    "update", "downgrade", "the same", "add", "remove", "killed: to be undone",
    "interrupted: as before", "conflicts: True", "conflicts: False", "edits followed a move: True",
    "edits in files that go: True", "changes followed a rename: True",
    "deleted files changed: True",
}  # fmt: skip

End = tuple[int, bool] | None


@pytest.fixture(scope="module")
def renders(six_releases: Path, shared: Path) -> Renders:
    """Renders of the invented template."""
    cache = shared / "invented-renders"
    cache.mkdir(exist_ok=True)
    return Renders(six_releases, cache)


class Histories(RuleBasedStateMachine):
    """A project and its user."""

    renders: Renders
    reached: Counter[str]

    def __init__(self) -> None:
        """Make room for a project."""
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(prefix="history-"))
        self.count = itertools.count(1)

    def teardown(self) -> None:
        """Remove the project."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    @initialize(
        tag=st.sampled_from(TAGS[:4]),
        features=st.sampled_from([["amp", "rng"], ["amp"], ["rng"], []]),
        nested=st.booleans(),
    )
    def begin(self, tag: str, features: list[str], nested: bool) -> None:
        """Render a project, alone in its repository or in a folder of a larger one."""
        self.repository = self.scratch / "repository"
        self.root = self.repository / "a folder" if nested else self.repository
        self.tag = tag
        self.beginning = f"{tag} {features} {nested}"
        answers = {"preset": "custom", "features": features}
        shutil.copytree(self.renders.folder(answers, tag), self.root)
        self.commit()

    @rule(seed=st.integers(0, 2**64 - 1))
    def step(self, seed: int) -> None:
        """Work a while, then run a command; what comes when is drawn evenly."""
        # Hypothesis likes some seeds better than others: what was before makes a difference too.
        draw = random.Random(f"{self.beginning} {next(self.count)} {seed}")
        for _ in range(draw.randint(1, 4)):
            work = (self.edit, self.add_file, self.delete, self.move)
            draw.choices(work, (7, 1, 1, 2))[0](draw)
        end = (
            draw.choice([(draw.randint(1, 40), False), (draw.randint(20, 80), True)])
            if draw.random() < 0.3
            else None
        )
        draw.choices((self.update, self.toggle), (3, 2))[0](draw, end)

    # What the user does.

    def edit(self, draw: random.Random) -> None:
        """Change a file."""
        path = self.choose(draw)
        if path is None:
            return
        lines = path.read_bytes().splitlines(keepends=True)
        line = draw.randint(0, len(lines))
        ours = f"ours {next(self.count)}".encode()
        how = draw.choice(
            ["insert", "replace", "delete", "latin", "binary", "endless", "crlf", "mode"]
        )
        if how == "replace":
            lines[line : line + 1] = [ours + b"\n"]
        elif how == "delete":
            lines[line : line + 1] = []
        elif how == "endless":
            lines.append(ours)
        else:
            if how == "mode":
                path.chmod(0o755)
            end = {
                "insert": b"\n",
                "mode": b"\n",
                "latin": b" S\xf6hne\n",
                "binary": b"\0\n",
                "crlf": b"\r\n",
            }
            lines.insert(line, ours + end[how])
        path.write_bytes(b"".join(lines))
        self.note(f"user: {how} in {path.name}")

    def add_file(self, draw: random.Random) -> None:
        """Add a file, perhaps where the template has one elsewhere in its history."""
        name = draw.choice([
            "own/x.txt", "src/mine.txt", "src/c.txt", "lib/b.txt", "doc/new.txt", "amp/mine.txt",
            "storage/keep.txt", "rng/seed.txt", "a name with spaces.txt", "\u00fc.txt",
        ])  # fmt: skip
        file = self.root / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(invented.lines("b", five=f"ours {next(self.count)}"))
            self.note(f"user: adds {name}")

    def delete(self, draw: random.Random) -> None:
        """Delete a file."""
        if path := self.choose(draw):
            path.unlink()
            self.note(f"user: deletes {path.name}")

    def move(self, draw: random.Random) -> None:
        """Move a file."""
        path = self.choose(draw)
        target = self.root / draw.choice(["own/moved.txt", "src/c.txt", "doc/new.txt", "new"])
        if path and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            self.note(f"user: moves {path.name} to {target.name}")

    # What the commands do.

    def update(self, draw: random.Random, end: End) -> None:
        """Go to a release, a newer or an older one, perhaps with another answer."""
        tag, discard = draw.choice(TAGS), draw.random() < 0.3
        self.note("update" if tag > self.tag else "the same" if tag == self.tag else "downgrade")
        question = "vendor" if "vendor" in RELEASES[tag].questions else "owner"
        change = {question: draw.choice(["Acme", "S\u00f6hne"])} if draw.random() < 0.3 else {}
        given = [f"{key}={value}" for key, value in change.items()]

        def run() -> None:
            update.update(
                self.root, to=tag, data=given, discard_edits=discard, yes=True, as_json=True
            )

        if not set(self.answers().get("features", [])) <= invented.takes(tag):
            self.refused(run)  # what the user chose is not dropped without a word
        else:
            self.merge(run, tag, change, discard, end)

    def toggle(self, draw: random.Random, end: End) -> None:
        """Add or remove a feature."""
        feature = draw.choice(["amp", "rng", "storage"])
        adding, discard = draw.random() < 0.5, draw.random() < 0.3
        release, chosen = RELEASES[self.tag], self.answers().get("features", [])
        if feature in invented.takes(self.tag) - {*release.features, *chosen}:
            return  # retired: old answers files may name it, nobody else wants it

        def run() -> None:
            if adding:
                update.add([feature], self.root, yes=True, as_json=True)
            else:
                update.remove([feature], self.root, discard, yes=True, as_json=True)

        users = {user for user, used in release.requires.items() if used == feature}
        if feature not in invented.takes(self.tag) if adding else users & set(chosen):
            self.refused(run)
            return
        self.note("add" if adding else "remove")
        on = {*chosen, feature} if adding else {*chosen} - {feature}
        change = {} if adding == (feature in self.enabled()) else {"features": sorted(on)}
        self.merge(run, self.tag, change, discard and not adding, end)

    # What holds.

    def refused(self, run: Callable[[], None]) -> None:
        """Run a command that cannot be done, and look that nothing is."""
        self.commit()
        with pytest.raises(InputError):
            self.run(run)
        assert git(self.root, "status", "--porcelain") == ""
        self.note("refused")

    def merge(
        self, run: Callable[[], None], tag: str, change: dict[str, Any], discard: bool, end: End
    ) -> None:
        """Run a command, perhaps interrupted before, and compare the project with a merge."""
        self.commit()
        mine = contents(self.root)
        answers = self.answers()
        done = self.interrupted(run, mine, *end) if end else None
        before = contents(self.renders.folder(answers, self.tag))
        after = contents(self.renders.folder({**carried(answers, tag), **change}, tag))
        expected = expectation((before, mine, after), (self.tag, tag), discard, self.scratch)
        report = self.run(run)
        actual = contents(self.root)
        assert done in (None, actual)
        assert sorted(report["conflicts"]) == sorted(expected.conflicts)
        assert sorted(actual) == sorted({**expected.files, **expected.conflicts})
        wrong = [path for path, text in expected.files.items() if actual[path] != text]
        assert wrong == [], [(mine.get(p), actual[p], expected.files[p]) for p in wrong]
        for path, lines in expected.conflicts.items():
            assert lines <= set(actual[path].splitlines()), path
        assert sorted(report["lost"]) == sorted(expected.lost)
        assert sorted(report["deleted"]) == sorted(expected.deleted)
        assert report["renamed"] == expected.renamed
        self.explained(report)
        assert (self.repository / ".git" / "torchsmith").exists() is False
        self.tag = tag
        self.resolve(report["conflicts"])
        self.note(f"conflicts: {bool(expected.conflicts)}")
        self.note(f"edits followed a move: {bool(report['moved'])}")
        self.note(f"edits in files that go: {bool(expected.lost)}")
        self.note(f"changes followed a rename: {bool(expected.renamed)}")
        self.note(f"deleted files changed: {bool(expected.deleted)}")

    def interrupted(
        self, run: Callable[[], None], mine: Tree, moment: int, killed: bool
    ) -> Tree | None:
        """End a command in the middle of its work on the project.

        Returns:
            The project's files if the work was done; otherwise it is undone, now or by the next
            command.
        """
        apply = merge.apply

        def cut_off(*arguments: Any) -> None:
            with dying(moment, None if killed else KeyboardInterrupt()):
                apply(*arguments)

        with patch.object(merge, "apply", cut_off), suppress(Dead, KeyboardInterrupt):
            self.run(run)
        if (self.repository / ".git" / "torchsmith" / "journal").exists():
            assert killed
            self.note("killed: to be undone")
            return None
        end = "killed" if killed else "interrupted"
        if (done := contents(self.root)) == mine:
            assert git(self.repository, "status", "--porcelain") == ""
            self.note(f"{end}: as before")
            return None
        self.note(f"{end}: done")
        git(self.repository, "reset", "--quiet", "--hard")
        git(self.repository, "clean", "--quiet", "-d", "--force")
        return done

    def run(self, run: Callable[[], None]) -> Any:
        """Run a command and return what it reports."""
        with redirect_stdout(io.StringIO()) as said:
            try:
                run()
                status = 0
            except typer.Exit as ended:
                status = ended.exit_code
        report = json.loads(said.getvalue())
        assert status == bool(report["conflicts"] and report["applied"])
        return report

    def explained(self, report: Any) -> None:
        """Check that git shows what the plan did, and nothing else."""
        listed = git(self.root, "-c", "status.relativePaths=true", "status", "--porcelain=v2",
                     "-z", "--untracked-files=all", "--no-renames", "--", ".")  # fmt: skip
        shown: dict[str, set[str]] = {kind: set() for kind in "?AMDu"}
        prefix = git(self.root, "rev-parse", "--show-prefix").strip("\n")
        for row in filter(None, listed.split("\0")):
            kind, *words = row.split(" ", {"1": 8, "u": 10, "?": 1}[row[0]])
            name = words[-1].removeprefix(prefix)
            if kind == "1":
                assert words[0][1] == ".", f"{name} is not staged"
            shown[words[0][0] if kind == "1" else kind].add(name)
        conflicts = set(report["conflicts"])
        assert shown["u"] == conflicts
        assert shown["?"] == set()
        assert shown["A"] == set(report["added"]) - conflicts
        assert shown["M"] == set(report["changed"]) - conflicts
        assert shown["D"] == set(report["removed"]) - conflicts

    def resolve(self, conflicts: list[str]) -> None:
        """Keep both sides of each conflict, as a patient user may."""
        marks = (b"<<<<<<< ", b"=======", b">>>>>>> ")
        for path in conflicts:
            lines = (self.root / path).read_bytes().splitlines(keepends=True)
            (self.root / path).write_bytes(b"".join(
                line for line in lines if not line.startswith(marks)
            ))  # fmt: skip

    def note(self, what: str) -> None:
        """Tell what happened, and count it."""
        note(what)
        self.reached[" ".join(what.split()[:2]) if what.startswith("user") else what] += 1

    # What the user knows.

    def answers(self) -> dict[str, Any]:
        """Return the project's answers."""
        return public(self.root / ANSWERS)

    def enabled(self) -> set[str]:
        """Return the features that are on."""
        manifest = yaml.safe_load((self.root / MANIFEST).read_text("utf-8"))
        return set(manifest["parts"]) - {"core"}

    def choose(self, draw: random.Random) -> Path | None:
        """Return one of the project's files, if it has any."""
        paths = sorted(set(contents(self.root)) - {ANSWERS, MANIFEST})
        return self.root / draw.choice(paths) if paths else None

    def commit(self) -> None:
        """Commit what the user did."""
        if not (self.repository / ".git").exists() or git(self.repository, "status", "--porcelain"):
            commit(self.repository, "by the user")


# One of them in the gate. The template is one of the tests' own.
@pytest.mark.parametrize(
    "shard", [0, *(pytest.param(each, marks=pytest.mark.nightly) for each in range(1, SHARDS))]
)
def test_no_history_loses_an_edit(shard: int, renders: Renders) -> None:
    class Shard(Histories):
        pass

    Shard.renders, Shard.reached = renders, Counter()
    with patch.object(merge, "renders", renders):
        run_state_machine_as_test(
            seed(shard)(Shard),
            settings=settings(
                max_examples=HISTORIES // SHARDS,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
    print(dict(Shard.reached))
    assert set(Shard.reached) >= REACHED


def test_an_answer_that_a_version_does_not_take_is_not_dropped(
    renders: Renders, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    project = tmp_path / "project"
    shutil.copytree(renders.folder({"preset": "custom", "features": ["storage"]}, TAGS[2]), project)
    commit(project, "rendered")
    assert torchsmith("update", "--yes", "--to", TAGS[1], cwd=project).refused() == (
        "v2.0.0 of the template does not take your features=['storage']: change it first, "
        "with torchsmith update --to current --data features=..."
    )
    assert git(project, "status", "--porcelain") == ""
