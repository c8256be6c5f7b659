"""The weight versions of a step's samples, by reading as little of its files as possible."""

from __future__ import annotations

from collections.abc import Iterable

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepFiles
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.values import as_list
from dumptui.core.formats.weight_versions import counters, read_calls
from dumptui.core.weight_counter import Versions


def train_versions(files: StepFiles) -> Versions | None:
    """By the first train file that can be read: the samples of a shard are as old as those of the others."""
    for rank, entry in files.shards:
        try:
            shards = readers_of(files).read_shards(entry.path, files.key.step, rank)
        except DumpError:  # Health reports it
            continue
        rows = (row for shard in shards for row in as_list(shard.columns.get("weight_versions")) or ())
        return newest_of([span.version for call in read_calls(row) for span in call.spans] for row in rows)
    return None


def rollout_versions(files: StepFiles) -> Versions | None:
    if files.rollout is None:
        return None
    try:
        samples = readers_of(files).read_rollout(files.rollout.path, files.key.step, files.key.evaluation).samples
    except DumpError:
        return None
    return newest_of(sample.versions for sample in samples)


def newest_of(versions: Iterable[Iterable[str]]) -> Versions | None:
    numbers = [found for one in versions if (found := counters(one))]
    return Versions(max(map(min, numbers)), max(map(max, numbers))) if numbers else None
