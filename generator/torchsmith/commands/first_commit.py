"""The git repository of a new project, and its first commit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from torchsmith.commands.common import say
from torchsmith.errors import InputError

if TYPE_CHECKING:
    from torchsmith.project import Project


def require_no_repository(destination: Path) -> None:
    """Refuse --git if it would create a repository inside another one."""
    from torchsmith import git
    from torchsmith.destination import nearest

    if root := git.root_of(nearest(destination)):
        raise InputError(
            f"'{destination}' is in the git repository '{root}' already: leave --git out, and "
            "commit there"
        )


def wants_git(destination: Path) -> bool:
    """Ask whether to create a repository, if there is none."""
    from torchsmith import git

    if shutil.which("git") is None or git.root_of(destination):
        return False
    return typer.confirm("Create a git repository with a first commit?", default=True)


def commit(project: Project) -> bool:
    """Create the first commit, and return whether git did; if not, print why."""
    from torchsmith import git

    try:
        git.git(project.root, "init", "--quiet")
        git.git(project.root, "add", "--all")
    except git.GitError as error:
        say(f"Warning: there is no git repository: {error.reason}")
        return False
    try:
        git.git(project.root, "var", "GIT_AUTHOR_IDENT")
        git.git(project.root, "var", "GIT_COMMITTER_IDENT")
    except git.GitError:
        say(
            "Warning: git has no name and address for you, so nothing is committed. Set them, "
            "then commit:\n\n  git config --global user.name 'Your Name'\n"
            "  git config --global user.email you@example.com\n"
        )
        return False
    try:
        git.git(project.root, "commit", "--quiet", "--message", f"Render {distribution(project)}")
    except git.GitError as error:
        said = error.said.replace("\n", "\n  ")
        say(
            "Warning: it is under git, but nothing is committed, as git or one of its hooks "
            f"refused:\n\n  {said}\n\nMend that, then commit; git commit --no-verify leaves the "
            "hooks out.\n"
        )
        return False
    return True


def distribution(project: Project) -> str:
    """Return the name of the project's distribution."""
    return f"torch-{project.answers['backend_name'].replace('_', '-')}"
