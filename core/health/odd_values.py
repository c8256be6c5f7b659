"""Values of per-token fields that nobody can have meant: NaN, infinity, placeholders, log-probs above 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools
from dumptui.core.fields.registry import scale_of
from dumptui.core.fields.token_field import TokenField
from dumptui.core.health.finding import Level
from dumptui.core.step.step import Step
from dumptui.core.text import plural, sample_label

LEAST_LOG_PROB = -1000.0
"""Nothing that was sampled is so improbable: what is below stands for "none"."""

ROUNDING_TOLERANCE = 1e-3
"""A log-prob above 0 by less is what rounding makes of a probability of 1."""

MAX_MAGNITUDE = 1e9
PLACEHOLDER_VALUES = (-9999.0, -99999.0, 9999.0, 99999.0)
"""Of fields that are no log-probs, as values beyond LARGEST are."""

ODD_KINDS: dict[str, tuple[Level, str]] = {
    "nan": ("error", "NaN"),
    "infinite": ("error", "infinite"),
    "placeholder": ("warning", "no real value but a placeholder"),
    "above": ("warning", "a log-prob above 0"),
}


@dataclass
class Seen:
    """What was found of a kind: at how many tokens of how many samples, and where first."""

    tokens: int
    samples: int
    sample: str
    position: int
    value: float

    def add(self, other: Seen) -> None:
        self.tokens += other.tokens
        self.samples += other.samples


class OddValues:
    """Odd values of a step's trained tokens, by field and kind, of parts of the step that come one after the other."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._seen: dict[tuple[str, str], Seen] = {}

    def look(self, flat: TokenField, mask: TokenField) -> None:
        where = flat.known & mask.known & (mask.values > 0)
        for kind, odd in kinds(flat.name, flat.values).items():
            at = np.flatnonzero(odd & where)
            if len(at):
                self._take(kind, flat, at)

    def _take(self, kind: str, flat: TokenField, at: Array) -> None:
        owners = np.searchsorted(flat.offsets, at, "right") - 1
        sample = self._step.samples[int(flat.positions[owners[0]])]
        position = int(at[0] - flat.offsets[owners[0]]) + sample.prompt_length
        label = sample_label(sample.index, sample.occurrence)
        found = Seen(len(at), len(set(owners.tolist())), label, position, float(flat.values[at[0]]))
        before = self._seen.setdefault((flat.name, kind), found)
        if before is not found:
            before.add(found)

    def findings(self) -> Iterator[tuple[Level, str]]:
        for (name, kind), seen in self._seen.items():
            level, words = ODD_KINDS[kind]
            value = "" if kind == "nan" else f", {seen.value:.6g}"
            tokens = f"{plural(seen.tokens, 'trained token')} of {plural(seen.samples, 'sample')}"
            first = f"first in sample {seen.sample} at #{seen.position}{value}"
            yield level, f"{name} is {words} at {tokens}: {first}"


def kinds(name: str, values: Array) -> dict[str, Bools]:
    """Which values are of which kind; empty of a field all of whose values are ordinary."""
    if not len(values):
        return {}
    low, high = values.min(), values.max()
    is_log_prob = scale_of(name) == "log-prob"
    if is_log_prob and low > LEAST_LOG_PROB and high <= ROUNDING_TOLERANCE:
        return {}
    if not is_log_prob and -PLACEHOLDER_VALUES[2] < low and high < PLACEHOLDER_VALUES[2]:
        return {}
    finite = np.isfinite(values)
    found: dict[str, Bools] = {"nan": np.isnan(values), "infinite": np.isinf(values)}
    if is_log_prob:
        return {
            **found,
            "placeholder": finite & (values <= LEAST_LOG_PROB),
            "above": finite & (values > ROUNDING_TOLERANCE),
        }
    return {**found, "placeholder": finite & ((np.abs(values) >= MAX_MAGNITUDE) | np.isin(values, PLACEHOLDER_VALUES))}
