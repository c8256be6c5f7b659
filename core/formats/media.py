"""Short names for pictures, sound and other encoded data, which say the kind and the size instead of the data."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence

_DATA_URL = re.compile(r"data:([^;,\s]{0,100})[^,\s]{0,100};base64,(\S*)")
_INNER_URL = re.compile(
    r"data:([\w.+-]{1,60}/[\w.+-]{1,60})?(?:;[\w.=+-]{1,60}){0,4};base64,([A-Za-z0-9+/_%-]{64,}={0,2})"
)
"""A data URL within a text. Below 64 characters of data it stays in the text as it is."""
_BASE64_TEXT = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
LONG_DATA = 256
"""A base64 text of at least this many characters is shown by its size; a shorter one as it is."""
MAGIC_BYTES: Sequence[tuple[int, bytes, str]] = (
    (0, b"\x89PNG\r\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (4, b"ftyp", "video/mp4"),
    (0, b"%PDF-", "application/pdf"),
)
"""The offset and the bytes by which common media types are recognised."""


def bytes_name(data: bytes | bytearray) -> str:
    """Return `<image/png, 12.3 kB>` for known media, else `<12.3 kB of bytes>`."""
    kind = next((kind for offset, magic, kind in MAGIC_BYTES if data[offset : offset + len(magic)] == magic), None)
    return f"<{kind}, {size_text(len(data))}>" if kind else f"<{size_text(len(data))} of bytes>"


def named(text: str) -> str:
    """Return a text in which each data URL is replaced by its kind and size."""
    return _INNER_URL.sub(url_name, text) if ";base64," in text else text


def url_name(url: re.Match[str]) -> str:
    return f"<{url[1] or 'data'}, {size_text(decoded_size(url[2]))}>"


def media_name(text: str) -> str | None:
    """Return `<image/png, 12.3 kB>` for a data URL, `<base64, 12.3 kB>` for a long base64 text, else None."""
    if url := _DATA_URL.fullmatch(text):
        return url_name(url)
    if len(text) >= LONG_DATA and is_base64(text[:LONG_DATA]) and _BASE64_TEXT.fullmatch(text):
        return f"<base64, {size_text(decoded_size(text))}>"
    return None


def is_base64(start: str) -> bool:
    """Whether a text decodes as base64 and has both cases and digits, as letters alone could be a word."""
    if not (any(map(str.isupper, start)) and any(map(str.islower, start)) and any(map(str.isdigit, start))):
        return False
    try:
        base64.b64decode(start[: len(start) // 4 * 4], altchars=b"-_" if "-" in start or "_" in start else None)
    except (binascii.Error, ValueError):
        return False
    return True


def decoded_size(encoded: str) -> int:
    return len(encoded.rstrip("=")) * 3 // 4


def size_text(size: int) -> str:
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
