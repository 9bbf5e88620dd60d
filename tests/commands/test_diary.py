"""Two years of a project, entry by entry, with changes by its users and by the template.

After each command, the project equals the result of `git merge` with two renders, and it has each
line that a user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import yaml

import plain_git
from commanding import Ended, Torchsmith
from rendering import Renderer, answers_in, commit, contents, git
from torchsmith import catalog
from torchsmith.render import Job
from torchsmith.render import render as render_by_us

FEATURES = ("amp", "rng", "storage")


class Template:
    """A copy of the template, with its releases."""

    def __init__(self, folder: Path, present: Path) -> None:
        """Publish v1.0.0: the present template, without the features that the test does not add."""
        git(folder.parent, "clone", "--quiet", str(present), str(folder))
        self.folder = folder
        self.files = folder / "template"
        unused = catalog.features().keys() - catalog.closure(frozenset(FEATURES))
        for path in [*self.files.rglob("*")]:
            parts = path.relative_to(self.files).as_posix().removesuffix(".jinja")
            owner = catalog.owner(PurePosixPath(parts), catalog.places("{= package =}"))
            if owner in unused and path.is_file():
                path.unlink()
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--amend", "--no-edit")
        git(folder, "tag", "--force", "v1.0.0")

    def publish(self, tag: str) -> None:
        """Commit a release."""
        commit(self.folder, tag, tag=tag)

    def move(self, old: str, new: str, since: str) -> None:
        """Move a file, and list the move for existing projects."""
        (self.files / f"{old}.jinja").rename(self.files / f"{new}.jinja")
        row = {"from": old, "to": new, "part": "core", "since": since}
        listed = yaml.safe_dump([row], default_flow_style=True)
        change(self.folder / "generator" / "catalog" / "moved.yml",
               lambda text: text.replace("  default: []\n", f"  default: {listed}"))  # fmt: skip


class Person:
    """A user with a clone of the project."""

    def __init__(self, project: Path, torchsmith: Torchsmith, wrote: set[str]) -> None:
        """Start with the current project.

        Args:
            project: The clone.
            torchsmith: The command.
            wrote: The lines that people have written so far.
        """
        self.project = project
        self.torchsmith = torchsmith
        self.wrote = set(wrote)

    def write(self, path: str, line: str) -> None:
        """Add a line to the end of a file, which may be new."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_bytes() if file.exists() else b""
        file.write_bytes(before + line.encode() + b"\n")
        self.wrote.add(line)
        commit(self.project, f"Edit {path}")

    def rewrite(self, path: str, number: int, line: str) -> None:
        """Replace a line of a file."""
        change(self.project / path, lambda text: with_line(text, number, line))
        self.wrote.add(line)
        commit(self.project, f"Edit {path}")

    def run(self, *arguments: str, renamed: bool = False) -> Ended:
        """Run a command that merges, and compare the project with git's merge.

        Args:
            arguments: The arguments of the command.
            renamed: Whether the command renames the folders of the backend.
        """
        merge = plain_git.Merge(self.project.parent / "shadow", self.render(), self.project)
        done = self.torchsmith(*arguments, "--yes", cwd=self.project)
        assert done.status in (0, 1), done
        merged = merge.result(self.render(), directory_renames=renamed)
        assert plain_git.differing(plain_git.index(self.project), merged)[:9] == []
        self.keeps_what_was_written()
        return done

    def take(self, *arguments: str, renamed: bool = False) -> str:
        """Run a command that merges without a conflict, and commit."""
        done = self.run(*arguments, renamed=renamed).passed()
        self.commit(" ".join(arguments))
        return done.out

    def commit(self, message: str) -> None:
        """Commit what is staged, which must be all changes."""
        git(self.project, "commit", "--quiet", "--message", message)
        assert git(self.project, "status", "--porcelain") == ""

    def render(self) -> Path:
        """Return a render of the project's answers, which tests must not change."""
        answers = answers_in(self.project)
        source, version = answers["_src_path"], answers["_commit"]
        given = {key: value for key, value in answers.items() if key[0] != "_"}
        name = f"{version} {given['backend_name']} {' '.join(given.get('features', ()))}"
        folder = Path(source).parent / "renders" / name
        if not folder.exists():
            render_by_us(folder, Job(given, source, version))
        return folder

    def keeps_what_was_written(self) -> None:
        """Check that each line that a user wrote is in the project."""
        text = b"\n".join(contents(self.project).values()).decode("utf-8", "replace")
        assert {line for line in self.wrote if line not in text} == set()

    def edits(self) -> set[str]:
        """Return the lines in which the template's files differ from the template."""
        shown = self.torchsmith("diff", cwd=self.project).passed().out
        return set(re.findall(r"(?m)^[+](?![+][+] )(.+)$", shown))


def change(file: Path, how: Callable[[str], str]) -> None:
    """Change a file's text."""
    before = file.read_text("utf-8")
    after = how(before)
    assert after != before, file
    file.write_text(after, "utf-8")


def with_line(text: str, number: int, line: str) -> str:
    """Return a text with one line replaced; lines are counted from 1."""
    lines = text.splitlines(keepends=True)
    lines[number - 1] = f"{line}\n"
    return "".join(lines)


def test_updates_keep_edits_over_two_years_of_a_project(
    render: Renderer, tmp_path: Path, torchsmith: Torchsmith
) -> None:
    template = Template(tmp_path / "template", render.template)

    # January 2027. Acme renders a project for its chip, and begins a device.
    (tmp_path / "acme").mkdir()
    torchsmith("new", "torch-acme", "--defaults", "--git", "-d", "preset=minimal", "--template",
               str(template.folder), cwd=tmp_path / "acme").passed()  # fmt: skip
    acme = Person(tmp_path / "acme" / "torch-acme", torchsmith, set())
    torchsmith("device", "new", "a100", cwd=acme.project).passed()
    acme.write("device/a100/runtime.cpp", "// The driver of the a100 is loaded here.")

    # February. Two operators of Acme's own, a sentence for customers, a runner for the CI.
    acme.write("csrc/operators/gelu.cpp", "// The a100 computes gelu in one instruction.")
    acme.write("tests/operators/test_gelu.py", "# gelu against the CPU.")
    acme.write("python/torch_acme/tuning.py", 'TILE = "a tile of the a100"')
    acme.rewrite("README.md", 3, "The PyTorch backend for the a100, by Acme.")
    acme.write(".github/workflows/ci.yml", "# Runs on the machines of Acme.")

    # March. Three features come.
    assert "csrc/amp/" in acme.take("add", *FEATURES)
    acme.rewrite("csrc/amp/autocast.cpp", 1, "// Acme lowers the precision of gelu, too.")

    # May. v1.1.0 fixes a kernel, and ignores one more folder.
    change(template.files / "csrc/aten/fill.cpp.jinja", lambda text: text + "// Mended.\n")
    change(template.files / ".gitignore", lambda text: "/scratch/\n" + text)
    template.publish("v1.1.0")
    acme.take("update")
    again = torchsmith("update", "--to", "v1.1.0", "--yes", cwd=acme.project).passed()
    assert again.out.startswith("Nothing to do")

    # June. One feature is not needed.
    assert "csrc/storage/" in acme.take("remove", "storage")
    assert set(answers_in(acme.project)["features"]) == {"amp", "rng"}

    # July. Acme squashes the history of the first half-year.
    first = git(acme.project, "rev-list", "--max-parents=0", "HEAD").strip()
    git(acme.project, "reset", "--quiet", "--soft", first)
    git(acme.project, "commit", "--quiet", "--amend", "--message", "Start")
    assert git(acme.project, "rev-list", "--count", "HEAD") == "1\n"

    # August. v1.2.0 moves a page that Acme has edited, and adds one.
    acme.write("docs/dtypes.md", "The a100 has no float64.")
    template.move("docs/dtypes.md", "docs/types.md", since="v1.2.0")
    (template.files / "docs/news.md").write_text("# News\n")
    template.publish("v1.2.0")
    assert "your edits of docs/dtypes.md follow it to docs/types.md" in acme.take("update")

    # October. v1.3.0 changes the sentence that Acme changed: a conflict, which Acme resolves.
    change(template.files / "README.md.jinja",
           lambda text: with_line(text, 3, "A PyTorch backend."))  # fmt: skip
    (template.files / "docs/from-torch-cuda.md.jinja").unlink()
    template.publish("v1.3.0")
    done = acme.run("update")
    assert (done.status, done.err) == (
        1, "Resolve the conflicts in README.md, then git add them.\n",
    )  # fmt: skip
    assert git(acme.project, "diff", "--name-only", "--diff-filter=U") == "README.md\n"
    change(acme.project / "README.md", lambda text: re.sub(
        r"<<<<<<< yours\n(.*)=======\n.*>>>>>>> template-v1.3.0\n", r"\1", text, flags=re.DOTALL
    ))  # fmt: skip
    git(acme.project, "add", "README.md")
    acme.commit("Update to v1.3.0")
    assert not (acme.project / "docs/from-torch-cuda.md").exists()

    # December. v1.4.0 changes amp, where Acme has changed another line; but it breaks a machine,
    # so Acme goes back.
    change(template.files / "csrc/amp/autocast.cpp.jinja", lambda text: text + "// Faster.\n")
    template.publish("v1.4.0")
    for arguments, version in ((["update"], "v1.4.0"), (["update", "--to", "v1.3.0"], "v1.3.0")):
        acme.take(*arguments)
        assert answers_in(acme.project)["_commit"] == version

    # January 2028. A colleague works on Windows: her editor writes CRLF.
    (tmp_path / "windows").mkdir()
    git(tmp_path / "windows", "clone", "--quiet", "--config", "core.autocrlf=true",
        str(acme.project), "torch-acme")  # fmt: skip
    windows = Person(tmp_path / "windows" / "torch-acme", torchsmith, acme.wrote)
    readme = windows.project / "README.md"
    readme.write_bytes(readme.read_bytes().replace(b"\n", b"\r\n"))
    windows.write("README.md", "The a100 has 64 cores.")
    windows.take("update")
    git(acme.project, "pull", "--quiet", str(windows.project), "HEAD")
    acme.wrote = {*windows.wrote}
    assert b"\r" not in contents(acme.project)["README.md"]
    acme.keeps_what_was_written()

    # March. A customer forks the project, and gives the backend another name.
    (tmp_path / "zed").mkdir()
    git(tmp_path / "zed", "clone", "--quiet", str(acme.project), "torch-zed")
    zed = Person(tmp_path / "zed" / "torch-zed", torchsmith, acme.wrote)
    zed.write("docs/zed.md", "Zed sells the a100 as the z1.")
    zed.take("update", "--to", "current", "-d", "backend_name=zed", renamed=True)
    assert (zed.project / "python/torch_zed/tuning.py").is_file()
    assert not (zed.project / "python/torch_acme").exists()

    # May. Acme renames a page and deletes one; then v1.5.0 changes both.
    git(acme.project, "mv", "docs/memory.md", "docs/memory-of-the-a100.md")
    git(acme.project, "rm", "--quiet", "docs/environment.md")
    acme.commit("Our own pages")
    for page in ("memory", "environment"):
        change(template.files / f"docs/{page}.md.jinja", lambda text: text + "\nOne more case.\n")
    template.publish("v1.5.0")
    said = acme.take("update")
    assert "you renamed docs/memory.md; docs/memory-of-the-a100.md takes what the template" in said
    assert "you deleted docs/environment.md, which the template changed: it stays deleted" in said

    # September. Acme's chip has a new name, and the backend takes it.
    acme.take("update", "--to", "current", "-d", "backend_name=nova", renamed=True)
    assert (acme.project / "python/torch_nova/tuning.py").is_file()

    # December. v2.0.0 changes the first line of every kernel, and the CI. Zed has
    # skipped v1.5.0.
    for file in (template.files / "csrc/aten").rglob("*.cpp*"):
        change(file, lambda text: f"// Version 2.\n{text}")
    change(template.files / ".github/workflows/ci.yml", lambda text: f"# Version 2.\n{text}")
    template.publish("v2.0.0")
    for each in (acme, zed):
        each.take("update")
        assert each.edits() <= each.wrote
