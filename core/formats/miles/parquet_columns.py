"""The columns of a parquet mirror, read by polars. Call these only through core/process/isolated_reader.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumptui.core.arrays import Array
from dumptui.core.errors import DumpError
from dumptui.core.formats.format import MirrorRow
from dumptui.core.process.resources import need_polars

if TYPE_CHECKING:
    import polars as pl


def read_index(path: Path) -> list[MirrorRow]:
    """Return the index and lengths of each row. Raises DumpError."""
    need_polars(path)
    import polars as pl

    return list(map(MirrorRow._make, _read(path, dict.fromkeys(MirrorRow._fields, pl.Int32())).iter_rows()))


def read_lists(path: Path, ranges: list[tuple[int, int]]) -> dict[int, tuple[Array | None, ...]]:
    """Return tokens, loss mask and engine log-probs by row, of half-open ranges of rows. Raises DumpError."""
    need_polars(path)
    import polars as pl

    columns = {
        "tokens": pl.List(pl.Int32),
        "loss_mask": pl.List(pl.Int8),
        "rollout_log_probs": pl.List(pl.Float32),
    }
    lists: dict[int, tuple[Array | None, ...]] = {}
    for start, stop in ranges:
        table = _read(path, columns, start, stop - start)
        arrays = zip(*(map(_array, column) for column in table), strict=True)
        lists.update(zip(range(start, stop), arrays, strict=True))
    return lists


def _array(values: pl.Series | None) -> Array | None:
    return None if values is None else values.to_numpy()


def _read(path: Path, columns: dict[str, Any], start: int = 0, length: int | None = None) -> pl.DataFrame:
    import polars as pl

    try:
        scan = pl.scan_parquet(path, glob=False).select(list(columns))
        table = scan.slice(start, length).collect()
    # A damaged footer makes the parquet reader panic about once in 150 times.
    except (OSError, MemoryError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DumpError(path, f"unreadable parquet file: {_first_line(error)}") from error
    wrong = [name for name, dtype in table.schema.items() if dtype != columns[name]]
    if wrong:
        raise DumpError(path, f"not a parquet mirror: {wrong[0]} is {table.schema[wrong[0]]}, not {columns[wrong[0]]}")
    return table


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return ascii(lines[0])[1:-1][:120] if lines else type(error).__name__
