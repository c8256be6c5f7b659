"""Python's own `array.array` as a pickle holds it: read as the numbers it is of."""

from __future__ import annotations

import numpy as np

from dumptui.core.ptfile.placeholder import Placeholder, placeholder
from dumptui.core.ptfile.tensor import Array

_CODES = {"b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8", "q": "i8", "Q": "u8",
          "f": "f4", "d": "f8"}  # fmt: skip
# What a machine of another byte order could read, by the number that stands for it from protocol 3 on.
_FORMATS = ("u1", "i1", *(order + code for code in ("u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8") for order in "<>"))
_NUMBERS = {int, float}


def array_of(code: object = "", items: object = ()) -> Array | Placeholder:
    """What protocol 2 calls, with a list."""
    dtype = _CODES.get(code) if isinstance(code, str) else None
    if dtype is not None and isinstance(items, Array):  # a long list, read already
        return items
    if dtype is not None and isinstance(items, (list, tuple)) and _NUMBERS.issuperset(map(type, items)):
        try:
            return Array(np.array(items, dtype))
        except OverflowError:
            return placeholder("array.array", code, items)
    return placeholder("array.array", code, items)


def array_of_bytes(kind: object, code: object, number: object, data: object) -> Array | Placeholder:
    """What protocols 3 to 5 call."""
    if type(number) is int and 0 <= number < len(_FORMATS) and isinstance(data, bytes):
        dtype = np.dtype(_FORMATS[number])
        if len(data) % dtype.itemsize == 0:
            return Array(np.frombuffer(data, dtype))
    return placeholder("array.array", code, number, data)
