"""A writer of .pt files without torch, in the format of torch.save: numpy arrays become tensors.

The container is a zip of stored entries: `{stem}/data.pkl` and one entry per storage, each aligned to 64 bytes.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ALIGNMENT_BYTES = 64
LOCAL_HEADER = 30
STORAGE_NAMES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}
# pickle imports what it names, so torch's names stand in this module until `_as_torch` renames them.
STORAGE_TYPES = {dtype: type(name, (), {"__module__": __name__}) for dtype, name in STORAGE_NAMES.items()}
globals().update({storage.__name__: storage for storage in STORAGE_TYPES.values()})
BY_DTYPE = {np.dtype(name): storage for name, storage in STORAGE_TYPES.items() if name != "bfloat16"}
NO_HOOKS: OrderedDict[str, Any] = OrderedDict()


class Bfloat16:
    """An array to write as a bfloat16 tensor, for which numpy has no dtype."""

    def __init__(self, values: npt.ArrayLike) -> None:
        bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
        self.bits = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def write_pt(path: str | os.PathLike[str], payload: Any) -> None:
    """Write plain objects, arrays and Bfloat16 so that torch.load reads them, also with `weights_only`.

    Arrays that are parts of one array become views of one storage, as torch.save does with tensors.
    """
    stem = os.path.splitext(os.path.basename(path))[0]
    data = io.BytesIO()
    pickler = _Pickler(data, protocol=2)
    pickler.dump(payload)
    with zipfile.ZipFile(path, "w") as archive:
        _add(archive, f"{stem}/data.pkl", _as_torch(data.getvalue()))
        _add(archive, f"{stem}/byteorder", b"little")
        for storage, array in pickler.storages.values():
            _add(archive, f"{stem}/data/{storage.key}", array.tobytes())
        _add(archive, f"{stem}/version", b"3\n")


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name)
    assert archive.fp is not None
    start = archive.fp.tell() + LOCAL_HEADER + len(name) + 4
    padding = -start % ALIGNMENT_BYTES
    info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    archive.writestr(info, data)


class _Storage(NamedTuple):
    kind: type
    key: str
    size: int


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[int, tuple[_Storage, npt.NDArray[Any]]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if type(obj) is _Storage:
            return ("storage", obj.kind, obj.key, "cpu", obj.size)
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            return self.tensor(obj, BY_DTYPE[obj.dtype])
        if isinstance(obj, Bfloat16):
            return self.tensor(obj.bits, STORAGE_TYPES["bfloat16"])
        return NotImplemented

    def tensor(self, array: npt.NDArray[Any], kind: type) -> Any:
        base = array.base if isinstance(array.base, np.ndarray) else array
        if base.dtype != array.dtype or not base.flags.c_contiguous:
            base = array = np.ascontiguousarray(array)
        if id(base) not in self.storages:
            self.storages[id(base)] = _Storage(kind, str(len(self.storages)), base.size), base
        size = array.itemsize
        offset = 0 if array is base else (_address(array) - _address(base)) // size
        strides = tuple([stride // size for stride in array.strides])
        storage, _ = self.storages[id(base)]
        return _rebuild_tensor_v2, (storage, offset, array.shape, strides, False, NO_HOOKS)


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _rebuild_tensor_v2(*_: Any) -> None:
    """A replacement for the function of this name in torch._utils."""


def _as_torch(data: bytes) -> bytes:
    """Return the pickle with the replacements under torch's names; a global is two lines of text, without a length."""
    module, rebuild = f"c{__name__}\n".encode(), b"_rebuild_tensor_v2\n"
    return data.replace(module + rebuild, b"ctorch._utils\n" + rebuild).replace(module, b"ctorch\n")
