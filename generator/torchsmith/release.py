"""Where updates of this release's projects come from."""

from __future__ import annotations

from torchsmith import __version__

REPOSITORY = "gh:example/torchsmith"
"""The template's address, as copier takes it."""

TAG = f"v{__version__}"
"""The version of the template that this package has."""
