"""Where updates of this release's projects come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

from torchsmith import __version__

REPOSITORY = "gh:example/torchsmith"
"""The template's address, as copier takes it."""

TAG = f"v{__version__}"
"""The version of the template that this package has."""


def record(answers: Path) -> None:
    """Write address and version of the template into a project's answers.

    What is rendered from an installed package, which is no repository, then updates as what was
    rendered from the release itself.
    """
    lines = f"_commit: {json.dumps(TAG)}\n_src_path: {json.dumps(REPOSITORY)}\n"
    text = answers.read_text("utf-8")
    answers.write_text(re.sub(r"(?m)^_src_path: .*\n", lambda _: lines, text), "utf-8")
