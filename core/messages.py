"""What one message of a conversation says: its parts, in the order in which they are read."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dumptui.core.placeholder import Placeholder
from dumptui.core.values import as_int, as_mapping, as_text, preview, type_name

Kind: TypeAlias = Literal["text", "thinking", "call", "special", "media", "data"]

_BLOCKS: dict[str, Kind] = {"think": "thinking", "tool_call": "call"}
_OPENING = re.compile("<(think|tool_call)>")
_SPECIAL = re.compile(r"<\|[^|<>]*\|>")
_LONGEST_SPECIAL, _MOST_SPECIALS = 100, 20
_DATA_URL = re.compile(r"data:([^;,]{0,100})[^,]{0,100};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_DEEPEST = 50
"""Levels of nesting that are written out; Python's own JSON gives up at some 1,000."""
_MOST_VALUES = 20_000
"""Values that are written out: a pickle of 1 KB may hold the same list twice in each of fifty lists."""
_MOST_RECORDED = 200_000
"""The same of messages that are printed or copied as they were recorded."""
LONG_DATA = 256
"""From this many characters on, a text without a blank in a part that is no text is taken for encoded data."""
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
KNOWN = {"role", "name", "content", "tool_calls", "tool_call_id", *THOUGHTS}


@dataclass(frozen=True, slots=True)
class Part:
    """`label` says what the part is where its kind doesn't, such as the tool that is called; `call_id` is that of a
    tool call.
    """

    kind: Kind
    text: str
    label: str = ""
    call_id: str | None = None


def parts_of(message: Mapping[str, Any]) -> tuple[Part, ...]:
    """Everything that a message says besides its role and name; thinking before content before tool calls."""
    found = [Part("thinking", as_text(message[key])) for key in THOUGHTS if isinstance(message.get(key), str)]
    found = [part for part in found if part.text]
    calls = message.get("tool_calls")
    content = message.get("content")
    if isinstance(content, str):
        inline = message.get("role") == "assistant" and not found and not calls
        found += read_text(content) if inline else [Part("text", content)] * bool(content)
    elif content is not None:
        found += read_content(content)
    found += read_calls(calls)
    others = {key: value for key, value in message.items() if key not in KNOWN or is_odd(key, value)}
    return (*found, *(Part("data", pretty(value), str(key)) for key, value in others.items() if value is not None))


def is_odd(key: object, value: object) -> bool:
    """A known key whose value is of no type that it is read from."""
    return (key in THOUGHTS and not isinstance(value, str)) or (key == "tool_calls" and not isinstance(value, list))


# Text with blocks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text as it was written (`raw`), and what of it is said where markers stand around that."""

    kind: Kind
    raw: str
    inner: str
    closed: bool = True


def split_blocks(text: str) -> list[Piece]:
    """`<think>` and `<tool_call>` blocks, the special tokens at the end, and the text between; no character is lost."""
    end = end_of_words(text)
    pieces: list[Piece] = []
    at = 0
    first = text.find("</think>", 0, end)
    if first >= 0 and text.find("<think>", 0, first) < 0:  # the chat template wrote the opening mark
        at = first + len("</think>")
        pieces.append(Piece("thinking", text[:at], text[:first]))
    while opening := _OPENING.search(text, at, end):
        pieces += plain_piece("text", text[at : opening.start()])
        closing = f"</{opening[1]}>"
        close = text.find(closing, opening.end(), end)
        at = end if close < 0 else close + len(closing)
        inner = text[opening.end() : end if close < 0 else close]
        pieces.append(Piece(_BLOCKS[opening[1]], text[opening.start() : at], inner, close >= 0))
    return [*pieces, *plain_piece("text", text[at:end]), *plain_piece("special", text[end:])]


def plain_piece(kind: Kind, raw: str) -> list[Piece]:
    return [Piece(kind, raw, raw)] if raw else []


def end_of_words(text: str) -> int:
    """Where the special tokens at the end of a text begin, with the blanks before them."""
    end = len(text)
    for _ in range(_MOST_SPECIALS):
        stripped = text[:end].rstrip()
        start = stripped.rfind("<|", -_LONGEST_SPECIAL)
        if start < 0 or not _SPECIAL.fullmatch(stripped, start):
            break
        end = len(stripped[:start].rstrip())
    return end


def read_text(text: str) -> list[Part]:
    """The parts of an assistant's raw text; blanks between blocks are not shown."""
    pieces = [piece for piece in split_blocks(text) if piece.inner.strip() or piece.kind == "thinking"]
    return [part_of(piece) for piece in pieces]


def part_of(piece: Piece) -> Part:
    text = piece.inner.strip("\n") if piece.kind != "special" else piece.inner.strip()
    if piece.kind == "call":
        return call_of(text, piece.closed)
    return Part(piece.kind, text, "" if piece.closed else "not closed")


def call_of(text: str, closed: bool) -> Part:
    """A tool call written as text: JSON with a name and arguments, else shown as it is."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return Part("call", text, "" if closed else "not closed")
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or call.keys() - {"name", "arguments"}:
        return Part("call", text)
    return Part("call", pretty_arguments(call.get("arguments")), call["name"])


# Structured messages --------------------------------------------------------------------------------------------


def read_calls(calls: object) -> Iterator[Part]:
    for call in calls if isinstance(calls, list) else ():
        fields = as_mapping(call)
        function = as_mapping(fields.get("function"))
        if not function:
            yield Part("call", pretty(call))
            continue
        more = {key: value for key, value in fields.items() if key not in ("id", "type", "function", "index")}
        more |= {key: value for key, value in function.items() if key not in ("name", "arguments")}
        more = {key: value for key, value in more.items() if value is not None}
        text = pretty_arguments(function.get("arguments")) + (f"\n{pretty(more)}" if more else "")
        yield Part("call", text, as_text(function.get("name")), identity(fields.get("id")))


def identity(value: object) -> str | None:
    return None if value is None or value == "" else as_text(value)


def pretty_arguments(arguments: object) -> str:
    """Arguments as indented JSON; a text that is no JSON as it is."""
    if not isinstance(arguments, str):
        return "" if arguments is None else pretty(arguments)
    try:
        return pretty(json.loads(arguments))
    except (ValueError, RecursionError):
        return arguments


def read_content(content: object) -> Iterator[Part]:
    """Content that is no text: a list of parts, or whatever was put there."""
    if not isinstance(content, (list, tuple)):
        yield Part("data", pretty(content))
        return
    for part in content:
        fields = as_mapping(part)
        kind = as_text(fields.get("type"))
        if isinstance(part, str):
            yield Part("text", part)
        elif isinstance(fields.get("text"), str) and not fields.keys() - {"type", "text"}:
            yield Part("text", fields["text"])
        elif fields and kind:
            rest = {key: value for key, value in fields.items() if key != "type"}
            yield Part("media", pretty(rest, bare=True), kind)
        else:
            yield Part("data", pretty(part))


# JSON -----------------------------------------------------------------------------------------------------------


def pretty(value: object, *, bare: bool = False) -> str:
    """A value as indented JSON, media in it by type and size, anything JSON doesn't know by a preview.

    With `bare`, a value that is one text in nested dicts is the text with the names before it.
    """
    value = Naming().name(value)
    path = []
    while bare and isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        path.append(key)
    if bare and isinstance(value, str):
        return f"{'.'.join(path)}: {value}" if path else value
    for key in reversed(path):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False)


@dataclass
class Naming:
    """Values as JSON knows them: arrays and huge numbers become a preview, the deepest levels their type, with `media`
    encoded media their type and size, and what comes after the first `left` values an ellipsis.
    """

    media: bool = True
    left: int = _MOST_VALUES

    def name(self, value: object, depth: int = 0) -> Any:
        self.left -= 1
        if self.left < 0:
            return "…"
        if depth > _DEEPEST:
            return f"<{type_name(value)}>"
        if value is None or isinstance(value, float) or (isinstance(value, int) and as_int(value) is not None):
            return value
        if isinstance(value, str):
            return (self.media and media_name(value)) or value
        if isinstance(value, Mapping):
            return {as_text(key): self.name(one, depth + 1) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.name(one, depth + 1) for one in value]
        if isinstance(value, (bytes, bytearray)):
            return f"<{size_text(len(value))} of bytes>"
        if isinstance(value, Placeholder):
            return {value.qualified_name: self.name(value.state or value.items or list(value.args), depth + 1)}
        return preview(value)


def as_recorded(messages: object) -> Any:
    """Messages for JSON, media as they are."""
    return Naming(media=False, left=_MOST_RECORDED).name(messages)


def media_name(text: str) -> str | None:
    """`<image/png, 12.3 kB>` of a data URL, `<base64, 12.3 kB>` of a long text that is nothing but base64."""
    if match := _DATA_URL.match(text):
        return f"<{match[1] or 'data'}, {size_text(decoded_size(text[match.end() :]))}>"
    if len(text) >= LONG_DATA and is_base64(text[:LONG_DATA]) and _BASE64.fullmatch(text):
        return f"<base64, {size_text(decoded_size(text))}>"
    return None


def is_base64(start: str) -> bool:
    """Letters alone could be a word: encoded bytes have both cases and digits."""
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
