"""Checks of train rows against the rollout file: whether a row holds the sample that it was joined to, and whether each
slice is at the positions of the layout.

Both files hold all tokens, and usually the engine's log-probs; only the train files slice those over context-parallel
ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array, Bools
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.shard import Shard
from dumptui.core.formats.values import Dumped, read_each
from dumptui.core.parallel.context_parallel import Spans
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup
from dumptui.core.parallel.token_alignment import TokenAlignment, align

# Relative and absolute error of a copy rounded to a type; for a type that is not named, those of float8_e5m2.
DTYPE_ROUNDING = {
    "float64": (1e-6, 1e-7),
    "float32": (1e-6, 1e-7),
    "float16": (2.0**-10, 2.0**-24),
    "bfloat16": (2.0**-7, 1e-7),
}
_COARSEST_ROUNDING = (2.0**-2, 2.0**-9)
# Keys under which a sample holds the media of its prompt and response.
MEDIA_KEYS = ("multimodal_inputs", "multimodal_train_inputs")
# So many equal log-probs other than 0 identify a sample.
TELLING_VALUES = 3
# Stands for a number that the rollout file lacks: no log-prob is that large.
ANY_DIFFERENCE = np.finfo(np.float32).max


class Agreement(NamedTuple):
    """The comparison of a file's slices of the engine's log-probs with the rollout file, row by row.

    `agreed`: the slice holds the rollout file's values at its positions; None if there is nothing to compare.
    `identical`: they are equal bit by bit. `telling`: so many are equal that no other sample has them.
    """

    agreed: list[bool | None]
    identical: Bools
    telling: Bools


class RowVerdict(NamedTuple):
    """The verdicts on the rows of a file.

    `others`: the row holds other tokens than the sample it was joined to. `moved`: its engine log-probs contradict the
    rollout file's at their positions. `identical`: they are equal to those bit by bit.
    """

    others: Bools
    moved: Bools
    identical: Bools


class Evidence:
    """The comparisons of train rows with the samples of a step; each file is read once, on first use.

    It fills itself as it is asked and has no lock: once a step is aligned, only its Alignment may ask.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self._same_tokens: dict[tuple[int, int], bool | None] = {}
        self._verdicts: dict[tuple[int, str], RowVerdict] = {}
        self._engine_slices: dict[int, list[Array | None]] = {}

    # Tokens -----------------------------------------------------------------------------------------------

    def read_tokens(self, group: ShardGroup) -> list[Array | None]:
        """Return the tokens of every row, from the first file that has them; None where no file can be read."""
        tokens: list[Array | None] = [None] * group.first.rows
        for shard in group.shards:
            unread = [row for row, values in enumerate(tokens) if values is None]
            if not unread:
                break
            for row, values in zip(unread, read_each(shard.tensors("tokens", unread)), strict=True):
                tokens[row] = values
        return tokens

    def same_tokens(self, shard: Shard, row: int, position: int) -> bool | None:
        """Whether a row holds the tokens of a sample; None if that is not known."""
        key = id(shard), row
        if key not in self._same_tokens:
            tokens = read_each([shard.tensor("tokens", row)])[0]
            self._same_tokens[key] = None if tokens is None else self._is_sample(shard, row, tokens, position)
        return self._same_tokens[key]

    def _is_sample(self, shard: Shard, row: int, tokens: Array, position: int) -> bool:
        same = has_tokens(self.samples[position], tokens, int(shard.responses[row]))
        return same or self.token_alignment(shard, row, tokens, position) is not None

    def same_engine(self, group: ShardGroup, row: int, position: int) -> bool:
        """Whether a row whose tokens can't be read holds all of the engine's log-probs of a sample, to the bit."""
        full = self.samples[position].rollout_log_probs
        if full is None or np.count_nonzero(full) < TELLING_VALUES:
            return False
        copies = (read_each([shard.tensor(ENGINE_COLUMN, row)])[0] for shard in group.shards)
        return any(copy is not None and np.array_equal(copy, full) for copy in copies)

    def token_alignment(self, shard: Shard, row: int, tokens: Array, position: int) -> TokenAlignment | None:
        """Return where a sample's response lies in that of a row, which may have its media expanded; None if the row is
        another sample's.
        """
        sample = self.samples[position]
        mask = read_each([shard.tensor("loss_masks", row)])[0]
        return align(
            tokens,
            int(shard.responses[row]),
            sample.tokens,
            min(sample.response_length, sample.total_length),
            mask,
            has_media(shard, row, sample),
        )

    # Log-probs --------------------------------------------------------------------------------------------

    def judge(self, group: ShardGroup, shard: Shard, rule: str | None) -> RowVerdict:
        """Return the verdicts on a file's rows, whose engine log-probs follow `rule`; None leaves those unchecked."""
        key = id(shard), rule or ""
        if key not in self._verdicts:
            agreement = nothing_compared(shard)
            if rule is not None and ENGINE_COLUMN in shard.per_token:
                spans = group.spans(rule, group.cp_size, group.cp_ranks[group.shards.index(shard)])
                agreement = self._agreement(group, shard, spans, read_engine(shard))
            unsure = np.flatnonzero(~agreement.telling & (group.positions >= 0))
            others = self._others(group, shard, unsure.tolist())
            moved = [agreed is False and not other for agreed, other in zip(agreement.agreed, others, strict=True)]
            self._verdicts[key] = RowVerdict(others, np.array(moved, bool), agreement.identical)
        return self._verdicts[key]

    def _others(self, group: ShardGroup, shard: Shard, unsure: Sequence[int]) -> Bools:
        """Return which of the unsure rows are not of their sample: none of the first file, joined by its tokens."""
        others = np.zeros(shard.rows, bool)
        rows = [] if shard is group.first else unsure
        for row, tokens in zip(rows, read_each(shard.tensors("tokens", rows)), strict=True):
            others[row] = tokens is None or not self._is_sample(shard, row, tokens, int(group.positions[row]))
        return others

    def engine_agrees(self, group: ShardGroup, shard: Shard, spans: Spans) -> bool:
        """Whether a file's slices of the engine's log-probs are those at `spans`, over all rows of this attempt."""
        if id(shard) not in self._engine_slices:
            self._engine_slices[id(shard)] = read_engine(shard)
        agreed = self._agreement(group, shard, spans, self._engine_slices[id(shard)]).agreed
        return all(
            same is not False or self.same_tokens(shard, row, int(group.positions[row])) is False
            for row, same in enumerate(agreed)
        )

    def forget_slices(self) -> None:
        """Free the log-probs that were kept for the layouts to be tried on."""
        self._engine_slices.clear()

    def _agreement(self, group: ShardGroup, shard: Shard, spans: Spans, slices: Sequence[Array | None]) -> Agreement:
        agreement = agreed, identical, telling = nothing_compared(shard)
        widths, positions = spans.width.tolist(), group.positions.tolist()
        facts = enumerate(zip(positions, widths, slices, strict=True))
        rows = [row for row, (position, width, part) in facts if self._is_comparable(position, width, part)]
        if not rows:
            return agreement
        intervals = zip(rows, spans.at_all(rows), strict=True)
        full = np.concatenate([values for row, pair in intervals for values in self._engine_at(group, row, pair)])
        held = np.concatenate([part for row in rows if (part := slices[row]) is not None])
        starts = [0, *accumulate(widths[row] for row in rows)]
        identical[rows] = same = np.logical_and.reduceat(held == full, starts[:-1])
        telling[rows] = same & (np.add.reduceat(held != 0, starts[:-1], dtype=np.int64) >= TELLING_VALUES)
        relative, absolute = rounding(shard.columns[ENGINE_COLUMN][rows[0]])
        for row, (start, stop), equal in zip(rows, pairwise(starts), same.tolist(), strict=True):
            at = slice(start, stop)
            agreed[row] = equal or bool(same_values(held[at], full[at], relative, absolute).all())
        return agreement

    def _is_comparable(self, position: int, width: int, part: Array | None) -> bool:
        """Whether a slice has the width that the layout gives, and its sample a log-prob for each token."""
        if position < 0 or part is None or not len(part) or len(part) != width:
            return False
        sample = self.samples[position]
        full = sample.rollout_log_probs
        return full is not None and len(full) == sample.response_length

    def _engine_at(self, group: ShardGroup, row: int, intervals: tuple[slice, slice]) -> list[Array]:
        """Return the rollout file's values at intervals of the row; a missing number is equal to anything."""
        sample = self.samples[int(group.positions[row])]
        full = sample.rollout_log_probs
        assert full is not None
        if len(sample.unscored):
            full = full.copy()
            full[sample.unscored] = ANY_DIFFERENCE
        if (alignment := group.token_alignments.get(row)) is not None:
            written, full = full, np.full(int(group.first.responses[row]), ANY_DIFFERENCE)
            full[alignment.positions[alignment.own]] = written[alignment.own]
        return [full[interval] for interval in intervals]


def nothing_compared(shard: Shard) -> Agreement:
    return Agreement([None] * shard.rows, np.zeros(shard.rows, bool), np.zeros(shard.rows, bool))


def read_engine(shard: Shard) -> list[Array | None]:
    return read_each(shard.tensors(ENGINE_COLUMN, range(shard.rows)))


def has_tokens(sample: Sample, tokens: Array, response: int) -> bool:
    """Whether a row of a `response` length has exactly the tokens of a sample."""
    if len(tokens) != sample.total_length or response != sample.response_length:
        return False
    return bool((tokens == sample.tokens).all())


def has_media(shard: Shard, row: int, sample: Sample) -> bool:
    return shard.value("multimodal_train_inputs", row) is not None or not sample.extra.keys().isdisjoint(MEDIA_KEYS)


def same_values(part: Array, full: Array, relative: float, absolute: float) -> Array:
    """Return, per value, whether two copies of log-probs are equal up to the rounding of `part`."""
    with np.errstate(invalid="ignore"):
        equal: Array = (part == full) | (np.abs(part - full) <= absolute + relative * np.abs(full))
        equal |= (np.isnan(part) & np.isnan(full)) | (full == ANY_DIFFERENCE)
    return equal


def rounding(dumped: Dumped) -> tuple[float, float]:
    """Return the relative and the absolute error of a tensor's type."""
    return DTYPE_ROUNDING.get(dumped.dtype, _COARSEST_ROUNDING)
