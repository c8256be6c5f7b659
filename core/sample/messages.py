"""What one message of a conversation says: its parts, in the order in which they are read."""

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
"""Levels of nesting that are written out; Python's own JSON gives up at some 1,000."""
_MOST_VALUES = 20_000
"""Values that are written out: a pickle of 1 KB may hold the same list twice in each of fifty lists."""
_MOST_RECORDED = 200_000
"""The same of messages that are printed or copied as they were recorded."""
UNCLOSED_NOTE = "not closed"
"""The label of a block that the text ends in."""
THINKING_KEYS = ("reasoning_content", "reasoning", "thinking")
KNOWN_KEYS = {"role", "name", "content", "tool_calls", "function_call", "tool_call_id", *THINKING_KEYS}
ARGUMENT_KEYS = ("arguments", "input", "parameters")
"""What the arguments of a call are named: by OpenAI's messages, by Anthropic's, by Llama's templates."""


@dataclass(frozen=True, slots=True)
class Part:
    """`label` says what the part is where its kind doesn't, such as the tool that is called; `call_id` is that of a
    tool call, `gap` the blanks before special tokens.
    """

    kind: Kind
    text: str
    label: str = ""
    call_id: str | None = None
    gap: str = ""


def parts_of(message: Mapping[str, Any]) -> tuple[Part, ...]:
    """Everything that a message says besides its role and name; thinking before content before tool calls."""
    found = [Part("thinking", as_text(message[key])) for key in THINKING_KEYS if isinstance(message.get(key), str)]
    found = [part for part in found if part.text]
    calls = dumped_calls(message)
    content = message.get("content")
    if isinstance(content, str):
        found += read_text(content) if is_raw(message) else [Part("text", content)] * bool(content)
    elif content is not None:
        found += read_content(content)
    found += map(read_call, calls)
    others = {key: value for key, value in message.items() if key not in KNOWN_KEYS or is_odd(key, value)}
    return (*found, *(Part("data", pretty(value), as_text(key)) for key, value in others.items() if value is not None))


def is_odd(key: object, value: object) -> bool:
    """A known key whose value is of no type that it is read from."""
    if key == "function_call":
        return not as_mapping(value)
    return (key in THINKING_KEYS and not isinstance(value, str)) or (
        key == "tool_calls" and not isinstance(value, (list, tuple))
    )


def is_raw(message: Mapping[str, Any]) -> bool:
    """Whether the content is what the model wrote, thoughts and tool calls in blocks of it."""
    thoughts = any(isinstance(message.get(key), str) and message[key] for key in THINKING_KEYS)
    return message.get("role") == "assistant" and not thoughts and not dumped_calls(message)


def count_calls(message: Mapping[str, Any]) -> int:
    """How many tool calls a message makes: as many as it has parts of that kind."""
    content = message.get("content")
    blocks = split_blocks(content) if isinstance(content, str) and "<tool_call>" in content and is_raw(message) else []
    return len(dumped_calls(message)) + sum(piece.kind == "call" and bool(piece.inner.strip()) for piece in blocks)


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
    while opening := _BLOCK_OPENING.search(text, at, end):
        pieces += plain_piece("text", text[at : opening.start()])
        closing = f"</{opening[1]}>"
        close = text.find(closing, opening.end(), end)
        at = end if close < 0 else close + len(closing)
        inner = text[opening.end() : end if close < 0 else close]
        pieces.append(Piece(_BLOCK_KINDS[opening[1]], text[opening.start() : at], inner, close >= 0))
    return [*pieces, *plain_piece("text", text[at:end]), *plain_piece("special", text[end:])]


def plain_piece(kind: Kind, raw: str) -> list[Piece]:
    return [Piece(kind, raw, raw)] if raw else []


def end_of_words(text: str) -> int:
    """Where the special tokens at the end of a text begin, with the blanks before them."""
    end = len(text)
    for _ in range(_MOST_SPECIALS):
        stripped = text[:end].rstrip()
        start = stripped.rfind("<|", -_LONGEST_SPECIAL)
        if start < 0 or not _SPECIAL_TOKEN.fullmatch(stripped, start):
            break
        end = len(stripped[:start].rstrip())
    return end


def read_text(text: str) -> list[Part]:
    """The parts of an assistant's raw text; blanks between blocks are not shown."""
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
    """A tool call written as text: JSON with a name and arguments, else shown as it is."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return Part("call", text, "" if closed else UNCLOSED_NOTE)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or call.keys() - {"name", "arguments"}:
        return Part("call", text)
    return Part("call", pretty_arguments(call.get("arguments")), call["name"])


# Structured messages --------------------------------------------------------------------------------------------


def dumped_calls(message: Mapping[str, Any]) -> Sequence[object]:
    """The structured calls of a message; `function_call` is the single one of older messages."""
    calls = message.get("tool_calls")
    single = [message["function_call"]] if as_mapping(message.get("function_call")) else []
    return [*calls, *single] if isinstance(calls, (list, tuple)) else single


def read_call(call: object) -> Part:
    """A call as `{"function": {"name", "arguments"}}`, as `{"name", "arguments"}`, or as either in JSON text."""
    fields = as_mapping(parsed(call) if isinstance(call, str) else call)
    function = fields.get("function")
    inner = {"name": function} if isinstance(function, str) else as_mapping(function)
    if not inner and not isinstance(fields.get("name"), str):
        return Part("call", pretty(call))
    said = {**fields, **inner}
    arguments = next((key for key in ARGUMENT_KEYS if said.get(key) is not None), "arguments")
    told = {"id", "call_id", "type", "function", "index", "name", arguments}
    more = {key: value for key, value in said.items() if key not in told and value is not None}
    text = pretty_arguments(said.get(arguments)) + (f"\n{pretty(more)}" if more else "")
    return Part("call", text, as_text(said.get("name")), identity(fields.get("id")) or identity(fields.get("call_id")))


def parsed(text: str) -> object:
    """What a JSON text holds; None of what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def identity(value: object) -> str | None:
    return None if value is None or value == "" else as_text(value)


def pretty_arguments(arguments: object) -> str:
    """Arguments as indented JSON; a text that is no JSON as it is."""
    if not isinstance(arguments, str):
        return "" if arguments is None else pretty(arguments)
    value = parsed(arguments)
    return arguments if value is None else pretty(value)


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
        if depth > _MAX_NESTING:
            return f"<{type_name(value)}>"
        if value is None or isinstance(value, float) or (isinstance(value, int) and as_int(value) is not None):
            return value
        if isinstance(value, str):
            return (media_name(value) or named(value)) if self.media else value
        if isinstance(value, Mapping):
            return {as_text(key): self.name(one, depth + 1) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.name(one, depth + 1) for one in value]
        if isinstance(value, (bytes, bytearray)):
            return bytes_name(value)
        if isinstance(value, Placeholder):
            return {value.qualified_name: self.name(value.state or value.items or list(value.args), depth + 1)}
        return preview(value)


def as_recorded(messages: object) -> Any:
    """Messages for JSON, media as they are."""
    return Naming(media=False, left=_MOST_RECORDED).name(messages)
