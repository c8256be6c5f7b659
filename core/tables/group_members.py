"""Prompt groups as a person looks at them: their samples by reward, and the spread of the rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dumptui.core.fields.statistics import finite, mean, std
from dumptui.core.tables.pass_at_k import is_binary, pass_rates
from dumptui.core.tables.steps import SAME_REWARD, attempts, floats, members, reward_column
from dumptui.core.types import Record


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt group: its row in the groups table, and its samples by position in the rollout file.

    `members` has the best reward first and those without one last; `rewards` has theirs in the same order, and
    `rewarded` counts the finite ones. `attempts` are the rewards of its executions; `mean`, `std` and `passes` (pass@k
    by k) are computed from those; `passes` is empty unless all rewards of the step are `binary`. Samples that are in no
    group are not compared.
    """

    row: Record
    members: tuple[int, ...]
    rewards: tuple[float | None, ...]
    rewarded: int
    attempts: tuple[float | None, ...]
    binary: bool
    mean: float | None
    std: float | None
    passes: dict[int, float]

    @property
    def best(self) -> int | None:
        return self.members[0] if self.rewarded else None

    @property
    def median(self) -> int | None:
        """The sample in the middle, of two the better one."""
        return self.members[(self.rewarded - 1) // 2] if self.rewarded else None

    @property
    def worst(self) -> int | None:
        return self.members[self.rewarded - 1] if self.rewarded else None

    @property
    def attempted(self) -> int:
        """How many executions have a reward."""
        return len(finite(self.attempts))

    @property
    def spread(self) -> str:
        """What the rewards teach, in a word: "zero-std" nothing, "" something, else why it can't be said."""
        if not self.rewarded or self.row["group_index"] is None:
            return "unknown"
        if self.attempted == 1:
            return "single"
        return "zero-std" if (self.std or 0.0) <= SAME_REWARD else ""

    @property
    def outcome(self) -> str:
        """Whether the attempts of a group of binary rewards all succeeded or all failed; "" otherwise."""
        if not self.binary or not self.attempted or self.row["group_index"] is None:
            return ""
        return {1.0: "all correct", 0.0: "all wrong"}.get(self.passes.get(1, -1.0), "")


def ranked(table: Sequence[Record], rows: Sequence[Record], evaluation: bool) -> list[Group]:
    """The groups of a samples table; `rows` is the groups table made of it."""
    rewards = known_rewards(table, evaluation)
    binary = is_binary(attempts(table, rewards))
    return [
        group(row, table, sorted(positions, key=lambda at: merit(rewards[at])), rewards, binary)
        for row, positions in zip(rows, members(table).values(), strict=True)
    ]


def group(
    row: Record, table: Sequence[Record], order: Sequence[int], rewards: Sequence[float | None], binary: bool
) -> Group:
    mine = tuple(rewards[at] for at in order)
    tried = attempts([table[at] for at in order], mine)
    passes = pass_rates(tried) if binary and row["group_index"] is not None else {}
    return Group(row, tuple(order), mine, len(finite(mine)), tuple(tried), binary, mean(tried), std(tried), passes)


def known_rewards(table: Sequence[Record], evaluation: bool) -> list[float | None]:
    """The rewards that the groups table takes, and of samples without a train row their own, where those are the same
    numbers for all that have both.
    """
    own = floats(table, "reward")
    if reward_column(table, evaluation) == "reward":
        return own
    raw = floats(table, "raw_reward")
    pairs = [(a, b) for a, b in zip(raw, own, strict=True) if a is not None and b is not None]
    if not all(math.isclose(a, b, rel_tol=1e-6) or (a != a and b != b) for a, b in pairs):
        return raw
    return [b if a is None else a for a, b in zip(raw, own, strict=True)]


def merit(reward: float | None) -> tuple[int, float]:
    """Sorts the best first, what is not finite after all numbers, what is not there last."""
    if reward is None:
        return 2, 0.0
    return (0, -reward) if math.isfinite(reward) else (1, 0.0)


def mean_passes(groups: Sequence[Group]) -> dict[int, float]:
    """pass@k over the groups that have rewards, for every k that each of them has."""
    each = [group.passes for group in groups if group.passes]
    common = [k for k in (each[0] if each else {}) if all(k in one for one in each)]
    return {k: sum(one[k] for one in each) / len(each) for k in common}
