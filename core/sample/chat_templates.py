"""Chat templates: splitting a text into messages by the delimiters around them.

The delimiters are those of the models' public `chat_template`s. A text that isn't clean (a delimiter within a message,
words between two messages, a message without an end) is not split at all: its messages would be guesses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

_SILENT_TEXT = re.compile(r"\s*(?:<think>)?\s*(?:</think>)?\s*")
"""Text that templates add after the last opening, as the start of the model's answer."""
_ROLE_PATTERN = r"(?P<role>[^\n<>|]{1,64})"


@dataclass(frozen=True, slots=True)
class Section:
    """A message of a text; `before` and `after` are its delimiters: `before + content + after` is the whole part."""

    role: str
    before: str
    content: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.content + self.after


@dataclass
class _Bounds:
    """A message that begins at `start`, with content [content_start, end); `end` is None while it is open."""

    role: str
    start: int
    content_start: int
    end: int | None = None

    def section(self, text: str, stop: int) -> Section:
        return Section(
            self.role, text[self.start : self.content_start], text[self.content_start : self.end], text[self.end : stop]
        )


@dataclass(frozen=True)
class Template:
    """A chat template: delimiters as regular expressions, each beginning with `<` or `[`.

    Their group `role` is a role or a key of `roles`. An opening starts a message where none is open; a turning ends one
    message and opens the next. `first` may precede the first message. `stray` matches parts of delimiters, which no
    message may contain. In an `unclosed` template the next opening may end a message; there, only two messages of one
    role in a row show that a text isn't clean.
    """

    name: str
    opening: str
    closing: str
    turning: str = "(?!)(?P<role>)"
    stray: str = "(?!)"
    first: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    unclosed: bool = False

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        turning = self.turning.replace("(?P<role>", "(?P<next>")
        kinds = (
            f"(?P<opening>{self.opening})|(?P<closing>{self.closing})|(?P<turning>{turning})|(?P<stray>{self.stray})"
        )
        return re.compile(rf"(?=[<\[])(?:{kinds})")  # the look-ahead makes it 4 times as fast

    @cached_property
    def _beginning(self) -> re.Pattern[str]:
        return re.compile(rf"(?:{self.first})\s*(?={self.opening})")

    def split(self, text: str, *, continued: bool = False) -> list[Section]:
        """Return the messages of a text, none if the text is not clean; joined, their texts are the text.

        With `continued`, the text begins within a message of the assistant and may end within any message.
        """
        beginning = self._beginning.match(text)
        if not continued and beginning is None:
            return []
        bounds = [_Bounds("assistant", 0, 0)] if continued else []
        if not self._scan(text, bounds) or not self._end(text, bounds, continued):
            return []
        stops = [*(bound.start for bound in bounds[1:]), len(text)]
        sections = [bound.section(text, stop) for bound, stop in zip(bounds, stops, strict=True)]
        return [section for section in sections if section.text]

    def _scan(self, text: str, bounds: list[_Bounds]) -> bool:
        """Append the bounds of each message; return whether the text is clean."""
        position = 0 if bounds else self._beginning.match(text).end()  # type: ignore[union-attr]
        for mark in self._marks.finditer(text, position):
            last = bounds[-1] if bounds and bounds[-1].end is None else None
            role = self._role(mark)
            if self._is_wrong(mark, last, role) or (last is None and text[position : mark.start()].strip()):
                return False
            if last is not None:
                last.end = mark.start()
            if role:
                bounds.append(_Bounds(role, mark.start() if bounds else 0, mark.end()))
            position = mark.end()
        return bounds[-1].end is None or not text[position:].strip()

    def _role(self, mark: re.Match[str]) -> str:
        """Return the role of the message that begins at a mark, or an empty text."""
        word = mark["role"] or mark["next"] or ""
        return self.roles.get(word, word)

    def _is_wrong(self, mark: re.Match[str], last: _Bounds | None, role: str) -> bool:
        """Whether a mark is not allowed at its position; `last` is the message that is open."""
        if mark["stray"] is not None:
            return True
        if mark["opening"] is not None:
            return last is not None and (not self.unclosed or last.role == role)
        return last is None or last.role == role

    def _end(self, text: str, bounds: list[_Bounds], continued: bool) -> bool:
        """End the last message with the text; return whether it may. An empty one becomes part of the previous one."""
        last = bounds[-1]
        if last.end is not None:
            return True
        if len(bounds) > 1 and _SILENT_TEXT.fullmatch(text, last.content_start):
            bounds.pop()
        last.end = len(text)
        return last.role == "assistant" or continued or self.unclosed or last is not bounds[-1]


CHAT_TEMPLATES: Sequence[Template] = (
    Template(
        "ChatML",
        opening=rf"<\|im_start\|>{_ROLE_PATTERN}\n",
        closing=r"<\|im_end\|>(?:<\|endoftext\|>)?",
        stray=r"<\|im_(?:start|end)\|>",
        first=r"<s>|<\|endoftext\|>|<\|begin_of_text\|>|",
    ),
    Template(
        "Llama",
        opening=rf"<\|(?:start_header_id|header_start)\|>{_ROLE_PATTERN}<\|(?:end_header_id|header_end)\|>(?:\n\n)?",
        closing=r"<\|(?:eot_id|eom_id|eot|eom)\|>(?:<\|end_of_text\|>)?",
        stray=r"<\|(?:start_header_id|header_start|end_header_id|header_end)\|>",
        first=r"(?:<\|begin_of_text\|>)*",
        roles={"ipython": "tool"},
    ),
    Template(
        "Gemma",
        opening=rf"(?:<start_of_turn>|<\|turn>){_ROLE_PATTERN}\n",
        closing=r"(?:<end_of_turn>|<turn\|>)(?:<eos>)?",
        stray=r"<start_of_turn>|<\|turn>",
        first=r"(?:<bos>)*",
        roles={"model": "assistant"},
    ),
    Template(
        "Kimi",
        opening=r"<\|im_(?P<role>user|assistant|system)\|>[^\n<>|]{1,64}<\|im_middle\|>",
        closing=r"<\|im_end\|>",
        stray=r"<\|im_(?:user|assistant|system|middle)\|>",
    ),
    Template(
        "GLM",
        opening=r"<\|(?P<role>system|user|assistant|observation)\|>\n?",
        closing=r"<\|endoftext\|>",
        first=r"(?:\[gMASK\])?\s*(?:<sop>)?",
        roles={"observation": "tool"},
        unclosed=True,
    ),
    Template(
        "DeepSeek",  # its system prompt directly follows the mark that begins the text
        opening=r"(?:<｜tool▁outputs▁begin｜>)?"
        r"<｜(?P<role>User|Assistant|tool▁output▁begin|begin▁of▁sentence(?=｜>[^｜]+<｜User))｜>",
        closing=r"<｜end▁of▁sentence｜>|<｜tool▁output▁end｜>(?=\s*<｜tool▁output▁begin)",
        turning=r"<｜(?P<role>tool▁output▁end)｜>(?:<｜tool▁outputs▁end｜>)?",
        first=r"(?:<｜begin▁of▁sentence｜>(?=<))?",
        roles={
            **{"User": "user", "Assistant": "assistant", "begin▁of▁sentence": "system"},
            **{"tool▁output▁begin": "tool", "tool▁output▁end": "assistant"},
        },
        unclosed=True,
    ),
    Template(
        "Mistral",
        opening=r"\[(?P<role>INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS)\]",
        closing=r"</s>(?:\s*<s>)?|\[/(?:SYSTEM_PROMPT|AVAILABLE_TOOLS)\]|\[/TOOL_RESULTS\](?=\s*\[TOOL_RESULTS)",
        turning=r"\[(?P<role>/INST|/TOOL_RESULTS)\]",
        first=r"(?:<s>)?",
        roles={
            **{"SYSTEM_PROMPT": "system", "AVAILABLE_TOOLS": "tools", "INST": "user", "TOOL_RESULTS": "tool"},
            **{"/INST": "assistant", "/TOOL_RESULTS": "assistant"},
        },
    ),
)


def find_template(text: str) -> Template | None:
    """Return the first template that splits a text into messages."""
    return next((template for template in CHAT_TEMPLATES if template.split(text)), None)
