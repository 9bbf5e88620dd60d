"""The versions, libraries and devices of this process."""

from __future__ import annotations

import platform
import struct
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from .. import _C
from .. import __name__ as package
from .. import __path__ as folders
from .._build import INTERFACE_VERSION, NAME, TORCH_VERSION
from .._features import FEATURES

_LOADED, _DYNAMIC = 1, 2  # kinds of segments
_NEEDED, _STRINGS = 1, 5  # kinds of entries of the dynamic segment


def environment() -> dict[str, str]:
    """Return the versions, the C++ ABI and the enabled features."""
    backend: Any = torch.get_device_module(NAME)
    with_them = [name for name, feature in FEATURES.items() if feature.enabled]
    return {
        package: f"{backend.__version__}, device interface {INTERFACE_VERSION}",
        "features": ", ".join(with_them) or "none",
        "device layers": ", ".join(_C.device_layers()) or "none",
        "element types": ", ".join(str(dtype)[6:] for dtype in backend.supported_dtypes()),
        "storage-only element types": ", ".join(_storage_only_names(backend)),
        "torch": f"{torch.__version__}, built against {TORCH_VERSION}",
        "C++ ABI": f"_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        "numpy": version("numpy"),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _storage_only_names(backend: Any) -> list[str]:
    chosen = [str(dtype)[6:] for dtype in backend.supported_dtypes()]
    return [name for name in _C.device_dtypes() if name not in chosen]


def _kernel_format(backend: Any, index: int) -> str:
    if not FEATURES["compile"].enabled:
        return "none"
    try:
        return str(backend.kernel_format(index))
    except NotImplementedError:
        return "none"


def devices() -> list[dict[str, object]]:
    """Return the properties of each device. Starts the runtime."""
    return [_device(index) for index in range(torch.accelerator.device_count())]


def _device(index: int) -> dict[str, object]:
    backend: Any = torch.get_device_module(NAME)
    try:
        properties = backend.get_device_properties(index)
        free, _ = backend.mem_get_info(index)
    except RuntimeError as error:
        return {"error": str(error)}
    names = [name for name in dir(type(properties)) if not name.startswith("_")]
    others = {name: getattr(properties, name) for name in names if name not in ("name", "uuid")}
    others["card_uuid"] = properties.card_uuid.hex()
    others["kernel_format"] = _kernel_format(backend, index)
    others["links"] = _links(index)
    others["computed_dtypes"] = ", ".join(_C.computed_dtypes(index))
    known = {"name": properties.name, "uuid": properties.uuid.hex(), "free_memory": free}
    return {**known, **others}


def _links(index: int) -> dict[str, str]:
    backend: Any = torch.get_device_module(NAME)
    others = [other for other in range(backend.device_count()) if other != index]
    found: dict[str, str] = {}
    for other in ("cpu", *others):
        kind, bandwidth = backend.get_device_link(index, other)
        speed = f", {bandwidth / 1e9:.0f} GB/s" if bandwidth else ""
        found[str(other)] = f"{kind}{speed}"
    return found


def libraries() -> dict[str, str]:
    """Return the paths of this package's loaded shared libraries and of their dependencies."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = dict.fromkeys(Path(line.split(maxsplit=5)[5]) for line in lines if ".so" in line)
    homes = tuple(f"{folder}/" for folder in folders)
    own = {path.name: path for path in mapped if str(path).startswith(homes)}
    names = dict.fromkeys(name for path in own.values() for name in needed(path))
    found = {path.name: str(path) for path in own.values()}
    for name in names:
        # The mapped name of a link, libz.so.1, is that of its target, libz.so.1.2.13.
        paths = (path for path in mapped if f"{path.name}.".startswith(f"{name}."))
        found.setdefault(name, str(next(paths, "not loaded")))
    return found


def needed(library: Path) -> list[str]:
    """Return the names of the dependencies of a library, a 64-bit ELF file."""
    image = library.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    headers = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    (dynamic,) = [image[at : at + held] for kind, _, at, _, _, held in headers if kind == _DYNAMIC]
    entries = list(struct.iter_unpack("<QQ", dynamic))
    (address,) = [value for kind, value in entries if kind == _STRINGS]
    (strings,) = [
        at + address - start
        for kind, _, at, start, _, held in headers
        if kind == _LOADED and start <= address < start + held
    ]
    starts = [strings + value for kind, value in entries if kind == _NEEDED]
    return [image[start : image.index(b"\0", start)].decode() for start in starts]
