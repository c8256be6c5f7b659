"""Unpickling without running anything: an allow-list of stand-ins, and a Placeholder for every other name.

Nothing of the real torch, numpy or builtins is handed to the file. What is handed to it is shared between
loads, so all of it refuses to be changed: the opcode BUILD finds a `__setstate__` that raises.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from numpy.typing import NDArray

from dumptui.core.ptfile import array_objects, numpy_objects, torch_objects
from dumptui.core.ptfile.placeholder import Placeholder, placeholder, placeholder_class
from dumptui.core.ptfile.tensor import DTYPES, Array, Tensor, is_known, is_size

_LONGEST_RANGE = 1 << 20


class Storages(Protocol):
    def storage(self, key: str, dtype: str, count: int) -> Tensor:
        """Return all `count` elements of a storage; raises DumpError when the file does not hold them."""


class Feed(Protocol):
    def peek(self, n: int, /) -> bytes: ...
    def read(self, n: int, /) -> bytes: ...
    def readinto(self, buffer: memoryview, /) -> int: ...
    def readline(self) -> bytes: ...


class Unpickler(pickle.Unpickler):
    """An unpickler that runs no code of the file.

    `load()` raises various exceptions for a broken pickle, and DumpError for storages that the file does not hold.
    """

    def __init__(self, feed: Feed, storages: Storages, arrays: Sequence[NDArray[Any]] = ()) -> None:
        """`arrays` are the lists of numbers that were cut out of the pickle; their index is the persistent id."""
        super().__init__(feed)
        self._storages = storages
        self._arrays = arrays
        self._placeholders: dict[tuple[str, str], type[Placeholder]] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "__builtin__":  # as protocol 2 spells it, in names of Python 2
            module = "builtins"
        known = KNOWN_GLOBALS.get((module, name))
        if known is not None:
            return known
        if (module, name) not in self._placeholders:
            self._placeholders[module, name] = placeholder_class(f"{module}.{name}")
        return self._placeholders[module, name]

    def persistent_load(self, pid: Any) -> Tensor | Array | Placeholder:
        if type(pid) is int:
            return Array(self._arrays[pid])
        kind, dtype, key, _device, count = pid
        if kind != "storage" or type(key) is not str or not is_size(count):
            raise pickle.UnpicklingError("it names a storage in a form torch does not write")
        if not is_known(dtype):  # quantized
            return placeholder("torch.Storage", *pid)
        return self._storages.storage(key, dtype, count)


class StandIn(partial[object]):
    """A function that the file may call in place of the real one."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it tries to change a function")


class OrderedDict(dict[Any, Any]):
    """A replacement that is given as a class, for speed: every tensor names one. BUILD on a class fails."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Ignore the `_metadata` of a module's state_dict."""


def _default_dict(_factory: object = None, *pairs: Any) -> dict[Any, Any]:
    return dict(*pairs)


def _encode(text: str, encoding: str = "") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("it encodes text in a way pickle does not")
    return str.encode(text, "latin-1")


def _bytes(content: object = b"", encoding: str = "") -> bytes:
    """Return bytes from bytes or text; never from a number, which would be a size."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return _encode(content, encoding)
    raise pickle.UnpicklingError("it makes bytes of something else")


def _items(items: object = ()) -> list[Any] | tuple[Any, ...]:
    if isinstance(items, (list, tuple)):
        return items
    raise pickle.UnpicklingError("it makes a set of something that is not a list")


def _range(*bounds: int) -> range | Placeholder:
    """Return a range; a placeholder if a loop over it would take far longer than reading its 20 bytes."""
    if all(type(bound) is int and abs(bound) < 1 << 62 for bound in bounds):
        values = range(*bounds)
        if len(values) <= _LONGEST_RANGE:
            return values
    return placeholder("builtins.range", *bounds)


def _slice(*bounds: int | None) -> slice | Placeholder:
    # Slices in slices, a million deep, would overflow the C stack when they are freed.
    if all(bound is None or type(bound) is int for bound in bounds):
        return slice(*bounds)
    return placeholder("builtins.slice", *bounds)


def _complex(real: float = 0.0, imaginary: float = 0.0) -> complex:
    return complex(float(real), float(imaginary))


def _rebuild_from_type(function: object, _type: object, args: tuple[Any, ...], state: object) -> object:
    """Return the tensor within a subclass of Tensor, or within a tensor with attributes."""
    if isinstance(function, StandIn) and function in (_TENSOR_STAND_IN, _TENSOR_V3, _PARAMETER_STAND_IN):
        return function(*args)
    return placeholder("torch.Tensor", function, args, state)


_BUILTIN_STAND_INS: dict[str, Callable[..., object]] = {
    "set": lambda *args: set(_items(*args)),
    "frozenset": lambda *args: frozenset(_items(*args)),
    "bytes": _bytes,
    "bytearray": lambda *args: bytearray(_bytes(*args)),
    "complex": _complex,
    "range": _range,
    "xrange": _range,
    "slice": _slice,
}

_PARAMETER_STAND_IN = StandIn(torch_objects.rebuild_parameter)
_TENSOR_STAND_IN = StandIn(torch_objects.rebuild_tensor)
_TENSOR_V3 = StandIn(torch_objects.rebuild_tensor_v3)

KNOWN_GLOBALS: dict[tuple[str, str], object] = {
    ("torch._utils", "_rebuild_tensor"): _TENSOR_STAND_IN,
    ("torch._utils", "_rebuild_tensor_v2"): _TENSOR_STAND_IN,
    ("torch._utils", "_rebuild_tensor_v3"): _TENSOR_V3,
    ("torch._utils", "_rebuild_parameter"): _PARAMETER_STAND_IN,
    ("torch._utils", "_rebuild_parameter_with_state"): _PARAMETER_STAND_IN,
    ("torch._tensor", "_rebuild_from_type_v2"): StandIn(_rebuild_from_type),
    ("torch", "Size"): StandIn(lambda *args: tuple(_items(*args))),
    ("torch", "device"): StandIn(torch_objects.device),
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): StandIn(_default_dict),
    ("_codecs", "encode"): StandIn(_encode),
    ("array", "array"): StandIn(array_objects.array_of),
    ("array", "_array_reconstructor"): StandIn(array_objects.array_of_bytes),
    ("numpy", "dtype"): StandIn(numpy_objects.PickledDtype),
}
for _name in DTYPES:
    KNOWN_GLOBALS["torch", _name] = f"torch.{_name}"
for _name, _dtype in torch_objects.STORAGE_DTYPES.items():
    KNOWN_GLOBALS["torch", _name] = KNOWN_GLOBALS["torch.storage", _name] = _dtype
for _name, _function in _BUILTIN_STAND_INS.items():
    KNOWN_GLOBALS["builtins", _name] = StandIn(_function)
for _core in ("numpy.core", "numpy._core"):  # numpy 1 and 2
    KNOWN_GLOBALS[f"{_core}.multiarray", "_reconstruct"] = StandIn(numpy_objects.PickledArray)
    KNOWN_GLOBALS[f"{_core}.multiarray", "scalar"] = StandIn(numpy_objects.scalar)
    KNOWN_GLOBALS[f"{_core}.numeric", "_frombuffer"] = StandIn(numpy_objects.array_from_buffer)
