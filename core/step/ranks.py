"""The ranks that wrote a run's train files: which are missing, and the parallel layout that they show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TypeAlias

from dumptui.core.fields.registry import FIELDS
from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.shard_group import ShardGroup
from dumptui.core.run.run import Run
from dumptui.core.step.step import Step

Ranks: TypeAlias = frozenset[int]

# From this many steps on, another set of ranks is another layout and not files that were lost.
_STEADY_STEPS = 3

_LAST_STAGE = frozenset(field.train_column for field in FIELDS if field.last_stage_only)


def ranks_of(files: StepFiles) -> Ranks:
    return frozenset(rank for rank, _ in files.shards if rank is not None)


def missing_ranks(run: Run) -> dict[StepKey, Ranks]:
    """Return, by step, the ranks whose train file the step lacks while a neighbouring step has one.

    A set of ranks that stays for some steps is another layout and misses nothing.
    """
    blocks = _blocks(run)
    missing = {}
    for at, (ranks, steps) in enumerate(blocks):
        neighbours = [other for other, _ in blocks[max(0, at - 1) : at + 2] if _same_layout(ranks, other)]
        lost = frozenset[int]().union(*neighbours) - ranks
        if lost and len(steps) < _STEADY_STEPS:
            missing.update({files.key: lost for files in steps})
    return missing


def changes(run: Run) -> Iterator[tuple[StepKey, Ranks, Ranks]]:
    """Yield the steps from which on other ranks write, with the ranks before and after."""
    steady = [block for block in _blocks(run) if len(block[1]) >= _STEADY_STEPS]
    for (before, _), (after, steps) in pairwise(steady):
        if before != after:
            yield steps[0].key, before, after


def _same_layout(ranks: Ranks, other: Ranks) -> bool:
    return ranks <= other or 2 * len(ranks & other) >= len(ranks | other)


def _blocks(run: Run) -> list[tuple[Ranks, list[StepFiles]]]:
    """Return train steps in runs of equal ranks, without the steps whose files name no rank."""
    trained = [files for files in run.steps.values() if ranks_of(files)]
    return [(ranks, list(same)) for ranks, same in groupby(trained, key=ranks_of)]


def describe_layout(step: Step) -> str | None:
    """Return how many ranks of each kind the files show.

    None if a file can't be placed, or a row has no sample: then it is not known whose copy it is.
    """
    groups = step.alignment.groups
    if not groups or step.alignment.orphans or any(group.problem or not group.joined for group in groups):
        return None
    cp = max(group.cp_size for group in groups)
    how = "inferred" if any(group.inferred for group in groups) else "recorded"
    return f"dp {len(groups)} × cp {cp}{f' ({how})' if cp > 1 else ''} × {_tp_pp(step)}"


def _tp_pp(step: Step) -> str:
    """Return the tensor- and pipeline-parallel sizes: their ranks hold the copies of a context-parallel slice.

    Only the last pipeline stage has what the forward pass gives, and tensor-parallel ranks are neighbours.
    """
    slices = [same for group in step.alignment.groups for same in _slices(group)]
    copies = max(map(len, slices))
    if copies == 1:
        every = {shard.recorded_rank for shard in step.shards} == set(range(len(step.shards)))
        return "tp 1 × pp 1" if every else "tp and pp unknown: each slice was written once"
    last_stage = max(sum(not _LAST_STAGE.isdisjoint(shard.per_token) for shard in same) for same in slices)
    neighbours = max(_first_run([shard.rank for shard in same]) for same in slices)
    tp = last_stage or neighbours
    known = copies % tp == 0 and (last_stage or neighbours < copies)
    return f"tp {tp} × pp {copies // tp}" if known else f"tp · pp {copies}"


def _slices(group: ShardGroup) -> list[list[Shard]]:
    """Return the files that hold copies of each context-parallel slice, by rank."""
    by_cp: dict[int, list[Shard]] = defaultdict(list)
    for shard, cp_rank in zip(group.shards, group.cp_ranks, strict=True):
        by_cp[cp_rank].append(shard)
    return [sorted(same, key=lambda shard: shard.rank) for same in by_cp.values()]


def _first_run(ranks: Sequence[int]) -> int:
    """Return how many ranks follow each other, from the first on."""
    return sum(rank == ranks[0] + at for at, rank in enumerate(ranks))


def in_words(ranks: Iterable[int], noun: str = "rank") -> str:
    """Return 1, 2, 3 and 7 as "ranks 1-3, 7"."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"{noun} {text}" if text.isdecimal() else f"{noun}s {text}"
