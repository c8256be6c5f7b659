"""The parts of a message, in reading order: thinking, content, tool calls, then other keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dumptui.core.formats.media import bytes_name, media_name, named
from dumptui.core.formats.values import as_int, as_mapping, as_text, preview, type_name
from dumptui.core.ptfile.placeholder import Placeholder

Kind: TypeAlias = Literal["text", "thinking", "call", "special", "media", "data"]

_BLOCK_KINDS: dict[str, Kind] = {"think": "thinking", "tool_call": "call"}
_BLOCK_OPENING = re.compile("<(think|tool_call)>")
_SPECIAL_TOKEN = re.compile(r"<\|[^|<>]*\|>")
_LONGEST_SPECIAL, _MOST_SPECIALS = 100, 20
_MAX_NESTING = 50
"""Levels of nesting that are written out; Python's own JSON gives up at about 1,000."""
_MOST_VALUES = 20_000
"""Values that are written out: in a pickle of 1 KB, fifty nested lists may each contain the next one twice."""
_MOST_RECORDED = 200_000
"""Values that are written out of messages that are printed or copied as recorded."""
UNCLOSED_NOTE = "not closed"
"""The label of a block that has no closing mark."""
THINKING_KEYS = ("reasoning_content", "reasoning", "thinking")
KNOWN_KEYS = {"role", "name", "content", "tool_calls", "function_call", "tool_call_id", *THINKING_KEYS}
ARGUMENT_KEYS = ("arguments", "input", "parameters")
"""The key of a call's arguments in OpenAI's messages, in Anthropic's, in Llama's templates."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message.

    `label` says more than the kind, such as the name of the called tool; `call_id` is the id of a tool call, `gap` the
    blanks before special tokens.
    """

    kind: Kind
    text: str
    label: str = ""
    call_id: str | None = None
    gap: str = ""


def parts_of(message: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return all of a message but role and name: thinking, content, tool calls, then other keys."""
    parts = [Part("thinking", as_text(message[key])) for key in THINKING_KEYS if isinstance(message.get(key), str)]
    parts = [part for part in parts if part.text]
    calls = dumped_calls(message)
    content = message.get("content")
    if isinstance(content, str):
        if content:
            parts += read_text(content) if is_raw(message) else [Part("text", content)]
    elif content is not None:
        parts += read_content(content)
    parts += map(read_call, calls)
    other_keys = {key: value for key, value in message.items() if key not in KNOWN_KEYS or is_odd(key, value)}
    return (
        *parts,
        *(Part("data", pretty(value), as_text(key)) for key, value in other_keys.items() if value is not None),
    )


def is_odd(key: object, value: object) -> bool:
    """Whether a known key has a value of a type that is not read from it."""
    if key == "function_call":
        return not as_mapping(value)
    return (key in THINKING_KEYS and not isinstance(value, str)) or (
        key == "tool_calls" and not isinstance(value, (list, tuple))
    )


def is_raw(message: Mapping[str, Any]) -> bool:
    """Whether the content is the raw text of the model, with thoughts and tool calls as blocks in it."""
    thoughts = any(isinstance(message.get(key), str) and message[key] for key in THINKING_KEYS)
    return message.get("role") == "assistant" and not thoughts and not dumped_calls(message)


def count_calls(message: Mapping[str, Any]) -> int:
    """Return how many tool calls a message makes, the number of its parts of that kind."""
    content = message.get("content")
    blocks = split_blocks(content) if isinstance(content, str) and "<tool_call>" in content and is_raw(message) else []
    return len(dumped_calls(message)) + sum(piece.kind == "call" and bool(piece.inner.strip()) for piece in blocks)


# Text with blocks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text as written (`raw`), and its content without the marks around it (`inner`)."""

    kind: Kind
    raw: str
    inner: str
    closed: bool = True


def split_blocks(text: str) -> list[Piece]:
    """Split a text into `<think>` and `<tool_call>` blocks, the text between them and special tokens at the end.

    Joined, the raw texts of the pieces are the text.
    """
    end = end_of_words(text)
    pieces: list[Piece] = []
    position = 0
    first = text.find("</think>", 0, end)
    if first >= 0 and text.find("<think>", 0, first) < 0:  # the chat template wrote the opening mark
        position = first + len("</think>")
        pieces.append(Piece("thinking", text[:position], text[:first]))
    while opening := _BLOCK_OPENING.search(text, position, end):
        pieces += plain_piece("text", text[position : opening.start()])
        closing = f"</{opening[1]}>"
        close = text.find(closing, opening.end(), end)
        position = end if close < 0 else close + len(closing)
        inner = text[opening.end() : end if close < 0 else close]
        pieces.append(Piece(_BLOCK_KINDS[opening[1]], text[opening.start() : position], inner, close >= 0))
    return [*pieces, *plain_piece("text", text[position:end]), *plain_piece("special", text[end:])]


def plain_piece(kind: Kind, raw: str) -> list[Piece]:
    return [Piece(kind, raw, raw)] if raw else []


def end_of_words(text: str) -> int:
    """Return where the special tokens at the end of a text begin, with the blanks before them."""
    end = len(text)
    for _ in range(_MOST_SPECIALS):
        stripped = text[:end].rstrip()
        start = stripped.rfind("<|", -_LONGEST_SPECIAL)
        if start < 0 or not _SPECIAL_TOKEN.fullmatch(stripped, start):
            break
        end = len(stripped[:start].rstrip())
    return end


def read_text(text: str) -> list[Part]:
    """Return the parts of an assistant's raw text, without the blanks between blocks."""
    pieces = [piece for piece in split_blocks(text) if piece.inner.strip() or piece.kind == "thinking"]
    return [part_of(piece) for piece in pieces]


def part_of(piece: Piece) -> Part:
    if piece.kind == "special":
        gap = piece.raw[: len(piece.raw) - len(piece.raw.lstrip())]
        return Part("special", piece.inner.strip(), gap=gap)
    text = piece.inner.strip("\n")
    if piece.kind == "call":
        return call_of(text, piece.closed)
    return Part(piece.kind, text, "" if piece.closed else UNCLOSED_NOTE)


def call_of(text: str, closed: bool) -> Part:
    """Return a tool call from its text: JSON with a name and arguments, else the text as it is."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return Part("call", text, "" if closed else UNCLOSED_NOTE)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or call.keys() - {"name", "arguments"}:
        return Part("call", text)
    return Part("call", pretty_arguments(call.get("arguments")), call["name"])


# Structured messages --------------------------------------------------------------------------------------------


def dumped_calls(message: Mapping[str, Any]) -> Sequence[object]:
    """Return the structured calls of a message; older messages have a single one in `function_call`."""
    calls = message.get("tool_calls")
    single = [message["function_call"]] if as_mapping(message.get("function_call")) else []
    return [*calls, *single] if isinstance(calls, (list, tuple)) else single


def read_call(call: object) -> Part:
    """Read a call: `{"function": {"name", "arguments"}}`, `{"name", "arguments"}`, or either as JSON text."""
    fields = as_mapping(parsed(call) if isinstance(call, str) else call)
    function = fields.get("function")
    inner = {"name": function} if isinstance(function, str) else as_mapping(function)
    if not inner and not isinstance(fields.get("name"), str):
        return Part("call", pretty(call))
    call_fields = {**fields, **inner}
    arguments = next((key for key in ARGUMENT_KEYS if call_fields.get(key) is not None), "arguments")
    shown_keys = {"id", "call_id", "type", "function", "index", "name", arguments}
    extra = {key: value for key, value in call_fields.items() if key not in shown_keys and value is not None}
    text = pretty_arguments(call_fields.get(arguments)) + (f"\n{pretty(extra)}" if extra else "")
    call_id = identity(fields.get("id")) or identity(fields.get("call_id"))
    return Part("call", text, as_text(call_fields.get("name")), call_id)


def parsed(text: str) -> object:
    """Return the value of a JSON text; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def identity(value: object) -> str | None:
    return None if value is None or value == "" else as_text(value)


def pretty_arguments(arguments: object) -> str:
    """Return arguments as indented JSON; a text that is not JSON as it is."""
    if not isinstance(arguments, str):
        return "" if arguments is None else pretty(arguments)
    value = parsed(arguments)
    return arguments if value is None else pretty(value)


def read_content(content: object) -> Iterator[Part]:
    """Yield the parts of content that is not a text: a list of parts, or any other value."""
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
    """Return a value as indented JSON, with media by type and size, and a preview of anything JSON doesn't know.

    With `bare`, a value that is one text in nested dicts becomes "key.key: text".
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
    """A converter of values to what JSON knows.

    Arrays and huge numbers become a preview, the deepest levels their type and, with `media`, encoded media their type
    and size. After `remaining` values, each further one becomes an ellipsis.
    """

    media: bool = True
    remaining: int = _MOST_VALUES

    def name(self, value: object, depth: int = 0) -> Any:
        self.remaining -= 1
        if self.remaining < 0:
            return "…"
        if depth > _MAX_NESTING:
            return f"<{type_name(value)}>"
        if value is None or isinstance(value, float) or (isinstance(value, int) and as_int(value) is not None):
            return value
        if isinstance(value, str):
            return (media_name(value) or named(value)) if self.media else value
        if isinstance(value, Mapping):
            return {as_text(key): self.name(entry, depth + 1) for key, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.name(entry, depth + 1) for entry in value]
        if isinstance(value, (bytes, bytearray)):
            return bytes_name(value)
        if isinstance(value, Placeholder):
            return {value.qualified_name: self.name(value.state or value.items or list(value.args), depth + 1)}
        return preview(value)


def as_recorded(messages: object) -> Any:
    """Return messages as JSON values, media as they are."""
    return Naming(media=False, remaining=_MOST_RECORDED).name(messages)
