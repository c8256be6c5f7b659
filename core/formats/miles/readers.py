"""How the files of miles and slime are read; `core/formats/format.py` says what each function returns."""

from __future__ import annotations

from pathlib import Path

from dumptui.core.formats.miles.parquet_mirror import mirror_index, read_mirror
from dumptui.core.formats.miles.rollout_file import read_rollout, samples_of_rows
from dumptui.core.formats.miles.train_file import read_shards
from dumptui.core.formats.miles.trajectory_file import Trajectories, sidecar_faults

__all__ = [
    "mirror_index",
    "open_sidecar",
    "read_mirror",
    "read_rollout",
    "read_shards",
    "samples_of_rows",
    "sidecar_faults",
]


def open_sidecar(path: Path) -> Trajectories:
    return Trajectories.scan(path)
