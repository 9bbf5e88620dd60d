"""A template of a few lines with two releases, and what its user does to a project of it."""

from __future__ import annotations

from pathlib import Path

import yaml

from rendering import commit, contents, git

LINES = "".join(f"line {number}\n" for number in range(1, 10))
FIRST = {
    "kept.txt": LINES,
    "here.txt": LINES,
    "gone.txt": LINES,
}
SECOND = {
    "kept.txt": LINES.replace("line 2", "line two"),
    "there/it-is.txt": LINES.replace("line 2", "line two"),
    "new.txt": "of the template\n",
}
MOVED = {"here.txt": "there/it-is.txt"}
CONFIGURATION = """\
_subdirectory: template
_answers_file: .copier-answers.yml
backend_name: {type: str, default: foo}
preset: {type: str, default: minimal}
"""


def release(template: Path, tag: str, files: dict[str, str], moved: dict[str, str]) -> None:
    tree = template / "template"
    if tree.exists():
        git(template, "rm", "-r", "--quiet", "template")
    manifest = {"parts": {"core": {"requires": [], "paths": []}}, "moved": moved}
    answers = {".copier-answers.yml.jinja": "{{ _copier_answers | to_nice_yaml }}"}
    for path, text in {**files, **answers, ".torchsmith.yml": yaml.safe_dump(manifest)}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, "utf-8")
    (template / "copier.yml").write_text(CONFIGURATION, "utf-8")
    commit(template, tag, tag=tag)


def edited(project: Path, path: str, old: str, new: str) -> None:
    text = (project / path).read_text("utf-8")
    assert old in text
    (project / path).write_text(text.replace(old, new), "utf-8")
    commit(project, f"edited {path}")


def files(project: Path) -> dict[str, str]:
    return {
        path: text.decode() for path, text in contents(project).items() if not path.startswith(".")
    }


def conflicts(project: Path) -> dict[str, str]:
    lines = git(project, "status", "--porcelain").splitlines()
    return {line[3:]: line[:2] for line in lines if "U" in line[:2] or line[:2] == "AA"}
