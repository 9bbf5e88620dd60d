"""The numpy types of elements, by the names of the device's element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name, None) or name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
}

# The numpy type of each element type; an unsigned integer of its size if numpy has none.
STORED: dict[str, np.dtype[Any]] = DTYPES | {
    name: np.dtype(getattr(ml_dtypes, name, None) or bits)
    for name, bits in (
        *(("uint16", "uint16"), ("uint32", "uint32"), ("uint64", "uint64")),
        *(("float8_e4m3fn", "uint8"), ("float8_e5m2", "uint8"), ("float8_e4m3fnuz", "uint8")),
        *(("float8_e5m2fnuz", "uint8"), ("float8_e8m0fnu", "uint8"), ("complex32", "uint32")),
        *(("float4_e2m1fn_x2", "uint8"), ("int4x2", "uint8")),
    )
}
