"""Mistakes at the command line: one sentence each, status 2, at 80 columns, and nothing is written.

The mistakes that only a render finds stand in tests/rules/test_bad_input.py.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import copier
import pytest
from copier.errors import CopierAnswersInterrupt

import torchsmith as package
from commanding import Torchsmith, run_python
from rendering import ROOT, git
from torchsmith import catalog, template

ANSWERS = "_commit: v1.0.0\n_src_path: /gone\nbackend_name: foo\npreset: full\n"
MANIFEST = "parts:\n  core:\n    requires: []\n    paths: []\n"

# Folders that look like projects: what stands in .copier-answers.yml and in .torchsmith.yml.
PROJECTS: dict[str, tuple[bytes, bytes | None]] = {
    "good": (ANSWERS.encode(), MANIFEST.encode()),
    "empty": (b"", None),
    "no-yaml": (b"a: [\n", None),
    "list": (b"- 1\n", None),
    "latin": (b"vendor: S\xf6hne\n", None),
    "nameless": (b"_commit: v1.0.0\n_src_path: /gone\npreset: full\n", MANIFEST.encode()),
    "named-by-list": (b"_commit: v1.0.0\n_src_path: /gone\nbackend_name: [foo]\n", None),
    "one-feature": (ANSWERS.encode() + b"features: amp\n", MANIFEST.encode()),
    "no-version": (b"backend_name: foo\n", MANIFEST.encode()),
    "no-manifest": (ANSWERS.encode(), None),
    "ignoring-nothing": (ANSWERS.encode(), b"ignore: all\n" + MANIFEST.encode()),
    "edited-manifest": (ANSWERS.encode(), b"parts: none\n"),
    "latin-manifest": (ANSWERS.encode(), b"parts: S\xf6hne\n"),
}

RESTORE = "restore it with git"
MISTAKES: dict[str, tuple[str, ...]] = {
    # The command line itself
    "no such command": ("no such command 'udpate'. Did you mean 'update'?", "udpate"),
    "no such option": ("no such option: --vers", "--vers"),
    "no such option of a command": ("no such option: --biuld", "new", "out", "--biuld"),
    "no such command of a group": ("no such command 'ad'", "op", "ad"),
    "no destination": ("missing argument 'FOLDER' (see torchsmith new --help)", "new"),
    "no name": ("missing argument 'NAME' (see torchsmith names --help)", "names"),
    "no feature to add": ("missing argument 'FEATURE", "add"),
    "no feature to remove": ("missing argument 'FEATURE", "remove"),
    "no operator": ("missing argument 'OPERATOR'", "op", "add"),
    "an option without its value": ("option '-d' requires an argument", "new", "out", "-d"),
    "too many arguments": ("got unexpected extra argument(s) (c)", "new", "out", "c"),
    "jobs that are none": ("invalid value for '--jobs'", "smoke", "--jobs", "0"),
    "jobs in words": ("invalid value for '--jobs'", "smoke", "--jobs", "two"),
    # Answers
    "no answer": ("'vendor' is not an answer, which is written key=value", "new", "out", "-d",
                  "vendor"),
    "nothing as an answer": ("'' is not an answer", "new", "out", "-d", ""),
    "dtypes not closed": ("dtypes is a list, for instance dtypes=bool, not '[float32'",
                          "new", "out", "-d", "dtypes=[float32"),
    "features not closed": ("features is a list, for instance features=amp, not '[amp'",
                            "new", "out", "-d", "features=[amp"),
    "features as half a mapping": ("features is a list", "new", "out", "-d", "features=amp: {"),
    "dtypes not closed in a file": ("dtypes is a list, for instance dtypes=bool, not '[a'",
                                    "new", "out", "--answers", "open.yml"),
    "features as a mapping": ("features is a list, for instance features=amp, not '{amp: 1}'",
                              "new", "out", "-d", "features={amp: 1}"),
    "a list in a list of features": ("features is a list, for instance features=amp, not",
                                     "new", "out", "-d", "features=[[amp]]"),
    "dtypes that are nothing": ("dtypes is a list, for instance dtypes=bool, not 'null'",
                                "new", "out", "-d", "dtypes=null"),
    "features tagged": ("features is a list", "new", "out", "-d", "features=!!python/none"),
    "a value of copier's": ("'_commit' is copier's own, and no question", "new", "out", "-d",
                            "_commit=v9"),
    "a list for a text": ("license is text, not ['mit']: write it in quotes", "new", "out",
                          "--answers", "listed.yml"),
    "a date for a text": ("vendor is text, not 2024-01-01: write it in quotes", "new", "out",
                          "--answers", "dated.yml"),
    "nothing for a text": ("preset is text, not None: write it in quotes", "new", "out",
                           "--answers", "nothing.yml"),
    "no answers file": ("none.yml cannot be read: No such file", "new", "out", "--answers",
                        "none.yml"),
    "a folder as answers": (". cannot be read: Is a directory", "new", "out", "--answers", "."),
    "answers that are no mapping": ("list.yml does not hold answers", "new", "out", "--answers",
                                    "list.yml"),
    "answers that are no YAML": ("broken.yml is not YAML", "new", "out", "--answers",
                                 "broken.yml"),
    "answers that are not UTF-8": ("latin.yml is not UTF-8: save it as UTF-8", "new", "out",
                                   "--answers", "latin.yml"),
    # Where to render to, and from
    "a folder named as PyTorch's": ("the folder's name makes no backend, as 'cuda' is a device "
                                    "type of PyTorch's own: try -d backend_name=my_cuda",
                                    "new", "torch-cuda", "--defaults"),
    "a folder named as a keyword": ("as 'lambda' is a keyword of Python: try -d "
                                    "backend_name=lambda_chip", "new", "full/torch-lambda"),
    "no release": ("' has no version 'v99': ", "new", "out", "--to", "v99"),
    "git in a repository": ("is in the git repository '", "new", "repository/out", "--git"),
    "a file": ("'file' is a file: name a new folder", "new", "file"),
    "below a file": ("'file' is a file: name a new folder", "new", "file/a/b"),
    "a device": ("'/dev/null' is a file: name a new folder", "new", "/dev/null/a"),
    "a dangling link": ("'dangling' is a link to nothing: remove it", "new", "dangling"),
    "below a dangling link": ("'dangling' is a link to nothing: remove it", "new", "dangling/a"),
    "not empty": ("'full' is not empty: name a new folder", "new", "full"),
    "not writable": ("nothing can be written in '/proc'", "new", "/proc/foo"),
    "too long a name": ("(File name too long): name another place", "new", "x" * 300),
    "inside the template": ("is inside the template: name a folder outside", "new",
                            str(ROOT / "nothing-of-this-name")),
    "no template there": ("there is no template in 'none': name a folder with copier.yml",
                          "new", "out", "--template", "none"),
    "no template in a folder": ("there is no template in 'full'", "new", "out", "--template",
                                "full"),
    "no Python": ("'none' does not run as Python: name one with --python", "new", "out",
                  "--build", "--python", "none"),
    # Which project
    "no folder": ("'none' is not in a rendered project", "features", "--project", "none"),
    "a folder that is no project": ("'full' is not in a rendered project", "features",
                                    "--project", "full"),
    "a file as a project": ("'file' is not in a rendered project", "features", "--project",
                            "file"),
    "no project to update": ("'.' is not in a rendered project", "update"),
    "no project to add to": ("'full' is not in a rendered project", "add", "rng", "--project",
                             "full"),
    "no project for an operator": ("'.' is not in a rendered project", "op", "add", "gelu"),
    "empty answers": (f"has no lines like 'key: value': {RESTORE}", "features", "--project",
                      "empty"),
    "broken answers": (f"is not YAML: {RESTORE}", "doctor", "--project", "no-yaml"),
    "a list of answers": (f"has no lines like 'key: value': {RESTORE}", "op", "add", "gelu",
                          "--project", "list"),
    "answers of a project not UTF-8": (f"is not UTF-8: {RESTORE}", "doctor", "--project", "latin"),
    "the same elsewhere": (f"is not UTF-8: {RESTORE}", "update", "--project", "latin"),
    "a name's list elsewhere": ("has no backend_name that is a name", "update", "--project",
                                "named-by-list"),
    "answers without a name": (f"has no backend_name that is a name: {RESTORE}", "op", "add",
                               "gelu", "--project", "nameless"),
    "a list for a name": ("has no backend_name that is a name", "doctor",
                          "--project", "named-by-list"),
    "features that are no list": ("has no features that is a list", "features", "--project",
                                  "one-feature"),
    "no version": ("names no version of the template", "doctor", "--drift", "--project",
                   "no-version"),
    "no manifest": (".torchsmith.yml is missing in", "features", "--project", "no-manifest"),
    "an edited manifest": ("was edited: restore it", "features", "--project", "edited-manifest"),
    "a manifest not UTF-8": (f"is not UTF-8: {RESTORE}", "features", "--project", "latin-manifest"),
    "not under git": ("is not under git, which updates need: git init", "update", "--project",
                      "good"),
    "both at once": ("preview takes --add or --remove: look at one after the other", "preview",
                     "--project", "good", "--add", "amp", "--remove", "rng"),
    "preview without an answer": ("'vendor' is not an answer", "preview", "--project", "good",
                                  "-d", "vendor"),
    "preview of an open list": ("features is a list, for instance features=amp, not '['",
                                "preview", "--project", "good", "-d", "features=["),
    "no operator's name": ("'a b' is not an operator's name, for instance aten::gelu", "op",
                           "add", "a b", "--project", "good"),
    # doctor
    "a list that is none": ("is a list of files: restore it", "doctor", "--ignore",
                            ".torchsmith.yml", "--project", "ignoring-nothing"),
    "doctor of nothing": ("'none' is not in a rendered project", "doctor", "--project", "none"),
    "doctor of a file": ("'file' is not in a rendered project", "doctor", "--project", "file"),
    "doctor without a Python": ("'none' does not run as Python", "doctor", "--python", "none"),
    "doctor with a file": ("'./file' does not run as Python", "doctor", "--python", "./file"),
    "doctor with another program": ("does not run as Python", "doctor", "--python", "true"),
    "drift of nothing": ("'.' is not in a rendered project", "doctor", "--drift"),
    "nothing to restore to": ("'.' is not in a rendered project", "doctor", "--restore", "a"),
    # smoke
    "no strength": ("there is no strength 'pairwsie': choose from each, pairwise, 3-way, all; did "
                    "you mean 'pairwise'?", "smoke", "--strength", "pairwsie"),
    "no stage": ("there is no stage 'deploy': choose from render, build, test", "smoke", "--until",
                 "deploy"),
    "no shard": ("'0/2' is no shard: write for instance 1/4", "smoke", "--shard", "0/2"),
    "no question": ("there is no question 'licence'; did you mean 'license'?", "smoke", "-d",
                    "licence=mit"),
    "no licence": ("there is no license 'gpl': choose from apache-2.0", "smoke", "-d",
                   "license=gpl"),
    "no device": ("there is no device 'cuda': choose from simulator, opencl", "smoke", "-d",
                  "device=cuda"),
    "no dtype": ("there is no dtype 'float33'; did you mean 'float32'?", "smoke", "-d",
                 "dtypes=[float33]"),
    "a list in a list": ("dtypes is a list, for instance dtypes=bool, not '[[1]]'",
                         "smoke", "-d", "dtypes=[[1]]"),
    "an open list": ("dtypes is a list, for instance dtypes=bool, not '['", "smoke", "-d",
                     "dtypes=["),
    "two ways to choose": ("features is read with preset=custom only", "smoke", "-d",
                           "preset=full", "-d", "features=[amp]"),
    "a report nowhere": ("'none' is no folder: make it first, or name another file", "smoke",
                         "--junit", "none/smoke.xml"),
    "a report in a file": ("'file' is no folder", "smoke", "--junit", "file/smoke.xml"),
    "a folder as a report": ("'full' is a folder: name a file", "smoke", "--page", "full"),
    "a report that cannot be": ("nothing can be written in '/proc'", "smoke", "--page",
                                "/proc/a.html"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with what one may stumble over."""
    (tmp_path / "file").write_text("mine\n")
    (tmp_path / "dangling").symlink_to("nowhere")
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
    return tmp_path


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence_and_status_2(
    mistake: tuple[str, ...], place: Path, torchsmith: Torchsmith
) -> None:
    sentence, *arguments = mistake
    before = everything(place)
    done = torchsmith(*arguments, cwd=place, columns=80)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("torchsmith: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    assert sentence in done.err
    assert everything(place) == before


def test_the_table_is_long() -> None:
    """Sixty different mistakes were asked for."""
    assert len(set(MISTAKES.values())) >= 60


def test_a_full_disk_is_one_sentence(place: Path, torchsmith: Torchsmith) -> None:
    (place / "report.xml").symlink_to("/dev/full")
    done = torchsmith("smoke", "--list", "--json", "--junit", "report.xml", cwd=place)
    assert done.status == 2
    assert done.err == (
        "torchsmith: the system refuses (No space left on device): "
        "free some space, then try again\n"
    )


def test_ctrl_c_ends_in_one_line_and_the_status_of_shells(
    torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "features", lambda: signal.raise_signal(signal.SIGINT))
    # What runs in the background of a script has it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = torchsmith("features")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.status, done.out, done.err) == (130, "", "torchsmith: interrupted\n")


@pytest.mark.parametrize("module", ["signal", "torchsmith.cli", "typer", "torchsmith.commands.op"])
def test_ctrl_c_while_modules_are_imported_too(module: str) -> None:
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
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "torchsmith: interrupted\n")


def test_help_imports_nothing_slow() -> None:
    """It is to be there within 0.3 s, of which copier alone would take twice as much."""
    code = """
import sys
sys.argv = ["torchsmith", "--help"]
from torchsmith.__main__ import main
main()
print(*(sys.modules.keys() & {"copier", "jinja2", "yaml", "rich", "packaging", "plumbum"}))
"""
    done = run_python("-c", code)
    assert "Usage: torchsmith" in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_ctrl_c_at_a_question_too(
    torchsmith: Torchsmith, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise CopierAnswersInterrupt(None, None, None)  # type: ignore[arg-type]

    monkeypatch.setattr(copier, "run_copy", interrupted)
    done = torchsmith("new", "out", cwd=tmp_path)
    assert (done.status, done.out, done.err) == (130, "", "torchsmith: interrupted\n")


@pytest.mark.parametrize("command", [("smoke",), ("smoke", "--list"), ("new", "out")])
def test_without_a_template_nothing_passes(
    command: tuple[str, ...],
    torchsmith: Torchsmith,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(template, "TEMPLATE", tmp_path)
    done = torchsmith(*command, cwd=tmp_path)
    assert done.status == 2
    assert done.err == (
        "torchsmith: there is no template beside this command: install torchsmith again\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def private() -> Iterator[str]:
    """The address of a repository that wants a password."""

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


def test_nothing_waits_for_a_password(
    private: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not copier's git either, which takes its environment when it is imported."""
    monkeypatch.delenv("GIT_TERMINAL_PROMPT", raising=False)
    command = ("-m", "torchsmith.cli", "new", "out", "--template", private)
    done = run_python(*command, cwd=tmp_path, COPIER_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert "terminal prompts disabled" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_url_without_git_says_that_git_is_missing(
    torchsmith: Torchsmith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = torchsmith("new", "out", "--template", "https://localhost/x.git", cwd=tmp_path)
    assert done.status == 2
    assert "is read with git, which is not installed: install it" in done.err


def test_the_version(torchsmith: Torchsmith) -> None:
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
