"""A few numbers as a strip of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dumptui.tui.output import number

BARS = "▁▂▃▄▅▆▇█"
Range = tuple[float, float]


def finite_range(values: Sequence[float | None]) -> Range | None:
    found = [value for value in values if value is not None and math.isfinite(value)]
    return (min(found), max(found)) if found else None


def reward_strip(rewards: Sequence[float | None], binary: bool, ends: Range | None, width: int) -> str:
    """Rewards in at most `width` cells: `+` and `-` of binary ones, else values, or bars within `ends`; `?` is none."""
    if binary:
        return signs(rewards, width)
    values = " ".join("?" if reward is None else short(reward) for reward in rewards)
    if len(values) <= width:
        return values
    return "".join(bar(reward, ends) for reward in sampled(rewards, width))


def signs(rewards: Sequence[float | None], width: int) -> str:
    each = ["?" if reward is None else "+" if reward > 0 else "-" for reward in rewards]
    if len(each) <= width:
        return "".join(each)
    return " ".join(f"{each.count(sign)}{sign}" for sign in "+-?" if sign in each)


def short(value: float) -> str:
    """Two decimals at most: 1, 0.5, -0.25."""
    return number(value) if not math.isfinite(value) or abs(value) >= 1e5 else f"{value:.2f}".rstrip("0").rstrip(".")


def bar(value: float | None, ends: Range | None) -> str:
    if value is None or ends is None or math.isnan(value):
        return "?"
    share = (value - ends[0]) / (ends[1] - ends[0]) if ends[0] < ends[1] else 1.0
    return BARS[round(min(max(share, 0.0), 1.0) * (len(BARS) - 1))]


def sampled(values: Sequence[float | None], width: int) -> list[float | None]:
    """`width` of the values, evenly over all of them, both ends included."""
    if len(values) <= width:
        return list(values)
    return [values[round(at * (len(values) - 1) / (width - 1))] for at in range(width)]
