"""A sample as the panes need it: texts, masks and every per-token field, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.arrays import Array, Bools, Ints
from dumptui.core.fields.registry import field_names
from dumptui.core.fields.token_field import State, TokenField, shown
from dumptui.core.formats.sample import Sample
from dumptui.core.sample.boundaries import Chunks, chunks, turn_starts
from dumptui.core.step.field_survey import order
from dumptui.core.step.step import Step
from dumptui.core.tables.tokens import notes
from dumptui.core.vocabulary import Vocabulary

PROMPT, TRAINED, MASKED, MISSING = range(4)
NO_WORDS = "no tokenizer: ids shown"


@dataclass(frozen=True, slots=True, eq=False)
class SampleField:
    """A field over the response, with NaN where `present` is False; a present value may be NaN too."""

    state: State
    reason: str | None
    values: Array
    present: Bools

    @property
    def usable(self) -> bool:
        return self.state in ("ok", "partial")


@dataclass(frozen=True, slots=True, eq=False)
class SampleView:
    """A sample with arrays over the whole sequence (`texts`, `pieces`, `special`) or the response (`mask`, the fields).

    `pieces` are the tokens without replacements: bytes where a token may hold a part of a character. `special` marks
    the tokens that the tokenizer never makes from text. `turns` are the absolute positions at which turns begin.
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
        """Return the kind of each position: PROMPT, TRAINED, MASKED, or MISSING if trained but without a value."""
        kinds = np.full(len(self.texts), PROMPT, np.uint8)
        start = self.sample.prompt_length
        length = len(self.texts) - start
        kinds[start:] = TRAINED if self.mask is None else np.where(self.mask[:length] > 0, TRAINED, MASKED)
        field = self.fields.get(name or "")
        if field is not None and field.usable:
            response = kinds[start:]
            response[(response == TRAINED) & ~field.present[:length]] = MISSING
        return kinds

    def value(self, name: str, position: int) -> float | None:
        """Return the value of a field at an absolute position; None where there is none."""
        offset = position - self.sample.prompt_length
        field = self.fields[name]
        if offset < 0 or offset >= len(field.values) or not field.present[offset]:
            return None
        return float(field.values[offset])

    def worst(self, name: str = "lp_diff", limit: int | None = None) -> Ints:
        """Return the absolute positions with a value, the worst first; NaN and infinite values come before others."""
        field = self.fields.get(name)
        if field is None:
            return np.empty(0, np.int64)
        offsets = np.flatnonzero(field.present)
        return offsets[order(name, field.values[offsets], limit)] + self.sample.prompt_length

    def span(self, name: str, start: int = 0, stop: int | None = None) -> tuple[float, float]:
        """Return the range of a field's finite values at absolute positions [start, stop); (0, 0) without any."""
        field = self.fields.get(name)
        prompt = self.sample.prompt_length
        part = slice(max(0, start - prompt), None if stop is None else max(0, stop - prompt))
        values = np.empty(0) if field is None else field.values[part][field.present[part]]
        values = values[np.isfinite(values)]
        return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)

    @property
    def borders(self) -> tuple[list[int], list[int]]:
        """The positions at which turns after the first begin, and those at which chunks begin."""
        return self.turns[1:].tolist(), [] if self.chunks is None else self.chunks.edges.tolist()

    def masked(self, position: int) -> bool:
        offset = position - self.sample.prompt_length
        return self.mask is not None and 0 <= offset < len(self.mask) and not self.mask[offset] > 0

    def turn(self, position: int) -> int | None:
        """Return the number, from 1, of the turn that holds a token or that a masked one follows; None before it."""
        if position < self.sample.prompt_length:
            return None
        return int(np.searchsorted(self.turns, position, "right")) or None

    def version(self, position: int) -> str | None:
        """Return the weight version that made a token, by its position or as the only one; None where unknown."""
        if position < self.sample.prompt_length or self.masked(position):
            return None
        only = set(self.sample.versions)
        return only.pop() if len(only) == 1 else self.sample.version_at(position)

    def cp_rank(self, position: int) -> int | None:
        """Return the context-parallel rank that trained a token; None where unknown."""
        offset = position - self.sample.prompt_length
        if self.chunks is None or not 0 <= offset < len(self.chunks.ranks) or self.chunks.ranks[offset] < 0:
            return None
        return int(self.chunks.ranks[offset])


def view_sample(step: Step, position: int, vocabulary: Vocabulary | None) -> SampleView:
    """Read a sample. `fields` has every field of the step, and each known field that is not dumped with a reason."""
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
        notes=notes(step, sample, mask.reasons[0], vocabulary) + ([NO_WORDS] if vocabulary is None else []),
        turns=turn_starts(sample, trained),
        chunks=chunks(step, position),
    )


def sample_field(flat: TokenField, mask: TokenField) -> SampleField:
    present = shown(flat, mask, 0)
    reason = flat.reasons[0] or ("no file has this column for this sample" if flat.states[0] == "not dumped" else None)
    return SampleField(flat.states[0], reason, np.where(present, flat.values, np.float32(np.nan)), present)


def absent(step: Step, sample: Sample) -> dict[str, SampleField]:
    length = sample.response_length
    nothing = SampleField(
        "not dumped", "no file of the step has this column", np.full(length, np.nan, np.float32), np.zeros(length, bool)
    )
    return {name: nothing for name in field_names() if name not in step.fields}


def ids_as_text(ids: Sequence[int]) -> list[str]:
    return [f" {token}" for token in ids]
