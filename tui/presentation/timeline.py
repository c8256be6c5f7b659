"""The life of a sample as a lane of characters, as wide as there is room: a row of turns, the lane, its ends."""

from __future__ import annotations

from collections.abc import Iterable

from dumptui.core.sample.generation import seconds_text
from dumptui.core.telemetry.lifecycle import ATTEMPT, GEN, TOOL, Lifecycle, Span
from dumptui.core.text import cell_width, visible
from dumptui.tui.cell_formats.wrapping import Lines, Wrapped

SPAN_SIGNS = {ATTEMPT: "·", GEN: "█", TOOL: "▒", "deser": "░", "reward": "▓"}
OTHER_SIGN = "▚"
GAP_TEXT = "  "
WAITING_WORD = "waiting"  # what an attempt is where nothing else is drawn over it


class Lane(Lines):
    """A passage that is drawn for the width it gets; there is no text in it to search."""

    def __init__(self, life: Lifecycle) -> None:
        super().__init__([""])
        self.life = life

    def rows(self, width: int) -> list[str]:
        width = max(1, width)  # it is 0 before the first layout
        turns = turns_row(self.life, width)
        return [*filter(None, [turns]), lane_row(self.life, width), *ends_rows(self.life, width)]

    def wrapped(self, width: int) -> Wrapped:
        return Wrapped(width, self.rows(width), (), (), ())

    def height(self, width: int) -> int:
        return len(self.rows(width))

    def first_rows(self, width: int, most: int) -> list[str]:
        return self.rows(width)[:most]

    def count(self, width: int, most: int) -> int:
        return min(len(self.rows(width)), most)


def sign(kind: str) -> str:
    return SPAN_SIGNS.get(kind, OTHER_SIGN)


def cells(life: Lifecycle, span: Span, width: int, ends: tuple[float, float] | None = None) -> range:
    """Those of a span, at least one; `ends` are those of the time axis, by default the lifecycle's own."""
    begun, ended = ends or (life.t0, life.t1)
    first, stop = (round((at - begun) / (ended - begun or 1.0) * width) for at in (span.t0, span.t1))
    first = min(first, width - 1)
    return range(first, max(first + 1, stop))


def lane_row(life: Lifecycle, width: int, ends: tuple[float, float] | None = None) -> str:
    """Attempts first and the short spans last, so that those stay to be seen."""
    row = [" "] * width
    for span in sorted(life.spans, key=lambda one: (one.kind != ATTEMPT, -one.seconds)):
        for at in cells(life, span, width, ends):
            row[at] = sign(span.kind)
    return "".join(row)


def turns_row(life: Lifecycle, width: int) -> str:
    """The numbers of the turns over where they begin to generate, as far as there is room."""
    row = ""
    for span in life.of(GEN):
        at, number = cells(life, span, width).start, str(span.turn)
        if span.turn >= 0 and at >= len(row) + bool(row) and at + len(number) <= width:
            row = row.ljust(at) + number
    return row


def ends_rows(life: Lifecycle, width: int) -> list[str]:
    """Its first and last second with what the signs mean between them, or under them where that is too narrow."""
    end = f"{seconds_text(life.t1 - life.t0, life)} s"
    room = width - len("0 s") - len(end)
    parts = legend(life)
    whole = GAP_TEXT.join(parts)
    left = (room - cell_width(whole)) // 2
    if left > 0:
        return [f"0 s{' ' * left}{whole}{' ' * (room - left - cell_width(whole))}{end}"]
    return [f"0 s{' ' * max(1, room)}{end}", *filled(parts, width)]


def legend(life: Lifecycle) -> list[str]:
    kinds = dict.fromkeys([GEN, TOOL, *(span.kind for span in life.inner)])
    parts = [f"{sign(kind)} {visible(kind)}" for kind in kinds if life.of(kind)]
    return [*parts, f"{sign(ATTEMPT)} {WAITING_WORD}"] if life.waiting() else parts


def filled(parts: Iterable[str], width: int) -> list[str]:
    """Rows of as many parts as fit, at least one."""
    rows: list[str] = []
    for part in parts:
        if rows and cell_width(rows[-1] + GAP_TEXT + part) <= width:
            rows[-1] += GAP_TEXT + part
        else:
            rows.append(part)
    return rows
