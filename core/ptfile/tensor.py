"""Tensors and arrays of a dump: type and shape without reading them, and their values as numpy arrays."""

from __future__ import annotations

import math
import sys
from operator import mul
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dumptui.core.ptfile.zip_directory import Entry

Shape: TypeAlias = tuple[int, ...]

_MAX_ITEMS = 1 << 56  # times 16 bytes per item, this fits numpy's 63 bits
_MOST_DIMENSIONS = 32  # of numpy 1
_CONTIGUOUS = (1,)  # the strides of nearly every tensor
SHARED_VALUES = 16 << 20
_REPEATED_BYTES = 64 << 20  # a view may repeat its bytes (expand), but 1 KB must not claim a terabyte


class Source(Protocol):
    """The file that holds a tensor's bytes."""

    @property
    def size(self) -> int: ...
    @property
    def byteorder(self) -> str: ...

    claimed: int
    """Values of all its tensors together."""

    def read(self, storage: Entry, start: int, length: int) -> bytes: ...


class Tensor:
    """A view of one storage of a file, unread until `numpy()`. `offset` and `stride` count elements."""

    __slots__ = ("dtype", "offset", "shape", "source", "storage", "stride")

    def __init__(self, source: Source, storage: Entry, dtype: str, offset: int, shape: Shape, stride: Shape) -> None:
        self.source, self.storage, self.dtype = source, storage, dtype
        self.offset, self.shape, self.stride = offset, shape, stride

    @property
    def size(self) -> int:
        return self.shape[0] if len(self.shape) == 1 else math.prod(self.shape)

    def __len__(self) -> int:
        return _first_dimension(self.shape)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)}>"

    def __setstate__(self, state: object) -> None:
        """Ignore the state that a pickle sets on a finished tensor, the attributes of a subclass."""

    def span(self) -> tuple[int, int]:
        """Return the first byte of this view in its storage, and the end of its last."""
        if 0 in self.shape:
            return 0, 0
        width = ITEMSIZE[self.dtype]
        if self.stride == _CONTIGUOUS:
            return self.offset * width, (self.offset + self.shape[0]) * width
        last = self.offset + sum(map(mul, self.shape, self.stride)) - sum(self.stride)
        return self.offset * width, (last + 1) * width

    def vector(self) -> Tensor:
        """Return a 0-d tensor as a tensor of one value, any other as it is."""
        return self if self.shape else Tensor(self.source, self.storage, self.dtype, self.offset, (1,), _CONTIGUOUS)

    def numpy(self) -> NDArray[Any]:
        """Return the values in a new array, bfloat16 and float8 as float32. Raises DumpError."""
        start, end = self.span()
        values = self.from_bytes(self.source.read(self.storage, start, end - start) if end else b"", start)
        return values if values.flags.writeable else values.copy()

    def from_bytes(self, data: bytes, start: int) -> NDArray[Any]:
        """Return the values in `data`, the bytes of the storage from byte `start` on; a read-only view if numpy has the
        same layout.
        """
        width = ITEMSIZE[self.dtype]
        plain = (
            _NATIVE_CODES.get(self.dtype) if self.stride == _CONTIGUOUS and self.source.byteorder == "little" else None
        )
        if plain is not None and self.shape[0]:  # nearly every tensor of a train file: 4 times as fast
            return np.frombuffer(data, plain, self.shape[0], self.offset * width - start)
        stored = np.dtype(_STORED_CODES[self.dtype]).newbyteorder("<" if self.source.byteorder == "little" else ">")
        strides = tuple(step * width for step in self.stride)
        if not self.size:
            return _widened(np.empty(self.shape, stored), self.dtype)
        return _widened(np.ndarray(self.shape, stored, data, self.offset * width - start, strides), self.dtype)


class Array:
    """A numpy array from the pickle itself, which is in memory already, with the interface of a Tensor."""

    def __init__(self, values: NDArray[Any], dtype: str | None = None) -> None:
        self._values = values
        self.dtype = dtype or values.dtype.name
        self.shape: Shape = values.shape

    @property
    def size(self) -> int:
        return self._values.size

    def __len__(self) -> int:
        return _first_dimension(self.shape)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)}>"

    def vector(self) -> Array:
        return self if self.shape else Array(self._values.reshape(1), self.dtype)

    def numpy(self) -> NDArray[Any]:
        return self._values.astype(self._values.dtype.newbyteorder("="), order="C")


def is_known(dtype: object) -> bool:
    return isinstance(dtype, str) and dtype in _STORED_CODES


def is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < _MAX_ITEMS


def is_shape(value: object) -> bool:
    return type(value) is tuple and len(value) <= _MOST_DIMENSIONS and all(map(is_size, value))


def claims_more(shape: Shape, width: int, held: int) -> bool:
    """Whether a shape needs far more bytes than are held; so does an empty shape with a huge dimension."""
    count = math.prod(shape) or math.prod(side or 1 for side in shape)
    return count * width > held + _REPEATED_BYTES


def most_values(size: int) -> int:
    """How many values a file of `size` bytes may hold, shared ones counted for each that shares them: of 340 kB of
    expanded tensors, or a list that 3,000 samples share, come more than 10 GB. A value takes a byte at least.
    """
    return size + SHARED_VALUES


def _first_dimension(shape: Shape) -> int:
    if not shape:
        raise TypeError("a 0-d tensor has no length")
    return shape[0]


def _widened(stored: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return a native copy in a dtype that numpy has."""
    if dtype == "bfloat16":
        values = np.left_shift(stored, 16, dtype=np.uint32).view(np.float32)
    elif dtype == "bool":
        values = stored != 0  # a byte other than 0 and 1 would be a bool that is neither
    elif dtype in _FLOAT8_FORMATS:
        values = _FLOAT8_FORMATS[dtype][stored]
    else:
        values = stored.astype(stored.dtype.newbyteorder("="), order="C")
    return np.asarray(values)  # of 0-d arrays, all but the last make scalars


def _float8_values(mantissa_bits: int, bias: int, special: dict[int, float]) -> NDArray[np.float32]:
    """Return the values of the 256 codes; `special` has the codes without sign bit that the rule does not cover."""
    values = []
    for code in range(128):
        exponent, mantissa = divmod(code, 1 << mantissa_bits)
        fraction = mantissa / (1 << mantissa_bits)
        value = math.ldexp(1 + fraction, exponent - bias) if exponent else math.ldexp(fraction, 1 - bias)
        values.append(special.get(code, value))
    return np.array([*values, *(-value for value in values)], np.float32)


def _without_negative_zero(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn the code of -0 into the only NaN, as in the fnuz types, which have no infinity."""
    values[0x80] = np.nan
    return values


_FLOAT8_FORMATS = {
    "float8_e4m3fn": _float8_values(3, 7, {0x7F: math.nan}),
    "float8_e5m2": _float8_values(2, 15, {0x7C: math.inf, 0x7D: math.nan, 0x7E: math.nan, 0x7F: math.nan}),
    "float8_e4m3fnuz": _without_negative_zero(_float8_values(3, 8, {})),
    "float8_e5m2fnuz": _without_negative_zero(_float8_values(2, 16, {})),
}

_STORED_CODES = {
    "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16",
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
    "bool": "u1", "bfloat16": "u2", **dict.fromkeys(_FLOAT8_FORMATS, "u1"),
}  # fmt: skip

# Types that need no widening, as numpy has them on a little-endian machine.
_NATIVE_CODES = {
    name: np.dtype(f"<{code}")
    for name, code in _STORED_CODES.items()
    if name not in ("bool", "bfloat16", *_FLOAT8_FORMATS) and sys.byteorder == "little"
}
ITEMSIZE = {name: np.dtype(code).itemsize for name, code in _STORED_CODES.items()}

DTYPES = tuple(_STORED_CODES)
"""The torch dtypes that can be read, named without "torch."."""
