"""One sample made ready for looking at: texts, masks and every per-token field, read once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.flat import Bools, State
from dumptui.core.join import Step
from dumptui.core.sample import Sample
from dumptui.core.tokens import Vocabulary
from dumptui.core.views import notes, shown

PROMPT, TRAINED, MASKED, MISSING = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class SampleField:
    """A field over the response: NaN where `there` is False, and also where NaN itself is the value."""

    state: State
    reason: str | None
    values: Array
    there: Bools


@dataclass(frozen=True, slots=True, eq=False)
class SampleView:
    """Arrays over the whole sequence (T) for `texts`, over the response (R) for `mask` and the fields."""

    sample: Sample
    texts: list[str]
    mask: Array | None
    fields: dict[str, SampleField]
    notes: list[str]

    def kinds(self, name: str | None) -> Array:
        """What each position is: prompt, trained, masked out, or trained but without a value of the field."""
        kinds = np.full(len(self.texts), PROMPT, np.uint8)
        start = self.sample.prompt_length
        length = len(self.texts) - start
        kinds[start:] = TRAINED if self.mask is None else np.where(self.mask[:length] > 0, TRAINED, MASKED)
        field = self.fields.get(name or "")
        if field is not None and field.state in ("ok", "partial"):
            response = kinds[start:]
            response[(response == TRAINED) & ~field.there[:length]] = MISSING
        return kinds

    def value(self, name: str, position: int) -> float | None:
        at = position - self.sample.prompt_length
        field = self.fields[name]
        if at < 0 or at >= len(field.values) or not field.there[at]:
            return None
        return float(field.values[at])

    def worst(self, name: str = "lp_diff") -> Array:
        """Positions with a value of the field, the largest magnitude first; NaN and infinite values before all."""
        field = self.fields.get(name)
        if field is None:
            return np.empty(0, np.int64)
        at = np.flatnonzero(field.there)
        size = np.abs(field.values[at].astype(np.float64))
        size[np.isnan(size)] = np.inf
        return at[np.argsort(-size, kind="stable")] + self.sample.prompt_length


def view_sample(step: Step, position: int, vocabulary: Vocabulary | None) -> SampleView:
    sample = step.samples[position]
    chosen = np.array([position], np.int64)
    mask = step.masks(chosen)
    fields = {}
    for name in step.fields:
        flat = step.gather(name, chosen)
        there = shown(flat, mask, 0)
        values = np.where(there, flat.values, np.float32(np.nan))
        fields[name] = SampleField(flat.states[0], flat.reasons[0], values, there)
    ids = sample.tokens.tolist()
    texts = [f" {token}" for token in ids] if vocabulary is None else vocabulary.texts(ids)
    trained = mask.one(0)[0] if mask.states[0] == "ok" else None
    return SampleView(sample, texts, trained, fields, notes(step, sample, mask.reasons[0]))


def field_scale(step: Step, name: str) -> tuple[float, float]:
    """The range that a field's shades span over a whole step: its 0.5 and 99.5 percentile, so that one outlier doesn't
    flatten the rest.
    """
    flat, mask = step.gather(name), step.masks()
    chosen = flat.values[flat.known & mask.known & (mask.values > 0)]
    chosen = chosen[np.isfinite(chosen)]
    if not len(chosen):
        return 0.0, 0.0
    low, high = np.percentile(chosen, [0.5, 99.5])
    return float(low), float(high)
