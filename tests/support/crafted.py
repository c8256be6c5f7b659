"""Files that torch.save would not write: zips and pickles put together byte by byte."""

from __future__ import annotations

import pickle
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Raw(bytes):
    """Opcodes, as they are."""


def name(module: str, qualified_name: str) -> Raw:
    return Raw(f"c{module}\n{qualified_name}\n".encode())


def call(function: Raw, *args: Any) -> Raw:
    return Raw(function + opcodes(args) + pickle.REDUCE)


def build(target: Raw, state: Any) -> Raw:
    return Raw(target + opcodes(state) + pickle.BUILD)


def storage(count: int, kind: str = "FloatStorage", key: str = "0") -> Raw:
    pid = ("storage", name("torch", kind), key, "cpu", count)
    return Raw(opcodes(pid) + pickle.BINPERSID)


def tensor(base: Raw, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *more: Any) -> Raw:
    return call(name("torch._utils", "_rebuild_tensor_v2"), base, offset, shape, stride, False, {}, *more)


def opcodes(value: Any) -> bytes:
    """The opcodes that leave `value` on the stack; Raw parts may stand anywhere in it."""
    match value:
        case Raw():
            return value
        case tuple():
            return pickle.MARK + b"".join(map(opcodes, value)) + pickle.TUPLE
        case list():
            return pickle.EMPTY_LIST + pickle.MARK + b"".join(map(opcodes, value)) + pickle.APPENDS
        case dict():
            pairs = b"".join(opcodes(key) + opcodes(item) for key, item in value.items())
            return pickle.EMPTY_DICT + pickle.MARK + pairs + pickle.SETITEMS
    return pickle.dumps(value, 2)[2:-1]


def program(value: Any) -> bytes:
    return pickle.PROTO + b"\2" + opcodes(value) + pickle.STOP


def write_pt(path: Path, data_pkl: bytes, storages: Mapping[str, bytes] | None = None, **options: Any) -> Path:
    entries: dict[str, bytes | int] = {"data.pkl": data_pkl}
    entries.update({f"data/{key}": data for key, data in (storages or {}).items()})
    return write_zip(path, entries, **options)


def write_zip(path: Path, entries: Mapping[str, bytes | int], crc: bool = True, zip64: bool = False) -> Path:
    """Stored entries under a root folder. An entry that is a number is a hole of so many bytes."""
    directory = b""
    with path.open("wb") as file:
        for entry, data in entries.items():
            encoded, header = f"root/{entry}".encode(), file.tell()
            size = data if isinstance(data, int) else len(data)
            checksum = 0 if isinstance(data, int) or not crc else zlib.crc32(data)
            in_header = 0xFFFFFFFF if zip64 else size
            extra = struct.pack("<HHQQQ", 1, 24, size, size, header) if zip64 else b""
            file.write(struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 0, 0, 0, checksum, in_header, in_header,
                                   len(encoded), len(extra)) + encoded + extra)  # fmt: skip
            if isinstance(data, int):
                file.seek(data, 1)
            else:
                file.write(data)
            directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, 0, checksum, in_header, in_header,
                                     len(encoded), len(extra), 0, 0, 0, 0, 0xFFFFFFFF if zip64 else header)  # fmt: skip
            directory += encoded + extra
        start = file.tell()
        file.write(directory)
        count, length, at = len(entries), len(directory), start
        if zip64:
            end = file.tell()
            file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, start))
            file.write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
            count, length, at = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, length, at, 0))
    return path


def entries_of(path: Path) -> dict[str, bytes]:
    """What a file of torch.save holds, without the root folder."""
    with zipfile.ZipFile(path) as archive:
        return {entry.partition("/")[2]: archive.read(entry) for entry in archive.namelist()}
