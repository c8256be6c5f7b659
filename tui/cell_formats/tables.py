"""Rows and documents on standard output: strict JSON, CSV or a plain table."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from dumptui.core.fields.ratio_limits import LARGEST_RATIO
from dumptui.core.text import cell_width, visible
from dumptui.core.types import Record

SIGNED_NUMBER = re.compile(r"[~>]-?[\d.]+(e[+-]\d+)?$")
CSV_SPECIAL = re.compile(r'[",\r\n]')


def strict(value: object) -> Any:
    """A value as strict JSON holds it: what is not finite as a text, keys as texts, anything unknown as its repr."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): strict(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(one) for one in value]
    return repr(value)


def to_json(document: Mapping[str, object]) -> str:
    try:
        return json.dumps(document, allow_nan=False)  # most documents are finite: no second walk over a million numbers
    except (ValueError, TypeError):
        return json.dumps(strict(document), allow_nan=False)


def to_csv(rows: Sequence[Record], *, safe: bool = False) -> str:
    """Lines that end in a newline alone; `safe` for a terminal, which must not get the text of a dump as it is."""
    names = columns(rows)
    show = visible if safe else str
    lines: list[list[Any]] = [list(names), *([plain(row.get(name)) for name in names] for row in rows)]
    text = "".join(",".join(quoted(value, show) for value in line) + "\n" for line in lines)
    return text.encode("utf-8", "backslashreplace").decode()


def quoted(value: object, show: Callable[[str], str]) -> str:
    """Nothing is empty, an empty text is not. (Python's own csv leaves a bare carriage return as it is.)"""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = show(value).replace('"', '""')
    return f'"{text}"' if CSV_SPECIAL.search(text) or not text else text


def to_table(rows: Sequence[Record]) -> str:
    """Aligned columns, numbers to the right, `-` for nothing."""
    names = columns(rows)
    heads = [visible(name) for name in names]
    cells = [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(map(cell_width, column)) for column in zip(heads, *cells, strict=True)]
    right = [all(is_number(row.get(name)) for row in rows) for name in names]

    def line(texts: Sequence[str]) -> str:
        padded = []
        for text, width, to_right in zip(texts, widths, right, strict=True):
            space = " " * (width - cell_width(text))
            padded.append(space + text if to_right else text + space)
        return "  ".join(padded).rstrip()

    return "\n".join([line(heads), *map(line, cells)]) + "\n"


def is_number(value: object) -> bool:
    """Whether a cell is a number or nothing, also one with a sign before it."""
    return isinstance(value, (int, float, type(None))) or (isinstance(value, str) and bool(SIGNED_NUMBER.match(value)))


class TableWriter:
    """A table whose rows are written as they come, in columns of given widths, the last as wide as it is."""

    def __init__(self, file: TextIO, widths: Mapping[str, int]) -> None:
        self._file = file
        self._widths = widths
        self._begun = False

    def write(self, row: Record) -> None:
        if not self._begun:
            self._begun = True
            self._line(list(self._widths))
        self._line([cell(row.get(name)) for name in self._widths])

    def _line(self, cells: Sequence[str]) -> None:
        widths = self._widths.values()
        padded = [text + " " * (width - cell_width(text)) for text, width in zip(cells, widths, strict=True)]
        self._file.write("  ".join(padded).rstrip() + "\n")
        self._file.flush()


def columns(rows: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def plain(value: object) -> object:
    """A CSV cell: empty for nothing, nested values as JSON."""
    if isinstance(value, (list, tuple, Mapping)):
        return json.dumps(strict(value))
    return strict(value)


def cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return number(value)
    return visible(value if isinstance(value, str) else str(plain(value)))


def ratio_number(value: float) -> str:
    """A ratio of probabilities: beyond where the field's metrics clamp it, only that."""
    return f">{number(LARGEST_RATIO)}" if value > LARGEST_RATIO else number(value)


def number(value: float) -> str:
    """Three decimals, or two digits and an exponent where those would hide or stretch it."""
    if 1e9 <= abs(value) < 1e10:  # seconds since the epoch
        return f"{value:.3f}"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:.3f}"
