"""Small templates with releases, and edits of their users."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

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
_exclude: {exclude}
backend_name: {{type: str, default: foo}}
preset: {{type: str, default: full, choices: [full, minimal, custom]}}
features:
  type: str
  multiselect: true
  default: []
  choices: {choices}
  when: "{{{{ preset == 'custom' }}}}"
enabled:
  type: yaml
  when: false
  default: >-
    {{{{ dict(full={features}, minimal=[], custom=features)[preset]
    | select('in', {features}) | list | to_json }}}}
"""
MANIFEST = """\
moved: {moved}
parts:
{{%- for id in enabled %}}
  {{{{ id }}}}: {{requires: [], paths: [{{{{ id }}}}]}}
{{%- endfor %}}
  core: {{requires: [], paths: []}}
"""


def release(
    template: Path,
    tag: str,
    files: Mapping[str, str],
    moved: Mapping[str, str],
    features: Sequence[str] = (),
    retired: Sequence[str] = (),
    questions: str = "",
) -> None:
    """Commit a release; a feature owns the folder of its name, a retired one owns nothing."""
    tree = template / "template"
    if tree.exists():
        git(template, "rm", "-r", "--quiet", "template")
    texts = {
        **{f"{path}.jinja" if "{{" in text else path: text for path, text in files.items()},
        ".copier-answers.yml.jinja": "{{ _copier_answers | to_nice_yaml }}",
        ".torchsmith.yml.jinja": MANIFEST.format(moved=json.dumps(moved)),
    }
    for path, text in texts.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, "utf-8")
    exclude = [f"{{% if '{id}' not in enabled %}}/{id}{{% endif %}}" for id in features]
    configuration = CONFIGURATION.format(
        exclude=json.dumps(exclude),
        choices=json.dumps([*features, *retired]),
        features=json.dumps([*features]),
    )
    (template / "copier.yml").write_text(questions + configuration, "utf-8")
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
