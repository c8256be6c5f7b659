"""The number of a reward, which may be an entry of a dict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dumptui.core.formats.values import as_float


def reward_value(reward: object, key: str | None = None) -> float | None:
    """Return the number of a reward, or of its entry `key` when it is a dict; None when that is not a number."""
    if isinstance(reward, Mapping):
        return as_float(reward.get(key)) if key is not None else None
    return as_float(reward)


PREFERRED_ENTRIES = ("score", "reward", "acc")
"""The entries that usually hold the reward of a dict, the most usual first."""


def default_entry(rewards: Sequence[object], raw: Sequence[object]) -> str | None:
    """Return the entry to take as the reward where rewards are dicts; None where none is a dict with a number.

    It is the entry that equals the trainer's `raw` rewards where these are known, else one with a usual name, else the
    first number.
    """
    names = {name: None for one in rewards if isinstance(one, Mapping) for name in numeric_entries(one)}
    usual = [name for name in PREFERRED_ENTRIES if name in names]
    ordered = [*usual, *(name for name in names if name not in usual)]
    return next((name for name in ordered if equals_raw(name, rewards, raw)), next(iter(ordered), None))


def numeric_entries(reward: Mapping[Any, Any]) -> Iterator[str]:
    return (name for name, value in reward.items() if isinstance(name, str) and as_float(value) is not None)


def equals_raw(name: str, rewards: Sequence[object], raw: Sequence[object]) -> bool:
    """Whether an entry is the trainer's reward of every sample of which both are known, and of at least one."""
    pairs = [
        (reward_value(own, name), as_float(other))
        for own, other in zip(rewards, raw, strict=False)
        if other is not None
    ]
    known = [(own, other) for own, other in pairs if own is not None and other is not None]
    return bool(known) and all(math.isclose(own, other, rel_tol=1e-6, abs_tol=1e-9) for own, other in known)
