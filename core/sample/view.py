"""One sample made ready for looking at: texts, masks and every per-token field, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints
from dumptui.core.fields.token_field import State, TokenField, shown
from dumptui.core.formats.sample import Sample
from dumptui.core.sample.boundaries import Chunks, chunks, turn_starts
from dumptui.core.step.field_survey import order
from dumptui.core.step.step import FIELD_ORDER, Step
from dumptui.core.tables.tokens import notes
from dumptui.core.vocabulary import Vocabulary

PROMPT, TRAINED, MASKED, MISSING = range(4)
NO_WORDS = "no tokenizer: ids shown"


@dataclass(frozen=True, slots=True, eq=False)
class SampleField:
    """A field over the response: NaN where `there` is False, and also where NaN itself is the value."""

    state: State
    reason: str | None
    values: Array
    there: Bools

    @property
    def usable(self) -> bool:
        return self.state in ("ok", "partial")


@dataclass(frozen=True, slots=True, eq=False)
class SampleView:
    """Arrays over the whole sequence (T) for `texts`, `pieces` and `special`, over the response (R) for `mask` and the
    fields.

    `pieces` are what the texts were made of, bytes where a token may hold a part of a character; `special` tokens are
    those that the tokenizer never makes of text. `turns` are the absolute positions at which turns begin.
    """

    sample: Sample
    texts: list[str]
    pieces: Sequence[bytes | str]
    special: Bools
    mask: Array | None
    fields: dict[str, SampleField]
    notes: list[str]
    turns: Ints
    chunks: Chunks | None

    def kinds(self, name: str | None) -> Array:
        """What each position is: prompt, trained, masked out, or trained but without a value of the field."""
        kinds = np.full(len(self.texts), PROMPT, np.uint8)
        start = self.sample.prompt_length
        length = len(self.texts) - start
        kinds[start:] = TRAINED if self.mask is None else np.where(self.mask[:length] > 0, TRAINED, MASKED)
        field = self.fields.get(name or "")
        if field is not None and field.usable:
            response = kinds[start:]
            response[(response == TRAINED) & ~field.there[:length]] = MISSING
        return kinds

    def value(self, name: str, position: int) -> float | None:
        at = position - self.sample.prompt_length
        field = self.fields[name]
        if at < 0 or at >= len(field.values) or not field.there[at]:
            return None
        return float(field.values[at])

    def worst(self, name: str = "lp_diff", most: int | None = None) -> Ints:
        """Positions with a value of the field, the worst first; NaN and infinite values before all."""
        field = self.fields.get(name)
        if field is None:
            return np.empty(0, np.int64)
        at = np.flatnonzero(field.there)
        return at[order(name, field.values[at], most)] + self.sample.prompt_length

    def span(self, name: str, start: int = 0, stop: int | None = None) -> tuple[float, float]:
        """The range of a field's finite values at absolute positions [start, stop); (0, 0) without any."""
        field = self.fields.get(name)
        prompt = self.sample.prompt_length
        part = slice(max(0, start - prompt), None if stop is None else max(0, stop - prompt))
        values = np.empty(0) if field is None else field.values[part][field.there[part]]
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)

    @property
    def borders(self) -> tuple[list[int], list[int]]:
        """The positions at which turns but the first begin, and chunks."""
        return self.turns[1:].tolist(), [] if self.chunks is None else self.chunks.edges.tolist()

    def masked(self, position: int) -> bool:
        at = position - self.sample.prompt_length
        return self.mask is not None and 0 <= at < len(self.mask) and not self.mask[at] > 0

    def turn(self, position: int) -> int | None:
        """The turn that a token is in or, if it is masked, comes after; None before the first and in the prompt."""
        if position < self.sample.prompt_length:
            return None
        return int(np.searchsorted(self.turns, position, "right")) or None

    def version(self, position: int) -> str | None:
        """The weights that made a token, where the dump tells: by its position, or as there were no others."""
        if position < self.sample.prompt_length or self.masked(position):
            return None
        only = set(self.sample.versions)
        return only.pop() if len(only) == 1 else self.sample.version_at(position)

    def cp_rank(self, position: int) -> int | None:
        """The context-parallel rank that trained a token."""
        at = position - self.sample.prompt_length
        if self.chunks is None or not 0 <= at < len(self.chunks.ranks) or self.chunks.ranks[at] < 0:
            return None
        return int(self.chunks.ranks[at])


def view_sample(step: Step, position: int, vocabulary: Vocabulary | None) -> SampleView:
    """Every field of the step has an entry, and every field there is a name for, to say why it is not there."""
    sample = step.samples[position]
    chosen = np.array([position], np.int64)
    mask, fields = step.masks(chosen), step.gather_all(chosen)
    ids = sample.tokens.tolist()
    texts = ids_as_text(ids) if vocabulary is None else vocabulary.texts(ids)
    trained = mask.one(0)[0] if mask.states[0] == "ok" else None
    return SampleView(
        sample=sample,
        texts=texts,
        pieces=texts if vocabulary is None else vocabulary.pieces(ids),
        special=np.isin(sample.tokens, [] if vocabulary is None else list(vocabulary.added)),
        mask=trained,
        fields={name: sample_field(flat, mask) for name, flat in fields.items()} | absent(step, sample),
        notes=notes(step, sample, mask.reasons[0], vocabulary) + [NO_WORDS] * (vocabulary is None),
        turns=turn_starts(sample, trained),
        chunks=chunks(step, position),
    )


def sample_field(flat: TokenField, mask: TokenField) -> SampleField:
    there = shown(flat, mask, 0)
    reason = flat.reasons[0] or ("no file has this column for this sample" if flat.states[0] == "not dumped" else None)
    return SampleField(flat.states[0], reason, np.where(there, flat.values, np.float32(np.nan)), there)


def absent(step: Step, sample: Sample) -> dict[str, SampleField]:
    length = sample.response_length
    nothing = SampleField(
        "not dumped", "no file of the step has this column", np.full(length, np.nan, np.float32), np.zeros(length, bool)
    )
    return {name: nothing for name in FIELD_ORDER if name not in step.fields}


def ids_as_text(ids: Sequence[int]) -> list[str]:
    return [f" {token}" for token in ids]
