"""`copier copy` and torchsmith render the same bytes, modes and answers file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import copier
import pytest

from feature_sets import answers as chosen
from feature_sets import rows
from rendering import Renderer, commit
from torchsmith.errors import InputError
from torchsmith.render import Job, renders
from torchsmith.render import render as render_by_us

# A template with settings that ours does not need, from copier's docs.
SETTINGS = """\
_subdirectory: "{{ folder }}"
_templates_suffix: .tmpl
_secret_questions: [word]
_exclude: ["*.bak"]
_envops: {undefined: jinja2.StrictUndefined, variable_start_string: "{{"}
_message_after_copy: done
---
!include parts/*.yml
---
_exclude: ["{% if not wanted %}/wanted{% endif %}"]
folder: {when: false, default: tree}
"""
QUESTIONS = """\
plain: a default
number: 3
ratio: {type: float, default: "{{ number * 2 }}"}
wanted: {type: bool, default: "{{ 'no' if number > 5 else 'yes' }}"}
data: {type: json, default: '{"a": [1, 2]}'}
listed: {type: yaml, default: "[1, {b: c}]"}
place: {type: path, default: a/b}
level:
  type: int
  choices: {one: 1, "two {{ plain }}": 2}
  default: 2
many:
  type: int
  multiselect: true
  choices: |
    {% for each in range(number) %}
    - ["number {{ each }}", {{ each }}]
    {% endfor %}
  default: "[2, 0]"
quoted: {type: str, multiselect: true, choices: ["yes", "no", "1", "a b"], default: "[yes, '1']"}
only:
  when: "{{ wanted }}"
  default: "{{ plain }} too"
  validator: "{% if ' ' not in only %}no{% endif %}"
word: {default: hush, type: str}
never: {when: false, default: "{{ many | length }}", type: int}
"""
FILES = {
    "{{ _copier_conf.answers_file }}.tmpl": "{{ _copier_answers | to_nice_yaml }}",
    "{{ plain }}/{{ number }}.txt.tmpl": "{{ word }} {{ only }} {{ never }} {{ ratio }}\r\nend",
    "{% if wanted %}there{% endif %}/kept.txt": "{{ as it is }}",
    "wanted/file.tmpl": "{% include 'parts/text' %}{{ [level, many, quoted, data, listed] }}",
    "beside.txt": "not this",
    "beside.txt.tmpl": "this\n",
    "old.bak": "",
    "emptied/old.bak": "",
    "last.tmpl": "{{ _copier_conf.data }} {{ _copier_conf.dst_path.name }} {{ _folder_name }}",
}


@pytest.fixture
def other_template(tmp_path: Path) -> Path:
    """Return a template with most settings of copier.yml."""
    template = tmp_path / "other_template"
    texts = {"copier.yml": SETTINGS, "parts/q.yml": QUESTIONS, "parts/text": "{{ plain | upper }}"}
    for path, text in {**texts, **{f"tree/{path}": text for path, text in FILES.items()}}.items():
        (template / path).parent.mkdir(parents=True, exist_ok=True)
        (template / path).write_bytes(text.encode())
    (template / "tree" / "beside.txt.tmpl").chmod(0o755)
    (template / "tree" / "linked").symlink_to("wanted")
    (template / "tree" / "link.txt").symlink_to("old.bak")
    commit(template, "one")
    return template


def tree(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return the files and folders, with their modes and bytes."""
    return {
        path.relative_to(folder).as_posix(): (
            stat.filemode(path.lstat().st_mode),
            b"" if path.is_dir() else path.read_bytes(),
        )
        for path in folder.rglob("*")
    }


def assert_same(ours: Path, copiers: Path) -> None:
    found, expected = tree(ours), tree(copiers)
    assert sorted(found) == sorted(expected)
    assert [path for path in found if found[path] != expected[path]] == []


def both(template: Path, folder: Path, answers: dict[str, Any]) -> tuple[Path, Path]:
    """Render with our command and with copier, into folders of the same name."""
    ours, copiers = folder / "ours" / "torch-foo", folder / "copiers" / "torch-foo"
    render_by_us(ours, Job(answers, str(template)))
    return ours, Renderer(template, folder).by_copier(copiers, **answers)


# The gate runs only the first rows; all rows together contain each pair of answers.
QUICK = 4


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(each, marks=[pytest.mark.nightly] if each >= QUICK else [])
        for each in range(len(rows()))
    ],
)
def test_copier_and_torchsmith_render_the_same_for_each_pair_of_answers(
    number: int, render: Renderer, tmp_path: Path
) -> None:
    assert_same(*both(render.template, tmp_path, {"preset": "custom", **chosen(rows()[number])}))


def test_copier_and_torchsmith_render_the_same_from_old_answers(
    render: Renderer, tmp_path: Path
) -> None:
    """The old answers have a removed feature, an invalid licence and an unknown question."""
    last = tmp_path / "last.yml"
    last.write_text(
        f"_commit: v0.9\n_src_path: {render.template}\nvendor: Ac me\nlicense: none-of-them\n"
        "preset: custom\nfeatures: [rng, amp]\ncolor: red\n"
    )
    copiers = tmp_path / "copiers"
    copiers.mkdir()
    (copiers / ".copier-answers.yml").write_text(last.read_text())
    changed = {"features": ["amp", "publishing"], "ci_provider": "gitlab"}
    copier.run_copy(
        str(render.template), copiers, data=changed, vcs_ref="HEAD", defaults=True,
        overwrite=True, quiet=True, settings=copier.Settings(),
    )  # fmt: skip
    with renders(Job(changed, str(render.template), last=last)) as (ours,):
        assert_same(ours, copiers)


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"number": 7, "plain": "with space", "many": "[6]", "word": "told"},
        {"number": "4", "wanted": "off", "ratio": 1, "quoted": ["a b", "no"], "unheard": [1]},
        {"data": {"x": None}, "listed": "text", "level": "1", "never": 5, "place": "."},
    ],
)
def test_copier_and_torchsmith_render_another_template_the_same(
    answers: dict[str, Any], other_template: Path, tmp_path: Path
) -> None:
    assert_same(*both(other_template, tmp_path, answers))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"number": "x"}, "number is of type int, not 'x'"),
        ({"level": 3}, "there is no level '3': choose from 1, 2"),
        ({"many": 5}, "many is a list, not '5'"),
        ({"many": [5]}, "there is no many '5': choose from 0, 1, 2"),
        ({"data": "{"}, "data is of type json, not '{'"),
        ({"only": "short"}, "no"),
    ],
)
def test_answers_that_copier_refuses_are_refused_in_one_sentence(
    answers: dict[str, Any], said: str, other_template: Path, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError)):
        Renderer(other_template, tmp_path).by_copier(tmp_path / "copiers", **answers)
    with pytest.raises(InputError) as caught:
        render_by_us(tmp_path / "ours", Job(answers, str(other_template)))
    assert str(caught.value) == said
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("copier.yml", "_tasks: [echo]", "copier.yml of the template sets _tasks, which"),
        ("copier.yml", "_jinja_extensions: [a.B]", "sets _jinja_extensions, which"),
        ("copier.yml", "_min_copier_version: '99'", "the template is for copier 99 or newer"),
        ("copier.yml", "a: [", "'copier.yml' of the template is not YAML"),
        ("copier.yml", "a: {type: word, default: b}", "question a has no type that is known: word"),
        ("copier.yml", "a: {type: str}", "a has no default: answer it with -d a=..."),
        ("copier.yml", "a: '{{ b }}'\n_envops: {undefined: jinja2.StrictUndefined}",
         "the template's question a cannot be rendered: 'b' is undefined"),
        ("copier.yml", "!include ../*", "includes '../*' from outside"),
        ("copier.yml", "_envops: {undefined: os.path}",
         "_envops of the template has no class of jinja2's: os.path"),
        ("a.jinja", "{{ 1 +", "the template's file 'a.jinja' cannot be rendered: "),
        ("a.jinja", "{{ ''.__class__.__mro__ }}", "is unsafe"),
        ("a.jinja", "{{ _copier_conf.unsafe }}", "reads _copier_conf.unsafe, which torchsmith"),
        ("{{ '..' }}/a", "", "outside of the project"),
        ("link", None, "'link' of the template leads out of it"),
        ("a.jinja", "{% include '/etc/hostname' %}", "'hostname' of the template leads out of it"),
        ("copier.yml", "_subdirectory: ..", "of the template leads out of it"),
        ("copier.yml", "_envops: {odd: 1}", "_envops of the template is not for jinja2: "),
    ],
)  # fmt: skip
def test_an_error_in_a_template_is_reported_in_one_sentence(
    path: str, text: str | None, said: str, tmp_path: Path
) -> None:
    template = tmp_path / "template"
    template.mkdir()
    (template / "copier.yml").touch()
    (template / path).parent.mkdir(exist_ok=True)
    if text is None:
        (template / path).symlink_to("/etc/hostname")
    else:
        (template / path).write_text(text)
    with pytest.raises(InputError) as caught:
        render_by_us(tmp_path / "out", Job({}, str(template)))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["template"]
