"""Arrays, dtypes and scalars of numpy in a pickle, rebuilt without numpy's own `__setstate__`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumptui.core.ptfile.placeholder import Placeholder, placeholder
from dumptui.core.ptfile.tensor import Array, claims_more, is_shape

_NUMBERS = frozenset(("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"))


class PickledDtype:
    """A dtype by its code, such as "f4"; BUILD sets the byte order, and whether it is a record."""

    def __init__(self, code: object, *_: object) -> None:
        self.code = code if isinstance(code, str) else ""
        self.order = "="
        self.is_record = False

    def __repr__(self) -> str:
        return f"<numpy.dtype {self.code[:20]!a}>"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, self.order, subarray, names, fields = state[:5]
        self.is_record = not (subarray is names is fields is None)

    def number_type(self) -> np.dtype[Any] | None:
        if self.is_record or self.code not in _NUMBERS:
            return None
        return np.dtype(self.code).newbyteorder(">" if self.order == ">" else "<")


class PickledArray(Array):
    """An array that `_reconstruct` creates empty; BUILD sets shape, dtype and bytes."""

    def __init__(self, *_: object) -> None:
        super().__init__(np.empty(0, np.uint8))

    def __setstate__(self, state: Any) -> None:
        match state:
            case (int(), shape, PickledDtype() as dtype, int() as by_column, bytes() as data):
                values = _values(data, dtype, shape, "F" if by_column else "C")
                if values is not None:
                    Array.__init__(self, values)
                    return
        self._become_placeholder(state)

    def _become_placeholder(self, state: object) -> None:
        """Turn this object, to which the pickle already refers, into a placeholder: it holds objects or records."""
        vars(self).clear()
        vars(self).update(args=(), items=[], state=state)
        self.__class__ = _ObjectArray  # type: ignore[assignment]


class _ObjectArray(Placeholder):
    qualified_name = "numpy.ndarray"


def array_from_buffer(
    data: object, dtype: object, shape: object, order: object, axes: tuple[int, ...] | None = None
) -> Array | Placeholder:
    """Rebuild an array of pickle protocol 5. Order "K" is C order, then transposed to `axes`."""
    if isinstance(data, (bytes, bytearray)) and isinstance(dtype, PickledDtype):
        values = _values(data, dtype, shape, "F" if order == "F" else "C")
        if values is not None:
            return Array(values.transpose(axes) if order == "K" and axes is not None else values)
    return placeholder("numpy.ndarray", data, dtype, shape, order)


def scalar(dtype: object, data: object = None) -> object:
    """Return a numpy scalar as a plain int, float, bool, complex or str."""
    if isinstance(dtype, PickledDtype) and isinstance(data, bytes):
        number = dtype.number_type()
        if number is not None and len(data) == number.itemsize:
            return np.frombuffer(data, number)[0].item()
        if dtype.code.startswith("U"):
            return data.decode("utf-32-be" if dtype.order == ">" else "utf-32-le", "replace").rstrip("\0")
    return placeholder("numpy.generic", dtype, data)


def _values(data: bytes | bytearray, dtype: PickledDtype, shape: Any, order: str) -> NDArray[Any] | None:
    """Return the array, or None when its dtype is not a number."""
    number = dtype.number_type()
    if number is None:
        return None
    if not is_shape(shape) or claims_more(shape, number.itemsize, len(data)):
        raise pickle.UnpicklingError("it describes an array with an impossible shape")
    values = np.frombuffer(data, number)
    if number.kind == "b":
        values = values.view(np.uint8) != 0  # a byte other than 0 and 1 would be neither True nor False
    return values.reshape(shape, order="F" if order == "F" else "C")
