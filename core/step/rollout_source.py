"""The samples of a step: from its rollout file, else from the parquet mirror, else from the train rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dumptui.core.errors import BeingWritten, DumpError, NotHere, rebuilt
from dumptui.core.files.retry import read_file
from dumptui.core.files.step_files import StepFiles
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.sample import Rollout, Sample
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.shard_group import group_shards
from dumptui.core.ptfile.file import OnRead


def read_rollout_of(
    files: StepFiles, shards: Sequence[Shard], on_read: OnRead | None = None
) -> tuple[Rollout, DumpError | None]:
    """Return the samples of a step, and why they are not from its rollout file.

    The train rows stand in only if there is neither a rollout file nor a mirror. Raises the DumpError of the rollout
    file if nothing else is left, BeingWritten while it is not whole.
    """
    key = files.key
    if files.rollout is None:
        problem = DumpError(str(key), "its rollout file is missing")
        if files.mirror is None and shards:
            return rollout_of_rows(files, shards), problem
    else:
        try:
            read = partial(readers_of(files).read_rollout, step=key.step, evaluation=key.evaluation, on_read=on_read)
            return read_file(files.rollout.path, read), None
        except BeingWritten:
            raise
        except DumpError as error:
            problem = error
    if files.mirror is None:
        raise problem
    return rollout_of_mirror(files, files.mirror.path, problem), problem


def rollout_of_mirror(files: StepFiles, mirror: Path, problem: DumpError) -> Rollout:
    missing = files.rollout is None or isinstance(problem.__cause__, FileNotFoundError)
    what = "missing" if missing else "unreadable"
    note = f"the rollout file is {what}: read from its parquet mirror, without rewards, status and text"
    if files.mirror_outdated:
        note += "; the mirror is older than the rollout file, so an earlier attempt may have written it"
    try:
        samples = readers_of(files).read_mirror(mirror)
    except DumpError as error:
        raise without_mirror(files, mirror, problem, error) from error
    return noted_rollout(files, mirror, samples, note)


def without_mirror(files: StepFiles, mirror: Path, problem: DumpError, error: DumpError) -> DumpError:
    """Return what is wrong with both files; a mirror alone that can't be read here says nothing about the step."""
    cause = error if files.rollout is None else problem
    kind = NotHere if isinstance(cause, NotHere) else DumpError
    if files.rollout is None:
        return rebuilt(kind, str(mirror), f"{error.problem}; the rollout file is missing")
    return rebuilt(kind, problem.path, f"{problem.problem}; its parquet mirror {mirror.name}: {error.problem}")


def rollout_of_rows(files: StepFiles, shards: Sequence[Shard]) -> Rollout:
    note = "no rollout file: read from the train files, without rewards, status and text"
    first_of_groups = [group.first for group in group_shards(shards)]
    samples = readers_of(files).samples_of_rows(first_of_groups, files.train_bytes)
    shared = {sample.index for sample in samples if sample.occurrence}
    ordered = [unordered(sample) if sample.index in shared else sample for sample in samples]
    return noted_rollout(files, shards[0].path, ordered, note)


def unordered(sample: Sample) -> Sample:
    """Return the sample with a note that its order among those of its index is not known."""
    note = "several samples have this index; only the rollout file shows which one this is"
    return replace(sample, notes=(*sample.notes, note))


def noted_rollout(files: StepFiles, path: Path, samples: Iterable[Sample], note: str) -> Rollout:
    noted = tuple(replace(sample, notes=(*sample.notes, note)) for sample in samples)
    return Rollout(path, files.key.step, files.key.evaluation, noted, notes=(note,))
