"""Chat templates: the messages of a text in which delimiters stand around each of them.

The delimiters are those of the models' public `chat_template`s. A text that isn't clean (a delimiter within a message,
words between two messages, a message that nobody ended) is not split at all: what its template meant can't be told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

_UNSAID = re.compile(r"\s*(?:<think>)?\s*(?:</think>)?\s*")
"""What templates put behind the last opening, so that the model goes on from there."""
_ROLE = r"(?P<role>[^\n<>|]{1,64})"


@dataclass(frozen=True, slots=True)
class Section:
    """A message where it stands in a text: `before + content + after` is all of it, delimiters included."""

    role: str
    before: str
    content: str
    after: str

    @property
    def text(self) -> str:
        return self.before + self.content + self.after


@dataclass
class _Bounds:
    """A message from `start` on, of which [said, end) is the content; `end` is None as long as it is open."""

    role: str
    start: int
    said: int
    end: int | None = None

    def section(self, text: str, stop: int) -> Section:
        return Section(self.role, text[self.start : self.said], text[self.said : self.end], text[self.end : stop])


@dataclass(frozen=True)
class Template:
    """Delimiters as regular expressions, which begin by `<` or `[`; their group `role` is a key of `roles` or a role.

    An opening stands where no message is open, a turning ends one message and opens the next. `stray` are parts of
    delimiters, which no message may hold. In an `unclosed` template the next opening may be all that ends a message, so
    that only two of one role in a row tell that something is wrong.
    """

    name: str
    opening: str
    closing: str
    turning: str = "(?!)(?P<role>)"
    stray: str = "(?!)"
    first: str = ""
    """What may stand before the first message."""
    roles: Mapping[str, str] = field(default_factory=dict)
    unclosed: bool = False

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        turning = self.turning.replace("(?P<role>", "(?P<next>")
        some = f"(?P<opening>{self.opening})|(?P<closing>{self.closing})|(?P<turning>{turning})|(?P<stray>{self.stray})"
        return re.compile(rf"(?=[<\[])(?:{some})")  # to look there first takes a quarter of the time

    @cached_property
    def _beginning(self) -> re.Pattern[str]:
        return re.compile(rf"(?:{self.first})\s*(?={self.opening})")

    def split(self, text: str, *, goes_on: bool = False) -> list[Section]:
        """The messages of a text that is all template, else none; their texts in a row are the text.

        A text that `goes_on` begins within a message of the assistant and may end within any.
        """
        beginning = self._beginning.match(text)
        if not goes_on and beginning is None:
            return []
        bounds = [_Bounds("assistant", 0, 0)] if goes_on else []
        if not self._scan(text, bounds) or not self._end(text, bounds, goes_on):
            return []
        stops = [*(one.start for one in bounds[1:]), len(text)]
        sections = [one.section(text, stop) for one, stop in zip(bounds, stops, strict=True)]
        return [one for one in sections if one.text]

    def _scan(self, text: str, bounds: list[_Bounds]) -> bool:
        """Find where messages begin and end; whether the text is clean."""
        at = 0 if bounds else self._beginning.match(text).end()  # type: ignore[union-attr]
        for mark in self._marks.finditer(text, at):
            last = bounds[-1] if bounds and bounds[-1].end is None else None
            role = self._role(mark)
            if self._is_wrong(mark, last, role) or (last is None and text[at : mark.start()].strip()):
                return False
            if last is not None:
                last.end = mark.start()
            if role:
                bounds.append(_Bounds(role, mark.start() if bounds else 0, mark.end()))
            at = mark.end()
        return bounds[-1].end is None or not text[at:].strip()

    def _role(self, mark: re.Match[str]) -> str:
        """Of the message that begins here, if one does."""
        word = mark["role"] or mark["next"] or ""
        return self.roles.get(word, word)

    def _is_wrong(self, mark: re.Match[str], last: _Bounds | None, role: str) -> bool:
        """Whether a mark can't stand here, `last` being the message that is open."""
        if mark["stray"] is not None:
            return True
        if mark["opening"] is not None:
            return last is not None and (not self.unclosed or last.role == role)
        return last is None or last.role == role

    def _end(self, text: str, bounds: list[_Bounds], goes_on: bool) -> bool:
        """A last message that is open ends with the text, if it may; one that says nothing is left to those before."""
        last = bounds[-1]
        if last.end is not None:
            return True
        if len(bounds) > 1 and _UNSAID.fullmatch(text, last.said):
            bounds.pop()
        last.end = len(text)
        return last.role == "assistant" or goes_on or self.unclosed or last is not bounds[-1]


TEMPLATES: Sequence[Template] = (
    Template(
        "ChatML",
        opening=rf"<\|im_start\|>{_ROLE}\n",
        closing=r"<\|im_end\|>(?:<\|endoftext\|>)?",
        stray=r"<\|im_(?:start|end)\|>",
        first=r"<s>|<\|endoftext\|>|<\|begin_of_text\|>|",
    ),
    Template(
        "Llama",
        opening=rf"<\|(?:start_header_id|header_start)\|>{_ROLE}<\|(?:end_header_id|header_end)\|>(?:\n\n)?",
        closing=r"<\|(?:eot_id|eom_id|eot|eom)\|>(?:<\|end_of_text\|>)?",
        stray=r"<\|(?:start_header_id|header_start|end_header_id|header_end)\|>",
        first=r"(?:<\|begin_of_text\|>)*",
        roles={"ipython": "tool"},
    ),
    Template(
        "Gemma",
        opening=rf"(?:<start_of_turn>|<\|turn>){_ROLE}\n",
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
        "DeepSeek",  # whose system prompt stands right behind the mark that begins the text
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
    """The template that the messages of a text stand in."""
    return next((template for template in TEMPLATES if template.split(text)), None)
