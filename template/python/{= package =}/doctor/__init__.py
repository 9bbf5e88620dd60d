"""What of PyTorch this backend answers for: ``python -m <package>.doctor``.

Each surface that PyTorch offers a backend is tried, on the device; the headers of the installed PyTorch
are searched for virtual functions that nobody here has thought of. Its modules are loaded by that command
alone.
"""

from __future__ import annotations

__all__: list[str] = []
