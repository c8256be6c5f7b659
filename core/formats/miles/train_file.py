"""One train file: the rows of a data-parallel shard as one rank wrote them, per-token columns still lazy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import NoDump
from dumptui.core.formats.values import COMPLEX_DTYPES, Dumped, as_int, as_mapping, floats, integers, plain
from dumptui.core.ptfile.file import Array as Inline
from dumptui.core.ptfile.file import OnRead, PtFile

# Columns of one value a response token, which are cut over context-parallel ranks.
PER_TOKEN = (
    "log_probs",
    "rollout_log_probs",
    "ref_log_probs",
    "teacher_log_probs",
    "entropy",
    "ref_entropy",
    "teacher_entropy",
    "opd_reverse_kl",
    "values",
    "advantages",
    "returns",
)
# Columns of tensors that are not one value a response token: whole sequences, masks, routing and media.
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

# Columns of a value a sample that tables show: read at once, as their tensors may be gone when a table is made.
PLAIN_COLUMNS = frozenset(["rewards", "raw_reward", "truncated"])
# Columns of whole numbers, one a token or a response token.
INTEGER_COLUMNS = frozenset(["tokens", "loss_masks"])
ODD_WIDTH = -2  # in place of a number of values
FEW = 3  # values that tell whether it is worth a look at all of them
T = TypeVar("T")
LARGEST_LENGTH = 1 << 40  # in tokens, so that chunks of it can be counted in 64 bits
# How a list of numbers comes out of a pickle.
Listed = (list, tuple, np.ndarray)


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """What a train file holds of one data-parallel rank.

    `rank` is the number in its name, else the one inside, `recorded_rank` the one inside. `positions` are the places
    of its rows in the rollout file, where they are dumped; `padded` is max_seq_lens. `per_token` names the columns
    with a value a response token, `malformed` those that should be and hold something else.
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
        """The dumped tensor of a row, None where this rank has none."""
        return self.tensors(column, [row])[0]

    def tensors(self, column: str, rows: Sequence[int]) -> list[Dumped | None]:
        values = self.entries(column)
        if values is None:
            return [None] * len(rows)
        return [value if is_row(value := values[row]) else None for row in rows]

    def value(self, column: str, row: int) -> object:
        """The entry of a row in a column that holds one a row; None where there is none."""
        values = self.entries(column)
        return None if values is None else values[row]

    def entries(self, column: str) -> Sequence[Any] | None:
        """A column that holds one entry a row; None where there is none."""
        values = self.columns.get(column)
        return values if isinstance(values, (list, tuple)) and len(values) == len(self.totals) else None

    def widths(self, column: str) -> Ints:
        """How many values each row holds, -1 where there is none, ODD where it holds something else; asked at each look
        at a part of the column.
        """
        if column not in self._widths:
            values: Sequence[Any] = self.columns[column]
            found = np.array(
                [value.size if is_row(value) else -1 if value is None else ODD_WIDTH for value in values], np.int64
            )
            found.flags.writeable = False
            self._widths[column] = found
        return self._widths[column]


def read_shard(path: Path, step: int, rank: int | None, on_read: OnRead | None = None) -> list[Shard]:
    """The shards of a train file: one, or for the row-wise format that holds a whole step one a data-parallel rank.

    Raises DumpError, NoDump when the file is whole but no train dump.
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
    others = (name for name in PER_TOKEN if name not in per_token)
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
        notes=tuple(notes),
        per_token=per_token,
        malformed=tuple(name for name in others if count and holds_something(listed.get(name))),
    )


def read_rows(file: PtFile, root: Mapping[str, Any], step: int) -> list[Shard]:
    """The row-wise format 2: full-length values, a dict a sample, already put together over context-parallel ranks."""
    rows = [as_mapping(one) for one in as_list(root.get("samples")) or ()]
    by_rank: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_rank.setdefault(as_int(row.get("data_parallel_rank")) or 0, []).append(row)
    plans = {
        as_int(one.get("data_parallel_rank")): one for one in map(as_mapping, as_list(root.get("dp_shards")) or ())
    }
    whole = {"cp_rank": 0, "cp_size": 1, "rollout_id": root.get("rollout_id")}
    shards = []
    for rank, mine in sorted(by_rank.items()):
        names = dict.fromkeys(name for row in mine for name in row)
        columns: dict[str, Any] = {name: [row.get(name) for row in mine] for name in names}
        columns["sample_indices"] = columns.pop("sample_index", None)
        columns["raw_reward"] = root.get("raw_reward")
        columns.update(schedule(plans.get(rank, {}), columns.get("rollout_position")))
        shards.append(make_shard(file, whole, columns, step, rank))
    return shards


def schedule(plan: Mapping[str, Any], positions: object) -> dict[str, Any]:
    """The micro-batches of a shard by row: the plan counts along its partition, the rows stand in rollout order."""
    batches, partition = as_list(plan.get("micro_batch_indices")), as_list(plan.get("partition"))
    if batches is None or partition is None or not isinstance(positions, list):
        return {}
    row_of = {as_int(position): row for row, position in enumerate(positions)}
    rows = [row_of.get(as_int(position)) for position in partition]
    listed = [as_list(batch) or () for batch in batches]
    placed = [[rows[at] if isinstance(at, int) and 0 <= at < len(rows) else None for at in one] for one in listed]
    return {"micro_batch_indices": placed, "num_microbatches": as_list(plan.get("num_microbatches"))}


def keys(values: object, rows: int) -> tuple[int | None, ...]:
    """A column that says which sample each row is; all None where it is missing or has another length."""
    if not isinstance(values, (list, tuple)) or len(values) != rows:
        return (None,) * rows
    return tuple(as_int(one) for one in values)


def is_per_token(name: str, values: object, rows: int) -> bool:
    """Whether a column holds one float tensor a row: the shape of every per-token statistic, known by name or not."""
    if name in NOT_PER_TOKEN or not isinstance(values, (list, tuple)) or len(values) != rows:
        return False
    there = [value for value in values if value is not None]
    return any(map(is_floats, there)) if name in PER_TOKEN else mostly(is_floats, there)


def mostly(fits: Callable[[T], bool], values: Sequence[T]) -> bool:
    """Whether more than half of some values fit, so that an odd one costs itself; none of the first few is enough."""
    return any(map(fits, values[:FEW])) and 2 * sum(map(fits, values)) > len(values)


def is_floats(value: object) -> bool:
    return is_row(value) and value.dtype.startswith(("float", "bfloat"))


def is_row(value: object) -> TypeGuard[Dumped]:
    """Whether it is a row of numbers, as every value is that is read of a column."""
    return isinstance(value, Dumped) and len(value.shape) == 1 and value.dtype not in COMPLEX_DTYPES


def holds_something(values: object) -> bool:
    return any(one is not None for one in values) if isinstance(values, (list, tuple)) else values is not None


def read_column(name: str, values: object) -> object:
    """A column with its rows at hand: arrays and flat tensors as lists of numbers, lists of floats, tokens and masks a
    row as arrays, rewards and flags as plain values.
    """
    listed = as_list(values)
    if listed is None:
        return values
    if name in PLAIN_COLUMNS:
        return [plain(row) for row in listed]
    if name in INTEGER_COLUMNS:
        return [vector(whole_numbers(row)) for row in listed]
    # A row of one value may have no side; a column that nobody knows and of nothing else has a value a sample.
    if name in PER_TOKEN or (name not in NOT_PER_TOKEN and any(map(is_row, listed))):
        listed = [vector(row) for row in listed]
    if all(isinstance(row, Dumped) for row in listed) or not any(map(is_float_list, listed)):
        return listed
    return [numbers_row(row) for row in listed]


def is_float_list(row: object) -> bool:
    return isinstance(row, Listed) and len(row) > 0 and isinstance(row[0], float)


def numbers_row(row: object) -> object:
    array = floats(row) if isinstance(row, Listed) else None
    return row if array is None or len(array.gaps) else Inline(array.values)


def vector(row: object) -> object:
    return row.vector() if isinstance(row, Dumped) and not row.shape else row


def whole_numbers(row: object) -> object:
    found = integers(row) if isinstance(row, Listed) else None
    return row if found is None else Inline(found)


def as_list(value: object) -> list[Any] | tuple[Any, ...] | None:
    """A column as a sequence: arrays and flat tensors as lists of numbers; None of anything that is no sequence."""
    if isinstance(value, (Dumped, np.ndarray)):
        array = value if isinstance(value, np.ndarray) else value.numpy() if len(value.shape) == 1 else None
        return None if array is None else array.tolist()
    return value if isinstance(value, (list, tuple)) else None


def sizes(values: object) -> list[int] | None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, Dumped) for value in values):
        return None
    return [value.size for value in values]


def int_column(values: object, otherwise: Sequence[int] | None) -> Ints | None:
    read = [as_int(one) for one in values] if isinstance(values, (list, tuple)) else [None]
    numbers = [one for one in read if one is not None and abs(one) < LARGEST_LENGTH]
    if len(numbers) < len(read):
        return None if otherwise is None else np.array(otherwise, np.int64)
    return np.array(numbers, np.int64)
