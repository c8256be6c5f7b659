"""Loading a step: its files read, its rows aligned with its samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dumptui.core.errors import DumpError
from dumptui.core.files.retry import read_file
from dumptui.core.files.step_files import StepFiles
from dumptui.core.formats.format import readers_of
from dumptui.core.formats.sample import Rollout
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.alignment import align_rows
from dumptui.core.ptfile.file import OnRead
from dumptui.core.ptfile.tensor import SHARED_VALUES
from dumptui.core.step.rollout_source import read_rollout_of
from dumptui.core.step.sample_fields import sample_fields
from dumptui.core.step.step import Step

TOO_MANY_VALUES = "the train files of its step share values: together they claim more than they can hold"


def load(files: StepFiles, on_read: OnRead | None = None) -> Step:
    """Read and join a step. A train file that can't be read costs itself.

    `on_read(done, total)` counts the bytes of all files; the values in the train files are read later. Raises
    DumpError when the rollout file can't be read and nothing stands in for it, BeingWritten when it is not whole yet.
    """
    rollout_bytes = files.rollout_bytes
    total = rollout_bytes + files.train_bytes

    def on_rollout(done: int, size: int) -> None:
        if on_read is not None:
            on_read(rollout_bytes * done // max(size, 1), total)

    shards, broken = read_shards(files, lambda done, size: on_rollout(0, 1))
    rollout, problem = read_rollout_of(files, shards, on_rollout)
    return join(files, rollout, shards, broken, problem)


def read_shards(files: StepFiles, on_read: OnRead | None) -> tuple[list[Shard], list[DumpError]]:
    """Return what the train files of a step hold, and the errors of those that can't be read.

    What each file may claim beyond its size would add up over hundreds of ranks: the files of a step share one budget,
    and the file that goes beyond it costs itself, before any of its values is read.
    """
    shards: list[Shard] = []
    broken: list[DumpError] = []
    shared_left = SHARED_VALUES
    read = readers_of(files).read_shards
    for rank, entry in files.shards:
        try:
            found = read_file(entry.path, partial(read, step=files.key.step, rank=rank, on_read=on_read))
            excess = max((shard.claimed - shard.size for shard in found), default=0)
            if excess > shared_left:
                raise DumpError(entry.path, TOO_MANY_VALUES)
            shared_left -= max(excess, 0)
            shards += found
        except DumpError as error:
            broken.append(error)
    return shards, broken


def join(
    files: StepFiles,
    rollout: Rollout,
    shards: Sequence[Shard],
    broken: Sequence[DumpError] = (),
    problem: DumpError | None = None,
) -> Step:
    """Align train rows with samples; `broken`: the unreadable train files, `problem`: why there is no rollout file."""
    in_file_order = files.rollout is not None or files.mirror is not None
    alignment = align_rows(rollout.samples, shards, with_rewards=in_file_order)
    return Step(files, rollout, tuple(shards), tuple(broken), alignment, sample_fields(rollout.samples), problem)
