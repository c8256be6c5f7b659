"""Which rollout sample each train row is: by index, where that repeats by lengths, then tokens, then order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.layout import Peers
from dumptui.core.sample import Sample


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Where a sample's train row is."""

    peers: Peers
    row: int


class Matcher:
    """Pairs rows with samples, each sample at most once; `orphans` says which rows found none and why."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        self.rows: list[Row | None] = [None] * len(samples)
        self.orphans: list[str] = []
        self._by_index: dict[int | None, list[int]] = defaultdict(list)
        for sample in samples:
            self._by_index[sample.index].append(sample.position)

    def add(self, peers: Peers) -> None:
        """Match every row of a data-parallel shard and set its `positions`."""
        peers.positions = np.full(peers.first.rows, -1, np.int64)
        for row in range(peers.first.rows):
            found = self._find(peers, row)
            if isinstance(found, str):
                self.orphans.append(f"{peers.first.path.name} row {row}: {found}")
            else:
                peers.positions[row] = found
                self.rows[found] = Row(peers, row)

    def _find(self, peers: Peers, row: int) -> int | str:
        shard = peers.first
        index = shard.indices[row]
        if shard.positions is not None:
            position = shard.positions[row]
            if not 0 <= position < len(self.samples):
                return f"rollout_position {position} is not in the rollout file"
            candidates = [position]
        else:
            candidates = self._by_index.get(index, [])
        if not candidates:
            return f"sample_index {index} is not in the rollout file"
        free = [position for position in candidates if self.rows[position] is None]
        if not free:
            return f"sample_index {index} already has its train row"
        fitting = [position for position in free if self._same_lengths(peers, row, position)]
        if index is None and shard.positions is None:
            return self._by_content(peers, row, fitting)
        if len(fitting) > 1:
            fitting = [position for position in fitting if self._same_tokens(peers, row, position)] or fitting
        if fitting:
            return fitting[0]
        if len(candidates) == 1 and shard.totals[row] > self.samples[candidates[0]].total_length:
            return candidates[0]  # media expanded on the train side
        return f"sample_index {index} has other lengths in the rollout file"

    def _by_content(self, peers: Peers, row: int, fitting: list[int]) -> int | str:
        same = [position for position in fitting if self._same_tokens(peers, row, position)]
        return same[0] if len(same) == 1 else "can't be joined: no sample_index, and its tokens don't tell"

    def _same_lengths(self, peers: Peers, row: int, position: int) -> bool:
        sample = self.samples[position]
        shard = peers.first
        return int(shard.totals[row]) == sample.total_length and int(shard.responses[row]) == sample.response_length

    def _same_tokens(self, peers: Peers, row: int, position: int) -> bool:
        for shard in peers.shards:
            tensor = shard.tensor("tokens", row)
            try:
                if tensor is not None:
                    return np.array_equal(tensor.numpy(), self.samples[position].tokens)
            except DumpError:  # a copy may still be readable
                continue
        return False
