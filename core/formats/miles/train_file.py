"""A train file: the rows of a data-parallel shard as one rank wrote them; per-token columns are read lazily."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError, NoDump
from dumptui.core.fields.registry import train_columns
from dumptui.core.formats.shard import Shard, is_row
from dumptui.core.formats.values import Dumped, as_int, as_list, as_mapping, floats, integers, mostly, plain
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
LARGEST_LENGTH = 1 << 40  # in tokens, so that chunks of it can be counted in 64 bits
# How a list of numbers comes out of a pickle.
Listed = (list, tuple, np.ndarray)


def read_shards(path: Path, step: int, rank: int | None, on_read: OnRead | None = None) -> list[Shard]:
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


def is_floats(value: object) -> bool:
    return is_row(value) and value.dtype.startswith(("float", "bfloat"))


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
