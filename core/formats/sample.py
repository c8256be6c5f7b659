"""A rollout and its samples, whichever framework wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dumptui.core.arrays import Array, Ints
from dumptui.core.formats.values import (
    Numbers,
    as_cell,
    as_float,
)
from dumptui.core.formats.weight_versions import Call, counters, version_at

# A loss mask says whether a token is trained on, not with which weight.
WEIGHTED_MASK = "loss_mask holds values other than 0 and 1: values above 0 count as 1"


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One entry of `samples` in a rollout file. Arrays are as dumped: usually of length T (`tokens`) or R (per response
    token), and empty where the dump holds something other than a list of numbers.

    `unscored` are the response tokens for which the engine's list holds no number. `execution` is Sample.rollout_id,
    which siblings share. `extra` has every other key; lists of R floats in it are arrays.
    """

    position: int
    index: int | None
    occurrence: int
    group: int | None
    execution: int | str | None
    status: str
    removed: bool
    reward: object
    label: object
    prompt: object
    response: str
    response_length: int
    tokens: Array
    loss_mask: Array | None
    rollout_log_probs: Array | None
    unscored: Ints
    calls: tuple[Call, ...]
    spec_info: Mapping[str, Any]
    prefix_cache: Mapping[str, Any]
    non_generation_time: float | None
    metadata: Mapping[str, Any]
    extra: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def total_length(self) -> int:
        return len(self.tokens)

    @property
    def prompt_length(self) -> int:
        return max(0, len(self.tokens) - self.response_length)

    @property
    def scored_log_probs(self) -> Numbers | None:
        """The engine's log-probs with the tokens that it gave none."""
        return None if self.rollout_log_probs is None else Numbers(self.rollout_log_probs, self.unscored)

    def note_on(self, name: str) -> str | None:
        """Return the note on a key that holds something other than a list of numbers, and so is empty here."""
        return next((note for note in self.notes if note.startswith(f"{name} ")), None)

    @property
    def shown_reward(self) -> object:
        """The reward as a table cell: a number, a text, a dict of both, or a preview of anything else."""
        if isinstance(self.reward, Mapping):
            return {name: as_cell(value) for name, value in self.reward.items()}
        return as_cell(self.reward)

    @property
    def versions(self) -> list[str]:
        """Every weight version in order; one per call where spans are not recorded."""
        return [span.version for call in self.calls for span in call.spans]

    @property
    def prefill_version_min(self) -> int | None:
        """The oldest version whose KV cache a prompt was read by."""
        return min(counters(span.version for call in self.calls for span in call.prefill), default=None)

    @property
    def prefill_lag(self) -> int | None:
        """The most that a call's output was ahead of the cache of its prompt, in versions."""
        lags = []
        for call in self.calls:
            output = counters(span.version for span in call.spans)
            prefill = counters(span.version for span in call.prefill)
            if output and prefill:
                lags.append(max(output) - min(prefill))
        return max(lags, default=None)

    @property
    def spec_accept_rate(self) -> float | None:
        accepted = ("spec_accept_token_num", "spec_num_correct_drafts")
        return share(self.spec_info, accepted, ("spec_draft_token_num", "spec_num_proposed_drafts"))

    @property
    def prefix_cache_hit_rate(self) -> float | None:
        return share(self.prefix_cache, ("cached_tokens",), ("total_prompt_tokens",))

    def version_at(self, position: int) -> str | None:
        """Return the version that wrote the token at `position` of the sequence; None where the dump doesn't say."""
        return version_at(self.calls, position)


def share(info: Mapping[str, object], part_names: Sequence[str], whole_names: Sequence[str]) -> float | None:
    """Return part / whole under whichever spelling is dumped; None of nothing."""
    if not info:  # as of most samples
        return None
    part = next((as_float(info[name]) for name in part_names if name in info), None)
    whole = next((as_float(info[name]) for name in whole_names if name in info), None)
    return part / whole if part is not None and whole else None


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """A rollout file: its samples in file order."""

    path: Path
    step: int
    evaluation: bool
    samples: tuple[Sample, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def datasets(samples: Sequence[Sample]) -> list[int]:
    """Return the number of each sample's dataset in an eval file: indices restart with every dataset, so a drop
    starts the next one.
    """
    numbers: list[int] = []
    number, last = 0, None
    for sample in samples:
        if sample.index is not None:
            number += last is not None and sample.index < last
            last = sample.index
        numbers.append(number)
    return numbers


def is_weighted(mask: Array) -> bool:
    if mask.dtype.kind in "iu":
        return bool(np.bitwise_or.reduce(mask) >> 1)
    return bool(np.count_nonzero(mask == 0) + np.count_nonzero(mask == 1) < len(mask))
