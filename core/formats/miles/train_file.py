"""A train file: the rows of a data-parallel shard as one rank wrote them; per-token columns are read lazily."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError, NoDump
from dumptui.core.fields.registry import train_columns
from dumptui.core.formats.values import COMPLEX_DTYPES, Dumped, as_int, as_mapping, floats, integers, plain
from dumptui.core.ptfile.file import Array as Inline
from dumptui.core.ptfile.file import OnRead, PtFile
from dumptui.core.ptfile.tensor import most_values

# Columns of one value per response token, which are split over context-parallel ranks.
PER_TOKEN = train_columns()
# Columns of tensors that do not have one value per response token: whole sequences, masks, routing and media.
NOT_PER_TOKEN = frozenset(
    [
        "tokens",
        "loss_masks",
        "witness_ids",
        "rollout_routed_experts",
        "rollout_indexer_topk",
        "multimodal_train_inputs",
        "rollout_top_p_token_ids",
        "rollout_top_p_token_offsets",
        "rollout_mask_sums",
        "rewards",
    ]
)

# Columns of one value per sample that tables show: read at once, as the file may be gone when a table is made.
PLAIN_COLUMNS = frozenset(["rewards", "raw_reward", "truncated"])
# Columns of whole numbers, one per token or per response token.
INTEGER_COLUMNS = frozenset(["tokens", "loss_masks"])
ODD_WIDTH = -2  # in place of a number of values
FEW = 3  # values that are checked first, to skip a check of the whole column
T = TypeVar("T")
LARGEST_LENGTH = 1 << 40  # in tokens, so that chunks of it can be counted in 64 bits
# How a list of numbers comes out of a pickle.
Listed = (list, tuple, np.ndarray)


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


def read_shard(path: Path, step: int, rank: int | None, on_read: OnRead | None = None) -> list[Shard]:
    """Return the shards of a train file: one, or one per data-parallel rank if the file holds a whole step by rows.

    Raises DumpError, and NoDump when the file is complete but not a train dump.
    """
    file = PtFile(path, on_read=on_read)
    root = file.root
    if not isinstance(root, Mapping):
        raise NoDump(path, "not a train dump: it holds no table of columns")
    if "format_version" in root:
        if root["format_version"] != 2:
            raise NoDump(path, f"train dump of format_version {plain(root['format_version'])!r}; only 2 is supported")
        return read_rows(file, root, step)
    if not isinstance(root.get("rollout_data"), Mapping):
        raise NoDump(path, "not a train dump: it holds no rollout_data")
    return [make_shard(file, root, root["rollout_data"], step, rank)]


def make_shard(file: PtFile, root: Mapping[str, Any], columns: Mapping[str, Any], step: int, rank: int | None) -> Shard:
    with file.reading():
        listed = {name: read_column(name, values) for name, values in columns.items()}
    claimed = file.claimed + sum(map(shared_values, listed.values()))
    if claimed > most_values(file.size):
        raise DumpError(file.path, "its rows share tensors: together they claim more values than it can hold")
    responses = int_column(listed.get("response_lengths"), sizes(listed.get("loss_masks")))
    totals = int_column(listed.get("total_lengths"), sizes(listed.get("tokens")))
    if responses is None or totals is None or len(responses) != len(totals):
        raise NoDump(file.path, "not a train dump: its rows have no lengths")
    if (responses < 0).any() or (responses > totals).any():
        raise NoDump(file.path, "not a train dump: one of its responses is longer than its sequence")
    count = len(totals)
    padded = int_column(listed.get("max_seq_lens"), None)
    recorded = as_int(root.get("rank"))
    number = rank if rank is not None else recorded or 0
    notes = []
    if recorded not in (None, number):
        notes.append(f"the name says rank {number}, the content says {recorded}")
    if (inside := as_int(root.get("rollout_id"))) not in (None, step):
        notes.append(f"the name says step {step}, the content says {inside}")
    per_token = tuple(name for name, values in listed.items() if is_per_token(name, values, count))
    other_columns = (name for name in PER_TOKEN if name not in per_token)
    return Shard(
        path=Path(file.path),
        rank=number,
        recorded_rank=recorded,
        cp_rank=as_int(root.get("cp_rank")),
        cp_size=as_int(root.get("cp_size")),
        qkv_format=root.get("qkv_format") if isinstance(root.get("qkv_format"), str) else None,
        size=file.size,
        mtime=file.stamp[2] / 1e9,
        columns=listed,
        indices=keys(listed.get("sample_indices"), count),
        positions=keys(listed.get("rollout_position"), count),
        totals=totals,
        responses=responses,
        padded=padded if padded is not None and len(padded) == count else None,
        file=file,
        claimed=claimed,
        notes=tuple(notes),
        per_token=per_token,
        malformed=tuple(name for name in other_columns if count and holds_something(listed.get(name))),
    )


def read_rows(file: PtFile, root: Mapping[str, Any], step: int) -> list[Shard]:
    """Return the shards of row-wise format 2: a dict per sample, values already joined over context-parallel ranks."""
    rows = [as_mapping(row) for row in as_list(root.get("samples")) or ()]
    by_rank: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_rank.setdefault(as_int(row.get("data_parallel_rank")) or 0, []).append(row)
    plans = {
        as_int(plan.get("data_parallel_rank")): plan for plan in map(as_mapping, as_list(root.get("dp_shards")) or ())
    }
    header = {"cp_rank": 0, "cp_size": 1, "rollout_id": root.get("rollout_id")}
    shards = []
    for rank, shard_rows in sorted(by_rank.items()):
        names = dict.fromkeys(name for row in shard_rows for name in row)
        columns: dict[str, Any] = {name: [row.get(name) for row in shard_rows] for name in names}
        columns["sample_indices"] = columns.pop("sample_index", None)
        columns["raw_reward"] = root.get("raw_reward")
        columns.update(schedule(plans.get(rank, {}), columns.get("rollout_position")))
        shards.append(make_shard(file, header, columns, step, rank))
    return shards


def schedule(plan: Mapping[str, Any], positions: object) -> dict[str, Any]:
    """Return the micro-batches of a shard by row: the plan counts along its partition, rows are in rollout order."""
    batches, partition = as_list(plan.get("micro_batch_indices")), as_list(plan.get("partition"))
    if batches is None or partition is None or not isinstance(positions, list):
        return {}
    row_of = {as_int(position): row for row, position in enumerate(positions)}
    rows = [row_of.get(as_int(position)) for position in partition]
    listed = [as_list(batch) or () for batch in batches]
    placed = [[rows[i] if isinstance(i, int) and 0 <= i < len(rows) else None for i in batch] for batch in listed]
    return {"micro_batch_indices": placed, "num_microbatches": as_list(plan.get("num_microbatches"))}


def keys(values: object, rows: int) -> tuple[int | None, ...]:
    """Return a column that identifies the sample of each row; all None where it is missing or has another length."""
    if not isinstance(values, (list, tuple)) or len(values) != rows:
        return (None,) * rows
    return tuple(as_int(value) for value in values)


def is_per_token(name: str, values: object, rows: int) -> bool:
    """Whether a column holds one float tensor per row: the shape of every per-token statistic, also of unknown name."""
    if name in NOT_PER_TOKEN or not isinstance(values, (list, tuple)) or len(values) != rows:
        return False
    present = [value for value in values if value is not None]
    return any(map(is_floats, present)) if name in PER_TOKEN else mostly(is_floats, present)


def mostly(fits: Callable[[T], bool], values: Sequence[T]) -> bool:
    """Whether more than half of the values fit, so that an odd one costs only itself; a first FEW without a fit: no."""
    return any(map(fits, values[:FEW])) and 2 * sum(map(fits, values)) > len(values)


def is_floats(value: object) -> bool:
    return is_row(value) and value.dtype.startswith(("float", "bfloat"))


def is_row(value: object) -> TypeGuard[Dumped]:
    """Whether an entry of a column is a row of real numbers."""
    return isinstance(value, Dumped) and len(value.shape) == 1 and value.dtype not in COMPLEX_DTYPES


def holds_something(values: object) -> bool:
    return any(value is not None for value in values) if isinstance(values, (list, tuple)) else values is not None


def read_column(name: str, values: object) -> object:
    """Return a column with usable rows: arrays and flat tensors as lists of numbers; lists of floats, tokens and masks
    as arrays; rewards and flags as plain values.
    """
    listed = as_list(values)
    if listed is None:
        return values
    if name in PLAIN_COLUMNS:
        return [plain(row) for row in listed]
    if name in INTEGER_COLUMNS:
        if all(isinstance(row, Dumped) and row.shape for row in listed):
            return listed
        return read_once(lambda row: vector(whole_numbers(row)), listed)
    # A tensor of one value may have no dimension; an unknown column of only such tensors has one value per sample.
    if name in PER_TOKEN or (name not in NOT_PER_TOKEN and any(map(is_row, listed))):
        listed = [vector(row) for row in listed]
    if all(isinstance(row, Dumped) for row in listed) or not any(map(is_float_list, listed)):
        return listed
    return read_once(numbers_row, listed)


def read_once(read: Callable[[object], object], rows: Sequence[object]) -> list[object]:
    """Return `read` of each row; a row that several share is read once."""
    made: dict[int, object] = {}
    for row in rows:
        if id(row) not in made:
            made[id(row)] = read(row)
    return [made[id(row)] for row in rows]


def is_float_list(row: object) -> bool:
    return isinstance(row, Listed) and len(row) > 0 and isinstance(row[0], float)


def numbers_row(row: object) -> object:
    array = floats(row) if isinstance(row, Listed) else None
    return row if array is None or len(array.gaps) else Inline(array.values)


def vector(row: object) -> object:
    return row.vector() if isinstance(row, Dumped) and not row.shape else row


def shared_values(rows: object) -> int:
    """Return how many values the rows of a column hold together, if some of them are the same object.

    The values of other columns were counted when the file was opened.
    """
    if not isinstance(rows, (list, tuple)) or not rows or not isinstance(rows[0], Dumped):
        return 0
    if len(set(map(id, rows))) == len(rows):
        return 0
    return sum(row.size for row in rows if isinstance(row, Dumped))


def whole_numbers(row: object) -> object:
    numbers = integers(row) if isinstance(row, Listed) else None
    return row if numbers is None else Inline(numbers)


def as_list(value: object) -> list[Any] | tuple[Any, ...] | None:
    """Return a column as a sequence: arrays and flat tensors as lists of numbers; None if it is not a sequence."""
    if isinstance(value, (Dumped, np.ndarray)):
        array = value if isinstance(value, np.ndarray) else value.numpy() if len(value.shape) == 1 else None
        return None if array is None else array.tolist()
    return value if isinstance(value, (list, tuple)) else None


def sizes(values: object) -> list[int] | None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, Dumped) for value in values):
        return None
    return [value.size for value in values]


def int_column(values: object, otherwise: Sequence[int] | None) -> Ints | None:
    read = [as_int(value) for value in values] if isinstance(values, (list, tuple)) else [None]
    numbers = [number for number in read if number is not None and abs(number) < LARGEST_LENGTH]
    if len(numbers) < len(read):
        return None if otherwise is None else np.array(otherwise, np.int64)
    return np.array(numbers, np.int64)
