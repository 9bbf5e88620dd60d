"""Invalid command lines: one sentence each, status 2, at 80 columns, and no file is written.

tests/rules/test_bad_input.py has the invalid answers that only a render finds.
"""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import torchsmith as package
from commanding import Torchsmith, run, run_python
from rendering import ROOT, git
from torchsmith import template

ANSWERS = "_commit: v1.0.0\n_src_path: /gone\nbackend_name: foo\npreset: full\n"
MANIFEST = "parts:\n  core:\n    requires: []\n    paths: []\n"

# Folders that look like projects: the content of .copier-answers.yml and of .torchsmith.yml.
PROJECTS: dict[str, tuple[bytes, bytes | None]] = {
    "good": (ANSWERS.encode(), MANIFEST.encode()),
    "empty": (b"", None),
    "no-yaml": (b"a: [\n", None),
    "list": (b"- 1\n", None),
    "latin": (b"vendor: S\xf6hne\n", None),
    "nameless": (b"_commit: v1.0.0\n_src_path: /gone\npreset: full\n", MANIFEST.encode()),
    "named-by-list": (b"_commit: v1.0.0\n_src_path: /gone\nbackend_name: [foo]\n", None),
    "one-feature": (ANSWERS.encode() + b"features: amp\n", MANIFEST.encode()),
    "nested-features": (ANSWERS.encode() + b"features: [[amp]]\n", MANIFEST.encode()),
    "number-as-key": (ANSWERS.encode() + b"1: 2\n", MANIFEST.encode()),
    "option-as-address": (
        ANSWERS.replace("/gone", "--upload-pack=touch ran;").encode(),
        MANIFEST.encode(),
    ),
    "zero-character": (ANSWERS.replace("v1.0.0", r'"v1\0"').encode(), MANIFEST.encode()),
    "no-version": (b"backend_name: foo\n", MANIFEST.encode()),
    "no-manifest": (ANSWERS.encode(), None),
    "ignoring-nothing": (ANSWERS.encode(), b"ignore: all\n" + MANIFEST.encode()),
    "edited-manifest": (ANSWERS.encode(), b"parts: none\n"),
    "latin-manifest": (ANSWERS.encode(), b"parts: S\xf6hne\n"),
}

RESTORE = "restore it with git"
# Command lines with their messages.
MISTAKES = {
    # The command line itself
    "udpate": "no such command 'udpate'. Did you mean 'update'?",
    "--vers": "no such option: --vers",
    "new out --biuld": "no such option: --biuld; did you mean '--build'? (see torchsmith new --",
    "new out --json=1": "option '--json' does not take a value (see torchsmith new --help)",
    "op ad": "no such command 'ad'",
    "new": "no folder is named: torchsmith new torch-NAME",
    "names": "missing argument 'NAME' (see torchsmith names --help)",
    "add": "missing argument 'FEATURE",
    "remove": "missing argument 'FEATURE",
    "op add": "missing argument 'OPERATOR'",
    "new out -d": "option '-d' requires an argument",
    "new out c": "got unexpected extra argument(s) (c)",
    # Answers
    "new out -d vendor": "'vendor' is not an answer, which is written key=value",
    "new out -d ''": "the value after '-d' is empty: write one, or leave it out",
    "new out -d 'dtypes=[float32'": "dtypes is a list, for instance dtypes=bool, not '[float32'",
    "new out -d 'features=amp: {'": "features is a list",
    "new out --answers open.yml": "dtypes is a list, for instance dtypes=bool, not '[a'",
    "new out -d 'features={amp: 1}'":
        "features is a list, for instance features=networks, not '{amp: 1}'",
    "new out -d 'features=[[amp]]'": "features is a list, for instance features=networks, not",
    "new out -d dtypes=null": "dtypes is a list, for instance dtypes=bool, not 'null'",
    "new out -d 'features=!!python/none'": "features is a list",
    "new out -d _commit=v9": "'_commit' is a setting of copier, not a question",
    "new out --answers listed.yml": "license is text, not ['mit']: write it in quotes",
    "new out --answers dated.yml": "vendor is text, not 2024-01-01: write it in quotes",
    "new out --answers nothing.yml": "preset is text, not None: write it in quotes",
    "new out --answers none.yml": "none.yml cannot be read: No such file",
    "new out --answers .": ". cannot be read: Is a directory",
    "new out --answers list.yml": "list.yml does not hold answers",
    "new out --answers broken.yml": "broken.yml is not YAML",
    "new out --answers latin.yml": "latin.yml is not UTF-8: save it as UTF-8",
    # Where to render to, and from
    "new torch-cuda --defaults":
        "the folder's name cannot be a backend's name, as 'cuda' is a device type of "
        "PyTorch's own: "
        "try -d backend_name=my_cuda",
    "new full/torch-lambda": "as 'lambda' is a keyword of Python: try -d backend_name=lambda_chip",
    **{
        shlex.join(["new", folder]):
            f"as '{name}' is not a device name, which is lower-case letters with single "
            f"underscores between them: try -d backend_name={idea}"
        for folder, name, idea in [
            ("torch-mi300", "mi300", "mi"), ("torch_x2", "x2", "x"), ("torch.m.i", "m.i", "m_i"),
            ("torch-M\u00fcller", "M\u00fcller", "muller"), ("torch-ACME", "ACME", "acme"),
            ("torch-a b", "a b", "a_b"), ("torch-300", "300", "foo"),
        ]
    },
    "new out --to v99": "' has no version 'v99': ",
    "new repository/out --git": "is in the git repository '",
    "new file": "'file' is a file: name a new folder",
    "new file/a/b": "'file' is a file: name a new folder",
    "new /dev/null/a": "'/dev/null' is a file: name a new folder",
    "new dangling": "'dangling' is a broken link: remove it",
    "new dangling/": "'dangling' is a broken link: remove it",
    "new deep": "'deep' is a broken link: remove it",
    "new loop": "'loop' is a broken link: remove it",
    "new loop/torch-a": "'loop' is a broken link: remove it",
    "new link": "'link' is a file: name a new folder",
    "new link/a": "'link' is a file: name a new folder",
    "new file/../a": "'file' is a file: name a new folder",
    "new .": "'.' is not empty: name a new folder",
    "new ..": "'..' is not empty: name a new folder",
    "new dangling/a": "'dangling' is a broken link: remove it",
    "new full": "'full' is not empty: name a new folder",
    "new /proc/foo": "nothing can be written in '/proc'",
    "new " + "x" * 300: "(File name too long): use another path",
    shlex.join(["new", f"{ROOT}/nothing-of-this-name"]):
        "is inside the template: name a folder outside",
    "new out --template none": "there is no template in 'none': name a folder with copier.yml",
    "new out --template full": "there is no template in 'full'",
    "new out --build --python none": "'none' does not run as Python: name one with --python",
    # Which project
    **{
        f"{command} --project full": "'full' is not a rendered project, as it has no"
        for command in (
            "doctor", "add rng", "remove rng", "update", "preview", "diff", "device new acme",
            "op add gelu",
        )
    },
    **{
        f"features --project {folder}": f"'{folder}' is not a rendered project, as it {reason}"
        for folder, reason in {
            "none": "is no folder: name the folder of one",
            "file": "is no folder: name the folder of one",
            "loop": "is no folder: name the folder of one",
            "full": "has no .copier-answers.yml: name the folder of one",
            "good/docs": "has no .copier-answers.yml: name '",
            "good/none": "is no folder: name '",
            "good/.torchsmith.yml": "is no folder: name '",
        }.items()
    },
    "update": "'.' is not in a rendered project, as no folder above it has .copier-answers.yml: go",
    "op add gelu": "'.' is not in a rendered project",
    "features --project empty": f"has no lines like 'key: value': {RESTORE}",
    "doctor --project no-yaml": f"is not YAML: {RESTORE}",
    "op add gelu --project list": f"has no lines like 'key: value': {RESTORE}",
    "update --project latin": f"is not UTF-8: {RESTORE}",
    "update --project named-by-list": "has no backend_name that is a name",
    "op add gelu --project nameless": f"has no backend_name that is a name: {RESTORE}",
    "features --project one-feature": "has no features that is a list",
    "update --project nested-features": "has no features that is a list",
    "update --project number-as-key": f"has no lines like 'key: value': {RESTORE}",
    "preview --project option-as-address": "which git would take for an option: restore it",
    "doctor --project option-as-address": "which git would take for an option: restore it",
    "update --project zero-character": "has a character of code 0 in _src_path or _commit: restore",
    "doctor --drift --project no-version": "names no version of the template",
    "features --project no-manifest": ".torchsmith.yml is missing in",
    "features --project edited-manifest": f"was edited: {RESTORE}",
    "features --project latin-manifest": f"is not UTF-8: {RESTORE}",
    "update --project good": "good && git init && git add -A && git commit",
    "preview --project good --add rng": "good && git init && git add -A && git commit",
    "preview --project good --add amp --remove rng":
        "preview takes --add or --remove, not both: run it twice",
    "preview --project good --add ','": "no feature is named: `torchsmith features` lists all",
    "diff --project good": "does not exist; if it moved: torchsmith update --template URL",
    "doctor --project good --restore ''": "the value after '--restore' is empty",
    "update --project good --to ''": "the value after '--to' is empty: write one, or leave it out",
    "update --project good --to=": "the value after '--to' is empty: write one, or leave it out",
    "preview --project ''": "the value after '--project' is empty: write one, or leave it out",
    "new out --to ''": "the value after '--to' is empty: write one, or leave it out",
    "new ''": "the value after 'new' is empty: write one, or leave it out",
    "device new ''": "the value after 'new' is empty: write one, or leave it out",
    "device new simulator --project good":
        "'device/simulator' is a folder of the template's features: choose another name",
    "preview --project good -d vendor": "'vendor' is not an answer",
    "op add 'a b' --project good": "'a b' is not an operator's name, for instance aten::gelu",
    **{
        shlex.join(["device", "new", name, "--project", "good"]):
            f"'{name}' is not a valid device name: use"
        for name in ("Acme", "2acme", "a-b", "../x", "a b")
    },
    "device new acme": "'.' is not in a rendered project",
    # doctor
    "doctor --ignore .torchsmith.yml --project ignoring-nothing": "is a list of files: restore it",
    "doctor --python none": "'none' does not run as Python",
    "doctor --python none --project good": "'none' does not run as Python",
    "doctor --python ./file": "'./file' does not run as Python",
    "doctor --python true": "does not run as Python",
    "doctor --drift": "'.' is not in a rendered project",
    "doctor --restore a": "'.' is not in a rendered project",
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with broken projects and unusable paths."""
    (tmp_path / "file").write_text("mine\n")
    for link, target in (
        ("dangling", "none"),
        ("deep", "full/a/b"),
        ("loop", "loop"),
        ("link", "file"),
    ):
        (tmp_path / link).symlink_to(target)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine\n")
    git(tmp_path, "init", "--quiet", "repository")
    (tmp_path / "list.yml").write_text("- 1\n")
    (tmp_path / "broken.yml").write_text("a: [\n")
    (tmp_path / "open.yml").write_text("dtypes: '[a'\n")
    (tmp_path / "listed.yml").write_text("license: [mit]\n")
    (tmp_path / "dated.yml").write_text("vendor: 2024-01-01\n")
    (tmp_path / "nothing.yml").write_text("preset:\n")
    (tmp_path / "latin.yml").write_bytes(b"vendor: S\xf6hne\n")
    for name, (answers, manifest) in PROJECTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / ".copier-answers.yml").write_bytes(answers)
        if manifest is not None:
            (tmp_path / name / ".torchsmith.yml").write_bytes(manifest)
    (tmp_path / "good" / "docs").mkdir()
    return tmp_path


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("line", MISTAKES)
def test_an_invalid_command_line_is_one_sentence_with_status_2(
    line: str, place: Path, torchsmith: Torchsmith
) -> None:
    before = everything(place)
    done = torchsmith(*shlex.split(line), cwd=place, columns=80)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("torchsmith: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    assert MISTAKES[line] in done.err
    assert everything(place) == before


def test_a_full_disk_is_one_sentence() -> None:
    command = f"{sys.executable} -m torchsmith.cli features >/dev/full"
    done = run("sh", "-c", command, PYTHONPATH=str(ROOT / "generator"))
    assert done.status == 2
    assert done.err == (
        "torchsmith: the system refuses (No space left on device): "
        "free some space, then try again\n"
    )


def test_json_is_valid_in_an_output_without_accents() -> None:
    code = "from torchsmith.commands.common import print_json; print_json({'e': '\u00e9'})"
    done = run_python("-c", code, PYTHONIOENCODING="ascii:backslashreplace")
    assert done.json == {"e": "\u00e9"}


@pytest.mark.parametrize("streams", ["<&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_an_invalid_command_line_has_status_2_with_closed_or_full_streams(streams: str) -> None:
    command = f"{sys.executable} -m torchsmith new {streams}"
    done = run("sh", "-c", command, PYTHONPATH=str(ROOT / "generator"), PYTHONUNBUFFERED="")
    assert (done.status, done.out) == (2, "")
    assert done.err in ("", "torchsmith: no folder is named: torchsmith new torch-NAME\n")


@pytest.mark.parametrize("command", ["", "device"])
def test_help_that_cannot_be_printed_has_status_2(command: str) -> None:
    command = f"{sys.executable} -m torchsmith {command} 2>/dev/full"
    done = run("sh", "-c", command, PYTHONPATH=str(ROOT / "generator"), PYTHONUNBUFFERED="")
    assert (done.status, done.out, done.err) == (2, "", "")


@pytest.mark.parametrize("module", ["signal", "torchsmith.cli", "typer", "torchsmith.commands.op"])
def test_ctrl_c_while_modules_are_imported_ends_in_one_line(module: str) -> None:
    code = f"""
import sys
sys.modules.pop({module!r}, None)
class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
sys.argv = ["torchsmith", "--help"]
from torchsmith.__main__ import main
sys.exit(main())
"""
    done = run_python("-c", code)
    assert (done.status, done.out, done.err) == (130, "", "torchsmith: interrupted\n")


def test_help_imports_nothing_slow() -> None:
    """It must come within 0.3 s."""
    code = """
import sys
sys.argv = ["torchsmith", "--help"]
from torchsmith.__main__ import main
main()
slow = {"copier", "jinja2", "packaging", "pathspec", "questionary", "rich", "yaml"}
print(*(sys.modules.keys() & slow))
"""
    done = run_python("-c", code)
    assert "Usage: torchsmith" in done.out
    assert done.out.splitlines()[-1] == ""


def test_ctrl_c_at_a_question_ends_in_one_line(
    torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("questionary.Question.unsafe_ask", interrupted)
    done = torchsmith("new", "out", cwd=tmp_path)
    assert (done.status, done.out, done.err) == (130, "", "torchsmith: interrupted\n")


def test_new_without_a_template_is_refused(
    torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(template, "TEMPLATE", tmp_path)
    done = torchsmith("new", "out", cwd=tmp_path)
    assert done.status == 2
    assert done.err == (
        "torchsmith: there is no template beside this command: install torchsmith again\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def private() -> Iterator[str]:
    """Yield the address of a repository that requires a password."""

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/template.git"
    server.shutdown()
    server.server_close()


def test_a_private_template_is_refused_without_a_password_prompt(
    private: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_TERMINAL_PROMPT", raising=False)
    command = ("-m", "torchsmith.cli", "new", "out", "--template", private)
    done = run_python(*command, cwd=tmp_path)
    assert done.status == 2
    assert "terminal prompts disabled" in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_template_url_is_refused_if_git_is_missing(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = torchsmith("new", "out", "--template", "https://localhost/x.git", cwd=tmp_path)
    assert done.status == 2
    assert "is read with git, which is not installed: install it" in done.err


def test_the_version_is_printed(torchsmith: Torchsmith) -> None:
    done = torchsmith("--version")
    assert (done.status, done.out) == (0, f"torchsmith {package.__version__}\n")


@pytest.mark.parametrize("command", [(), ("op",)])
def test_without_a_command_the_help_is_shown(
    command: tuple[str, ...], torchsmith: Torchsmith
) -> None:
    done = torchsmith(*command)
    assert done.status == 2
    assert done.err.startswith(f"Usage: {' '.join(('torchsmith', *command))} ")
    assert "Commands:" in done.err
