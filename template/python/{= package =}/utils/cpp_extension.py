"""``torch.utils.cpp_extension`` for code that calls this backend.

The names, the arguments and the results are those of PyTorch. Extensions built here also find the
backend's header and link its library, so an extension for PyTorch only changes its import. Load
this package before an extension; ``import torch`` does that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch.utils import cpp_extension as _cpp_extension
from torch.utils.cpp_extension import BuildExtension

from .. import _C

__all__ = [
    "BuildExtension",
    "CppExtension",
    "StableExtension",
    "include_paths",
    "library_paths",
    "load",
    "load_inline",
]

# Only some of its functions have annotations.
cpp_extension: Any = _cpp_extension
_LIBRARY = __package__.partition(".")[0]


def _paths(folder: str) -> list[str]:
    return [str(Path(_C.__file__).parent / folder)]


def include_paths(*args: Any, **options: Any) -> list[str]:
    """Return the folders of the backend's and PyTorch's headers."""
    return [*_paths("include"), *cpp_extension.include_paths(*args, **options)]


def library_paths(*args: Any, **options: Any) -> list[str]:
    """Return the folders of the backend's and PyTorch's libraries."""
    return [*_paths("lib"), *cpp_extension.library_paths(*args, **options)]


def CppExtension(name: str, sources: Sequence[str], **options: Any) -> Any:
    """Return a ``setuptools.Extension``, to be built by :class:`BuildExtension`.

    Args:
        name: the name of the module.
        sources: C++ files.
        options: the options of ``setuptools.Extension``.
    """
    options["include_dirs"] = [*options.get("include_dirs", ()), *_paths("include")]
    options["library_dirs"] = [*options.get("library_dirs", ()), *_paths("lib")]
    options["libraries"] = [*options.get("libraries", ()), _LIBRARY]
    return cpp_extension.CppExtension(name, list(sources), **options)


def StableExtension(name: str, sources: Sequence[str], **options: Any) -> Any:
    """Return an extension on PyTorch's stable ABI, which runs with PyTorch 2.10 and newer.

    It has no Python module: load it with ``torch.ops.load_library``. The arguments are those of
    :func:`CppExtension`.
    """
    target = ("TORCH_TARGET_VERSION", "0x020a000000000000")
    options["define_macros"] = [*options.get("define_macros", ()), target]
    return CppExtension(name, sources, py_limited_api=True, **options)


def load(name: str, sources: str | Sequence[str], *args: Any, **options: Any) -> Any:
    """Compile and load source files, as ``torch.utils.cpp_extension.load`` does."""
    return _with_backend(cpp_extension.load, name, sources, *args, **options)


def load_inline(name: str, cpp_sources: str | Sequence[str], *args: Any, **options: Any) -> Any:
    """Compile and load source text, as ``torch.utils.cpp_extension.load_inline`` does."""
    return _with_backend(cpp_extension.load_inline, name, cpp_sources, *args, **options)


def _with_backend(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    options = inspect.signature(function).bind(*args, **keywords).arguments
    include = [*(options.get("extra_include_paths") or ()), *_paths("include")]
    link = [*(options.get("extra_ldflags") or ()), *(f"-L{path}" for path in _paths("lib"))]
    options.update(extra_include_paths=include, extra_ldflags=[*link, f"-l{_LIBRARY}"])
    return function(**options)
