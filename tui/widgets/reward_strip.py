"""Numbers as a short strip of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dumptui.tui.cell_formats.tables import number

BAR_CHARACTERS = "▁▂▃▄▅▆▇█"
Range = tuple[float, float]


def finite_range(values: Sequence[float | None]) -> Range | None:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return (min(finite), max(finite)) if finite else None


def reward_strip(rewards: Sequence[float | None], binary: bool, ends: Range | None, width: int) -> str:
    """Return rewards in at most `width` cells: `+` and `-` if binary, else values or bars; `?` for none."""
    if binary:
        return signs(rewards, width)
    values = " ".join("?" if reward is None else short(reward) for reward in rewards)
    if len(values) <= width:
        return values
    return "".join(bar(reward, ends) for reward in sampled(rewards, width))


def signs(rewards: Sequence[float | None], width: int) -> str:
    marks = ["?" if reward is None else "+" if reward > 0 else "-" for reward in rewards]
    if len(marks) <= width:
        return "".join(marks)
    return " ".join(f"{marks.count(sign)}{sign}" for sign in "+-?" if sign in marks)


def short(value: float) -> str:
    """Return a number with at most two decimals: 1, 0.5, -0.25."""
    return number(value) if not math.isfinite(value) or abs(value) >= 1e5 else f"{value:.2f}".rstrip("0").rstrip(".")


def bar(value: float | None, ends: Range | None) -> str:
    if value is None or ends is None or math.isnan(value):
        return "?"
    share = (value - ends[0]) / (ends[1] - ends[0]) if ends[0] < ends[1] else 1.0
    return BAR_CHARACTERS[round(min(max(share, 0.0), 1.0) * (len(BAR_CHARACTERS) - 1))]


def sampled(values: Sequence[float | None], width: int) -> list[float | None]:
    """Return `width` of the values, spread evenly over all of them, including both ends."""
    if len(values) <= width:
        return list(values)
    return [values[round(index * (len(values) - 1) / (width - 1))] for index in range(width)]
