"""Checks of train rows against the rollout file: does a row hold the sample it was joined to, and is each slice at the
positions of the layout?

Both files hold all tokens, and usually the engine's log-probs; only the train files slice those over context-parallel
ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from dumptui.core.arrays import Array, Bools
from dumptui.core.errors import DumpError
from dumptui.core.formats.miles.train_file import Shard
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import Dumped
from dumptui.core.parallel.alignment import Alignment, align
from dumptui.core.parallel.context_parallel import Spans
from dumptui.core.parallel.shard_group import ENGINE_COLUMN, ShardGroup
from dumptui.core.ptfile.file import read_all

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
# So many equal log-probs other than 0 are of one sample.
TELLING_VALUES = 3
# Stands where the rollout file has no number: no log-prob is that large.
ANY_DIFFERENCE = np.finfo(np.float32).max


class Agreement(NamedTuple):
    """Per row of a file, whether its slice holds the rollout file's values at its places, None where there is nothing
    to compare; whether they are equal to the bit; and whether they are so many that no other sample has them.
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
    """The verdicts on the rows of train files; each file is read once, on first use."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self._tokens: dict[tuple[int, int], bool | None] = {}
        self._judged: dict[tuple[int, str], RowVerdict] = {}
        self._engine: dict[int, list[Array | None]] = {}

    # Tokens -----------------------------------------------------------------------------------------------

    def read_tokens(self, peers: ShardGroup) -> list[Array | None]:
        """Return the tokens of every row, from the first file that has them; None where no file can be read."""
        tokens: list[Array | None] = [None] * peers.first.rows
        for shard in peers.shards:
            left = [row for row, one in enumerate(tokens) if one is None]
            if not left:
                break
            for row, one in zip(left, read_each(shard.tensors("tokens", left)), strict=True):
                tokens[row] = one
        return tokens

    def same_tokens(self, shard: Shard, row: int, position: int) -> bool | None:
        """Whether a row holds the tokens of a sample; None where that is not known."""
        key = id(shard), row
        if key not in self._tokens:
            tokens = read_each([shard.tensor("tokens", row)])[0]
            self._tokens[key] = None if tokens is None else self._is_sample(shard, row, tokens, position)
        return self._tokens[key]

    def _is_sample(self, shard: Shard, row: int, tokens: Array, position: int) -> bool:
        same = self.equal_tokens(tokens, int(shard.responses[row]), position)
        return same or self.alignment(shard, row, tokens, position) is not None

    def equal_tokens(self, tokens: Array, response: int, position: int) -> bool:
        """Whether a row has exactly the tokens of a sample."""
        sample = self.samples[position]
        if len(tokens) != sample.total_length or response != sample.response_length:
            return False
        return bool((tokens == sample.tokens).all())

    def same_engine(self, peers: ShardGroup, row: int, position: int) -> bool:
        """Whether a row whose tokens can't be read holds all of the engine's log-probs of a sample, to the bit."""
        full = self.samples[position].rollout_log_probs
        if full is None or np.count_nonzero(full) < TELLING_VALUES:
            return False
        copies = (read_each([shard.tensor(ENGINE_COLUMN, row)])[0] for shard in peers.shards)
        return any(copy is not None and np.array_equal(copy, full) for copy in copies)

    def alignment(self, shard: Shard, row: int, tokens: Array, position: int) -> Alignment | None:
        """Where the response of a sample lies in that of a row, which may have its media expanded; None of another."""
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

    def judge(self, peers: ShardGroup, shard: Shard, rule: str | None) -> RowVerdict:
        """Return the verdicts on a file's rows, whose engine log-probs follow `rule`; None leaves those unchecked."""
        key = id(shard), rule or ""
        if key not in self._judged:
            found = _nothing_said(shard)
            if rule is not None and ENGINE_COLUMN in shard.per_token:
                held = peers.spans(rule, peers.cp_size, peers.cp_ranks[peers.shards.index(shard)])
                found = self._agreement(peers, shard, held, read_engine(shard))
            others = self._others(peers, shard, np.flatnonzero(~found.telling & (peers.positions >= 0)).tolist())
            moved = [agree is False and not other for agree, other in zip(found.agreed, others.tolist(), strict=True)]
            self._judged[key] = RowVerdict(others, np.array(moved, bool), found.identical)
        return self._judged[key]

    def _others(self, peers: ShardGroup, shard: Shard, unsure: Sequence[int]) -> Bools:
        """Which of these rows are not sure to be of the sample; those of the first file were joined by their tokens."""
        others = np.zeros(shard.rows, bool)
        left = [row for row in unsure if shard is not peers.first]
        for row, tokens in zip(left, read_each(shard.tensors("tokens", left)), strict=True):
            others[row] = tokens is None or not self._is_sample(shard, row, tokens, int(peers.positions[row]))
        return others

    def engine_agrees(self, peers: ShardGroup, shard: Shard, held: Spans) -> bool:
        """Whether a file's slices of the engine's log-probs are those at `held`, over all rows of this attempt."""
        if id(shard) not in self._engine:
            self._engine[id(shard)] = read_engine(shard)
        agreed = self._agreement(peers, shard, held, self._engine[id(shard)]).agreed
        return all(
            agree is not False or self.same_tokens(shard, row, int(peers.positions[row])) is False
            for row, agree in enumerate(agreed)
        )

    def forget_slices(self) -> None:
        self._engine.clear()

    def _agreement(self, peers: ShardGroup, shard: Shard, held: Spans, parts: Sequence[Array | None]) -> Agreement:
        found = agreed, identical, telling = _nothing_said(shard)
        widths, positions = held.width.tolist(), peers.positions.tolist()
        facts = zip(positions, widths, parts, strict=True)
        rows = [row for row, told in enumerate(facts) if self._comparable(*told)]
        if not rows:
            return found
        slices = (self._engine_at(peers, row, places) for row, places in zip(rows, held.at_all(rows), strict=True))
        there = np.concatenate([one for pair in slices for one in pair])
        mine = np.concatenate([part for row in rows if (part := parts[row]) is not None])
        starts = [0, *accumulate(widths[row] for row in rows)]
        identical[rows] = same = np.logical_and.reduceat(mine == there, starts[:-1])
        telling[rows] = same & (np.add.reduceat(mine != 0, starts[:-1], dtype=np.int64) >= TELLING_VALUES)
        relative, absolute = rounding(shard.columns[ENGINE_COLUMN][rows[0]])
        for row, (start, stop), equal in zip(rows, pairwise(starts), same.tolist(), strict=True):
            cut = slice(start, stop)
            agreed[row] = equal or bool(same_values(mine[cut], there[cut], relative, absolute).all())
        return found

    def _comparable(self, position: int, width: int, part: Array | None) -> bool:
        """Whether a slice is as wide as the layout says, of a sample whose log-probs are as many as its tokens."""
        if position < 0 or part is None or not len(part) or len(part) != width:
            return False
        sample = self.samples[position]
        full = sample.rollout_log_probs
        return full is not None and len(full) == sample.response_length

    def _engine_at(self, peers: ShardGroup, row: int, places: tuple[slice, slice]) -> list[Array]:
        """The rollout file's values at places of the row; what it holds no number for is equal to anything."""
        sample = self.samples[int(peers.positions[row])]
        full = sample.rollout_log_probs
        assert full is not None
        if len(sample.unscored):
            full = full.copy()
            full[sample.unscored] = ANY_DIFFERENCE
        if (found := peers.alignments.get(row)) is not None:
            written, full = full, np.full(int(peers.first.responses[row]), ANY_DIFFERENCE)
            full[found.at[found.own]] = written[found.own]
        return [full[one] for one in places]


def _nothing_said(shard: Shard) -> Agreement:
    return Agreement([None] * shard.rows, np.zeros(shard.rows, bool), np.zeros(shard.rows, bool))


def read_engine(shard: Shard) -> list[Array | None]:
    return read_each(shard.tensors(ENGINE_COLUMN, range(shard.rows)))


def read_each(tensors: Sequence[Dumped | None]) -> list[Array | None]:
    """Return the values of each tensor, None for a missing or unreadable one: that is reported where its values would
    be shown.
    """
    there = [tensor for tensor in tensors if tensor is not None]
    try:
        arrays = iter(read_all(there))
        return [None if tensor is None else next(arrays) for tensor in tensors]
    except DumpError:
        return [None] if len(tensors) == 1 else [read_each([tensor])[0] for tensor in tensors]


def has_media(shard: Shard, row: int, sample: Sample) -> bool:
    return shard.value("multimodal_train_inputs", row) is not None or not sample.extra.keys().isdisjoint(MEDIA_KEYS)


def same_values(part: Array, full: Array, relative: float, absolute: float) -> Array:
    """Return, per value, whether two copies of log-probs are equal up to the rounding of `part`."""
    with np.errstate(invalid="ignore"):
        equal: Array = (part == full) | (np.abs(part - full) <= absolute + relative * np.abs(full))
        equal |= (np.isnan(part) & np.isnan(full)) | (full == ANY_DIFFERENCE)
    return equal


def rounding(dumped: Dumped) -> tuple[float, float]:
    return DTYPE_ROUNDING.get(dumped.dtype, _COARSEST_ROUNDING)
