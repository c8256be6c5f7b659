"""The rules by which the columns of a step were sliced over context-parallel (cp) ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dumptui.core.fields.registry import FIELDS
from dumptui.core.parallel.context_parallel import Spans
from dumptui.core.parallel.shard_group import ShardGroup

# Some advantage estimators slice these by the thd rule in bshd runs too, so the run's format does not show the rule.
AMBIGUOUS_COLUMNS = frozenset(field.train_column for field in FIELDS if field.either_rule)


@dataclass(frozen=True, slots=True)
class SlicingRule:
    """The rules by which a column may have been sliced in the whole step.

    Each fits every slice, and they place the slices differently; if no rule fits, `problem` says why.
    """

    rules: tuple[str, ...]
    problem: str | None = None

    @property
    def first(self) -> str | None:
        return self.rules[0] if self.rules else None


def find_slicing_rule(groups: Sequence[ShardGroup], column: str) -> SlicingRule:
    """Return the rule that fits every slice of a column: all slices of a column are cut by one rule.

    The first rule that fits is taken, the run's own if possible; AMBIGUOUS_COLUMNS keep all rules that fit.
    """
    sliced = [group for group in groups if group.cp_size > 1 and group.problem is None and group.joined]
    if not sliced:
        return SlicingRule(("full",))
    misfits = {rule: misfit(sliced, column, rule) for rule in dict.fromkeys(r for group in sliced for r in group.rules)}
    fitting = [rule for rule, problem in misfits.items() if problem is None]
    if not fitting:
        return SlicingRule((), f"widths are not zigzag: {next(iter(misfits.values()))}")
    rules = fitting[:1]
    if column in AMBIGUOUS_COLUMNS:
        rules += [rule for rule in fitting[1:] if not same_positions(sliced, column, fitting[0], rule)]
    return SlicingRule(tuple(rules))


def misfit(groups: Sequence[ShardGroup], column: str, rule: str) -> str | None:
    """Return a description of the first slice whose width differs from the rule's; None if all fit."""
    for group in groups:
        for shard, cp_rank in group.holders(column):
            expected, widths = group.spans(rule, group.cp_size, cp_rank).width, shard.widths(column)
            wrong = np.flatnonzero((widths >= 0) & (widths != expected) & (group.positions >= 0))
            if len(wrong):
                row = wrong[0]
                holds = f"cp rank {cp_rank} of {group.cp_size} holds {widths[row]} values"
                return f"{holds} where the layout gives {expected[row]} ({shard.path.name} row {row})"
    return None


def same_positions(groups: Sequence[ShardGroup], column: str, rule: str, other_rule: str) -> bool:
    """Whether two rules put every slice of a column at the same positions."""
    return all(
        edges(group.spans(rule, group.cp_size, cp_rank)) == edges(group.spans(other_rule, group.cp_size, cp_rank))
        for group in groups
        for _, cp_rank in group.holders(column)
    )


def edges(spans: Spans) -> bytes:
    """Return a rank's positions as bytes to compare; the positions of empty intervals don't matter."""
    first, second = spans.first_stop > spans.first_start, spans.second_stop > spans.second_start
    joined = first & second & (spans.first_stop == spans.second_start)
    starts = np.where(first, spans.first_start, spans.second_start)
    stops = np.where(second, spans.second_stop, spans.first_stop)
    gap_from, gap_to = np.where(first & second & ~joined, (spans.first_stop, spans.second_start), 0)
    some = first | second
    return np.stack([starts * some, stops * some, gap_from, gap_to]).tobytes()
