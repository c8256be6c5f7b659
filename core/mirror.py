"""What is left of a rollout file: its parquet mirror, which also gives single samples fast, or the rows of the train files.

The mirror holds tokens, masks and engine log-probs, a row a sample in the file's order, 8 rows a row group. One row of a mirror of
30 MB costs 2 ms, all of it 250 ms; a rollout file can only be read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumptui.core.context_parallel import Array
from dumptui.core.errors import BeingWritten, DumpError
from dumptui.core.run import StepFiles, past_stale, read_file
from dumptui.core.sample import OnRead, Rollout, Sample, as_int, read_rollout, read_sample
from dumptui.core.shard import Shard

if TYPE_CHECKING:
    import polars as pl

_INDEX = ("sample_index", "response_length", "total_length")
_LISTS = ("tokens", "loss_mask", "rollout_log_probs")


def read_mirror(path: Path, rows: Sequence[int] | None = None) -> list[Sample]:
    """The samples at `rows` of the rollout file, all by default, with what the mirror holds of them: no reward, status, prompt or text.

    Raises DumpError, also for a row that is not there.
    """
    index = mirror_index(path)
    if rows is None:
        tables = [_read(path, _LISTS)]
        rows = range(len(index))
    else:
        _require(path, index, rows)
        tables = _read_rows(path, rows)
    lists = (lists for table in tables for lists in table.iter_slices(1))
    occurrences = _occurrences(index["sample_index"].to_list())
    samples = [_sample(path, row, index, occurrences[row], one) for row, one in zip(rows, lists, strict=True)]
    return samples


def mirror_index(path: Path) -> pl.DataFrame:
    """sample_index (null where it is None), response_length and total_length of every sample. Raises DumpError."""
    return _read(path, _INDEX)
