"""Text from dumps made safe for a terminal, measured and cut in terminal cells."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

ELLIPSIS = "…"

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)}
_CONTROL_PICTURES |= {0x09: "⇥", 0x0A: "⏎", 0x7F: "␡", 0xA0: "⍽"}

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_SHOWN_BLANKS = {" ", "\u3000"}

# Printable by category, yet invisible (fillers, variation selectors, joiners) or of a width on which
# terminals disagree (emoji skin tones: 0 cells in some, 2 in others).
_HIDDEN_RANGES = [
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0x1F3FB, 0x1F3FF),
    (0xE0100, 0xE01EF),
]

_MARK_CATEGORIES = {"Mn", "Mc", "Me"}
_JOINED_JAMO = [(0x1160, 0x11FF), (0xD7B0, 0xD7FF)]  # letters by category, drawn onto the one before
# Wide since Unicode 16 and in rich's tables; Pythons before 3.14 still call them narrow.
_WIDENED_RANGES = [(0x2630, 0x2637), (0x268A, 0x268F), (0x4DC0, 0x4DFF), (0x1D300, 0x1D356), (0x1D360, 0x1D376)]


def _within(code: int, ranges: list[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in ranges)


class _StandIns(dict[int, str]):
    """The text shown for a code point, computed when first needed: the whole table would take 0.5 s."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES and char not in _SHOWN_BLANKS
        if hidden or _within(code, _HIDDEN_RANGES):
            char = f"‹{code:04x}›"
        self[code] = char
        return char


class _Widths(dict[str, int]):
    """The cells of a character that `visible` may return, equal to those in rich's tables."""

    def __missing__(self, char: str) -> int:
        code = ord(char)
        if unicodedata.category(char) in _MARK_CATEGORIES or _within(code, _JOINED_JAMO):
            width = 0
        elif unicodedata.east_asian_width(char) in "WF" or _within(code, _WIDENED_RANGES):
            width = 2
        else:
            width = 1
        self[char] = width
        return width


_STAND_INS = _StandIns(_CONTROL_PICTURES)
_CELL_WIDTHS = _Widths()


def visible(text: str) -> str:
    """Return `text` with a visible stand-in for every character that a terminal would obey, hide or draw as nothing.

    C0 controls and DEL become their control picture (`␛`, `␀`, `␍`), except tab `⇥` and newline `⏎`; a
    no-break space is `⍽`; C1 and bidi controls, zero-width, format, private and unassigned characters, lone
    surrogates, separators, odd blanks, variation selectors and skin tones become their code point, `‹202e›`.
    A combining mark with nothing before it gets a dotted circle, so that it can't climb onto another cell.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = text.translate(_STAND_INS)
    return "◌" + shown if shown and not _CELL_WIDTHS[shown[0]] else shown


def cell_width(text: str) -> int:
    """Return the terminal cells of a `text` that `visible` returned."""
    return len(text) if text.isascii() else sum(map(_CELL_WIDTHS.__getitem__, text))


def cell_widths(text: str) -> Iterator[int]:
    """Yield the cells of each character: 0 for one that is drawn onto the character before it."""
    return map(_CELL_WIDTHS.__getitem__, text)


def clip(text: str, width: int) -> str:
    """Return a visible `text` clipped to `width` cells, or one less before a wide character, with `…` at the end."""
    if width <= 0:
        return ""
    if len(text) <= width and text.isascii():
        return text
    used = end = 0
    for index, char in enumerate(text):
        used += _CELL_WIDTHS[char]
        if used > width:
            return text[:end] + ELLIPSIS
        if used < width:
            end = index + 1
    return text


def centred(text: str, width: int, height: int) -> list[str]:
    """Return a message in the middle of a pane: `height` lines of exactly `width` cells, wrapped at blanks."""
    lines: list[str] = []
    for word in visible(text).split():
        if lines and cell_width(lines[-1]) + 1 + cell_width(word) <= width - 2:
            lines[-1] += " " + word
        else:
            lines.append(word)
    lines = [_middle(clip(line, width), width) for line in lines[:height]]
    blank = " " * width
    above = (height - len(lines)) // 2
    return [blank] * above + lines + [blank] * (height - above - len(lines))


def _middle(line: str, width: int) -> str:
    spare = width - cell_width(line)
    return " " * (spare // 2) + line + " " * (spare - spare // 2)


MAX_LISTED_NAMES = 5


def plural(number: object, noun: str) -> str:
    """Return a number with its noun, such as "1 step" or "3 steps"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list, and how many more it has."""
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more


def sample_label(index: int | None, occurrence: int) -> str:
    """Return a sample's index, "?" without one, and ".K" for the K-th occurrence of a repeated index."""
    return f"{'?' if index is None else index}" + (f".{occurrence}" if occurrence else "")
