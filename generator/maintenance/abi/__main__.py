"""Write the file of the headers' revision: ``python -m maintenance.abi``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from maintenance import abi
from torchsmith.render import Job, render


def main() -> int:
    """Return 1 if the revision already has a file that differs."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "foo")
        render(project, Job({"backend_name": "foo", "preset": "full"}))
        found, number = abi.read(project), abi.revision(project)
    known = abi.frozen()
    if number in known and known[number] != found:
        print(f"revision {number} is frozen and differs: raise kInterfaceRevision in runtime.h")
        return 1
    text = yaml.safe_dump(found, sort_keys=False, default_flow_style=None, width=100)
    (abi.FROZEN / f"revision_{number}.yml").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
