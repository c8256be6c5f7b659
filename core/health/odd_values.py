"""Values of per-token fields that cannot be intended: NaN, infinity, placeholders, log-probs above 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools
from dumptui.core.fields.registry import scale_of
from dumptui.core.fields.token_field import TokenField
from dumptui.core.health.finding import Finding, Level
from dumptui.core.step.step import Step
from dumptui.core.text import plural, sample_label

LEAST_LOG_PROB = -1000.0
"""No sampled token is this improbable: a value at or below it is a placeholder for "none"."""

ROUNDING_TOLERANCE = 1e-3
"""A probability of 1 may be rounded to a log-prob that is above 0 by less than this."""

MAX_MAGNITUDE = 1e9
PLACEHOLDER_VALUES = (-9999.0, -99999.0, 9999.0, 99999.0)
"""Common placeholders in fields other than log-probs, where values beyond MAX_MAGNITUDE count as placeholders too."""

ODD_KINDS: dict[str, tuple[Level, str]] = {
    "nan": ("error", "NaN"),
    "infinite": ("error", "infinite"),
    "placeholder": ("warning", "a placeholder, not a value,"),
    "above": ("warning", "a log-prob above 0"),
}


@dataclass
class OddCount:
    """The odd values of one kind: how many tokens of how many samples, and the first of them."""

    tokens: int
    samples: int
    sample: tuple[int | None, int]
    position: int
    value: float

    def add(self, more: OddCount) -> None:
        self.tokens += more.tokens
        self.samples += more.samples


class OddValues:
    """A counter of odd values at the trained tokens of a step, by field and kind; it takes the step in parts."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._counts: dict[tuple[str, str], OddCount] = {}

    def look(self, flat: TokenField, mask: TokenField) -> None:
        """Count the odd values of a field at the trained tokens of `mask`, which covers the same samples."""
        trained = flat.known & mask.known & (mask.values > 0)
        for kind, odd in kinds(flat.name, flat.values).items():
            indices = np.flatnonzero(odd & trained)
            if len(indices):
                self._count(kind, flat, indices)

    def _count(self, kind: str, flat: TokenField, indices: Array) -> None:
        owners = np.searchsorted(flat.offsets, indices, "right") - 1
        sample = self._step.samples[int(flat.positions[owners[0]])]
        position = int(indices[0] - flat.offsets[owners[0]]) + sample.prompt_length
        place, value = (sample.index, sample.occurrence), float(flat.values[indices[0]])
        count = OddCount(len(indices), len(set(owners.tolist())), place, position, value)
        total = self._counts.setdefault((flat.name, kind), count)
        if total is not count:
            total.add(count)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each field and kind that occurred."""
        for (name, kind), count in self._counts.items():
            level, words = ODD_KINDS[kind]
            value = "" if kind == "nan" else f", {count.value:.6g}"
            tokens = f"{plural(count.tokens, 'trained token')} of {plural(count.samples, 'sample')}"
            first = f"first in sample {sample_label(*count.sample)} at #{count.position}{value}"
            problem = f"{name} is {words} at {tokens}: {first}"
            yield Finding(level, problem, self._step.files.key, None, count.sample, count.position)


def kinds(name: str, values: Array) -> dict[str, Bools]:
    """Return for each kind which values are of it; an empty dict if all values are ordinary."""
    if not len(values):
        return {}
    low, high = values.min(), values.max()
    is_log_prob = scale_of(name) == "log-prob"
    if is_log_prob and low > LEAST_LOG_PROB and high <= ROUNDING_TOLERANCE:
        return {}
    if not is_log_prob and -PLACEHOLDER_VALUES[2] < low and high < PLACEHOLDER_VALUES[2]:
        return {}
    finite = np.isfinite(values)
    odd: dict[str, Bools] = {"nan": np.isnan(values), "infinite": np.isinf(values)}
    if is_log_prob:
        return {
            **odd,
            "placeholder": finite & (values <= LEAST_LOG_PROB),
            "above": finite & (values > ROUNDING_TOLERANCE),
        }
    return {**odd, "placeholder": finite & ((np.abs(values) >= MAX_MAGNITUDE) | np.isin(values, PLACEHOLDER_VALUES))}
