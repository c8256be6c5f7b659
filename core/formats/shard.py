"""The rows that one data-parallel rank trained on; their per-token columns are read when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.formats.values import COMPLEX_DTYPES, Dumped
from dumptui.core.ptfile.file import PtFile

ODD_WIDTH = -2  # in place of a number of values


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The rows of one data-parallel rank in a train file.

    `rank` is the number in the file name, or `recorded_rank`, the number in the content, if the name has none.
    `positions` are the positions of its rows in the rollout file, where dumped; `padded` is max_seq_lens. `per_token`
    names the columns with one value per response token, `malformed` those that should have and hold something else.
    `claimed` is how many values its rows and the tensors of its file have, shared ones counted for each row.
    """

    path: Path
    rank: int
    recorded_rank: int | None
    cp_rank: int | None
    cp_size: int | None
    qkv_format: str | None
    size: int
    mtime: float
    columns: Mapping[str, Any]
    indices: tuple[int | None, ...]
    positions: tuple[int | None, ...]
    totals: Ints
    responses: Ints
    padded: Ints | None
    file: PtFile
    claimed: int = 0
    notes: tuple[str, ...] = ()
    per_token: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    _widths: dict[str, Ints] = field(default_factory=dict, init=False, repr=False)

    @property
    def rows(self) -> int:
        return len(self.totals)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the tensor, pipeline and context-parallel ranks of one data-parallel shard."""
        return self.indices, self.positions, self.totals.tobytes(), self.responses.tobytes()

    def tensor(self, column: str, row: int) -> Dumped | None:
        """Return the dumped tensor of a row; None where this rank has none."""
        return self.tensors(column, [row])[0]

    def tensors(self, column: str, rows: Sequence[int]) -> list[Dumped | None]:
        values = self.entries(column)
        if values is None:
            return [None] * len(rows)
        return [value if is_row(value := values[row]) else None for row in rows]

    def value(self, column: str, row: int) -> object:
        """Return the entry of a row in a column with one entry per row; None where there is none."""
        values = self.entries(column)
        return None if values is None else values[row]

    def entries(self, column: str) -> Sequence[Any] | None:
        """Return a column with one entry per row; None where there is none."""
        values = self.columns.get(column)
        return values if isinstance(values, (list, tuple)) and len(values) == len(self.totals) else None

    def widths(self, column: str) -> Ints:
        """Return how many values each row holds: -1 for None, ODD_WIDTH where it holds anything but a row of numbers.

        Cached, as every part of the column that is read needs it.
        """
        if column not in self._widths:
            values: Sequence[Any] = self.columns[column]
            widths = np.array(
                [value.size if is_row(value) else -1 if value is None else ODD_WIDTH for value in values], np.int64
            )
            widths.flags.writeable = False
            self._widths[column] = widths
        return self._widths[column]


def is_row(value: object) -> TypeGuard[Dumped]:
    """Whether an entry of a column is a row of real numbers."""
    return isinstance(value, Dumped) and len(value.shape) == 1 and value.dtype not in COMPLEX_DTYPES
