"""The directory of the zip that torch.save writes: the position of each entry. No entry's data is read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.snapshot import Truncated

Read = Callable[[int, int], bytes]
"""`read(start, length)` returns exactly that part of the file or raises DumpError."""

LOCAL_SIGNATURE = b"PK\3\4"
LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Signature, and the lengths of the name and the extra fields that follow it; then comes the data."""
_EXTRA_FIELD = struct.Struct("<2sH")
_DIRECTORY_RECORD = struct.Struct("<4s4xHHxxxxIIIHHH8xI")
_END_RECORD = struct.Struct("<4s8xIIH")
_END64_LOCATOR = struct.Struct("<4s4xQ4x")
_ZIP64_END_RECORD = struct.Struct("<4s36xQQ")
_LONGEST_COMMENT = 0xFFFF
_PADDING_FIELD_ID = b"FB"
_IN_EXTRA = 0xFFFFFFFF  # the value is in the zip64 extra field


class Entry(NamedTuple):
    header: int
    """Offset of the local header, which has the offset of the data (torch aligns data to 64 bytes)."""
    size: int
    """Bytes in the file, compressed or not."""
    crc: int
    """The checksum; 0 when the writer did not compute it (torch.serialization.set_crc32_options(False))."""
    stored: bool
    """False if it is compressed or encrypted."""
    name: bytes
    """The name with the root folder, as in the local header."""


class Directory(NamedTuple):
    entries: dict[str, Entry]
    """Entries by name without the root folder (the stem of the saved file): "data.pkl", "data/0"."""
    start: int
    """Offset at which the entries end and the directory begins."""


def read_directory(path: str, size: int, read: Read) -> Directory:
    """Read the directory of a zip. Raises Truncated when it is missing, or an entry lies beyond its start."""
    length, start = _find_directory(path, size, read)
    try:
        entries = _entries(read(start, length))
    except (struct.error, UnicodeDecodeError) as error:
        raise DumpError(path, "its zip directory is damaged") from error
    for name, entry in entries.items():
        if entry.header + LOCAL_HEADER.size + entry.size > start:
            raise Truncated(path, f"its zip entry {name[:40]!a} lies past the end of the data")
    return Directory(entries, start)


def data_distance(data: bytes, header: int, name: bytes) -> int | None:
    """Return the distance from a local header to its data; None if the header is incomplete or has another name.

    No checksum covers it, and a wrong bit in one of its lengths would show the bytes of a neighbour. So complete extra
    fields must follow the name, each a tag and a length of 2 bytes and its data. torch's padding comes last.
    """
    start = header + LOCAL_HEADER.size
    if len(data) < start:
        return None
    signature, n_name, n_extra = LOCAL_HEADER.unpack_from(data, header)
    extra = start + n_name
    end: int = extra + n_extra
    if signature != LOCAL_SIGNATURE or data[start:extra] != name or len(data) < end:
        return None
    tag = b""
    while extra + _EXTRA_FIELD.size <= end and tag != _PADDING_FIELD_ID:
        tag, length = _EXTRA_FIELD.unpack_from(data, extra)
        extra += _EXTRA_FIELD.size + length
    return end - header if extra == end else None


def _find_directory(path: str, size: int, read: Read) -> tuple[int, int]:
    start_of_tail = max(0, size - _END_RECORD.size - _LONGEST_COMMENT)
    tail = read(start_of_tail, size - start_of_tail)
    position = tail.rfind(b"PK\5\6")
    while position >= 0 and len(tail) - position >= _END_RECORD.size:
        _, length, start, comment = _END_RECORD.unpack_from(tail, position)
        end = start_of_tail + position
        if position + _END_RECORD.size + comment == len(tail):
            if _IN_EXTRA in (length, start):
                length, start, end = _find_directory64(path, end, read)
            if start + length > end:
                raise Truncated(path, "its zip directory lies past its end")
            return length, start
        position = tail.rfind(b"PK\5\6", 0, position)
    raise Truncated(path, "is truncated: the zip directory at its end is missing")


def _find_directory64(path: str, end: int, read: Read) -> tuple[int, int, int]:
    if end >= _END64_LOCATOR.size + _ZIP64_END_RECORD.size:
        signature, position = _END64_LOCATOR.unpack(read(end - _END64_LOCATOR.size, _END64_LOCATOR.size))
        if signature == b"PK\6\7" and position <= end - _END64_LOCATOR.size - _ZIP64_END_RECORD.size:
            signature, length, start = _ZIP64_END_RECORD.unpack(read(position, _ZIP64_END_RECORD.size))
            if signature == b"PK\6\6":
                return length, start, position
    raise DumpError(path, "its zip64 directory is damaged")


def _entries(directory: bytes) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    position, end = 0, len(directory)
    while position < end:
        signature, flags, method, crc, packed, size, n_name, n_extra, n_comment, header = _DIRECTORY_RECORD.unpack_from(
            directory, position
        )
        if signature != b"PK\1\2":
            raise struct.error("no directory record here")
        start = position + _DIRECTORY_RECORD.size
        position = start + n_name
        name = directory[start:position]
        if _IN_EXTRA in (packed, size, header):
            packed, header = _zip64_values(directory[position : position + n_extra], size, packed, header)
        position += n_extra + n_comment
        entries[name[name.find(b"/") + 1 :].decode()] = Entry(header, packed, crc, method == 0 and not flags & 1, name)
    return entries


def _zip64_values(extra: bytes, size: int, packed: int, header: int) -> tuple[int, int]:
    """Return packed size and header offset; the zip64 field has 8 bytes for each of the three that did not fit."""
    position = 0
    while position < len(extra):
        tag, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if tag == 1:
            values = [value for (value,) in struct.iter_unpack("<Q", extra[position : position + length])]
            missing = [i for i, value in enumerate((size, packed, header)) if value == _IN_EXTRA]
            by_index = dict(zip(missing, values, strict=False))
            return by_index.get(1, packed), by_index.get(2, header)
        position += length
    return packed, header
