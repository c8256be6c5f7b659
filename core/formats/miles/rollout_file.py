"""A rollout file, in the shapes that several years of miles and slime have dumped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dumptui.core.errors import DumpError, NoDump
from dumptui.core.formats.sample import WEIGHTED_MASK, Rollout, Sample, is_weighted
from dumptui.core.formats.shard import Shard
from dumptui.core.formats.values import (
    Dumped,
    Numbers,
    as_float,
    as_int,
    as_mapping,
    as_text,
    floats,
    integers,
    other_shape,
    plain,
    preview,
    type_name,
)
from dumptui.core.formats.weight_versions import read_calls
from dumptui.core.ptfile.file import OnRead, Placeholder, PtFile
from dumptui.core.ptfile.tensor import most_values

_SCALARS = frozenset((str, int, float, bool, type(None), dict))
_SAMPLES_PER_CHECK = 32  # samples: 5 ms of long ones

# Keys of the framework's Sample.to_dict() that have a field in `Sample`; any other key goes to `Sample.extra`.
_NAMED_KEYS = frozenset(
    [
        "index",
        "group_index",
        "rollout_id",
        "status",
        "remove_sample",
        "reward",
        "label",
        "prompt",
        "response",
        "response_length",
        "tokens",
        "loss_mask",
        "rollout_log_probs",
        "weight_versions",
        "spec_info",
        "prefix_cache_info",
        "non_generation_time",
        "metadata",
    ]
)


def read_rollout(path: Path, step: int, evaluation: bool, on_read: OnRead | None = None) -> Rollout:
    """Read a rollout file. Raises DumpError, and NoDump when the file is complete but not a rollout dump."""
    file = PtFile(path, on_read=on_read)
    root = file.root
    notes = []
    if isinstance(root, Mapping):
        if "format_version" in root:
            raise NoDump(path, "is a train file of a whole step, not a rollout file; open the run folder")
        entries, metadata = root.get("samples"), as_mapping(root.get("metadata"))
        if (inside := as_int(root.get("rollout_id"))) not in (None, step):
            notes.append(f"the name says step {step}, the content says {inside}")
    else:  # dumps older than the wrapping dict are the bare list
        entries, metadata = root, {}
    if not isinstance(entries, (list, tuple)):
        raise NoDump(path, "not a rollout dump: it holds no list of samples")
    samples = []
    for count, sample in enumerate(read_samples(bounded(entries, path, file.size))):
        if on_read is not None and count % _SAMPLES_PER_CHECK == 0:
            on_read(1, 1)  # the file is read; only a chance to cancel
        samples.append(sample)
    return Rollout(path, step, evaluation, tuple(samples), metadata, tuple(notes))


def bounded(dumped: Iterable[object], path: str | PathLike[str], size: int) -> Iterable[object]:
    """Samples of files of `size` bytes, counted before arrays are made of them. Raises DumpError for too many values,
    which are those of lists and tensors that samples share.
    """
    left = most_values(size)
    for one in dumped:
        if isinstance(one, Mapping):
            left -= sum(length_of(value) for value in one.values() if type(value) not in _SCALARS)
        if left < 0:
            raise DumpError(path, "its samples share lists: together they claim more values than it can hold")
        yield one


def length_of(value: object) -> int:
    if isinstance(value, (list, tuple)):
        return len(value)
    return value.size if isinstance(value, (Dumped, np.ndarray)) else 0


def read_samples(dumped: Iterable[object]) -> Iterable[Sample]:
    """Yield the samples in file order; `occurrence` counts those with the same index."""
    seen: dict[int | None, int] = {}
    for position, entry in enumerate(dumped):
        fields = as_mapping(entry)
        index = as_int(fields.get("index"))
        occurrence = seen.get(index, 0)
        seen[index] = occurrence + 1
        sample = read_or_note(fields, position, index, occurrence)
        yield sample if fields else replace(sample, notes=(f"is {type_name(entry)}, not a sample",))


def read_or_note(fields: Mapping[str, Any], position: int, index: int | None, occurrence: int) -> Sample:
    """Return a sample; if one of its values raises, an empty sample whose note says why."""
    try:
        return read_sample(fields, position, index, occurrence)
    except DumpError as error:
        if isinstance(error.__cause__, OSError) or error.problem.startswith("changed "):
            raise  # the whole file is unreadable, or was replaced meanwhile
        problem = error.problem
    except Exception as error:  # an odd value costs only its own sample
        problem = f"{type_name(error)}: {preview(str(error))}"
    empty = read_sample({"response_length": 0}, position, index, occurrence)
    return replace(empty, notes=(f"can't be read: {problem}",))


def read_sample(fields: Mapping[str, Any], position: int, index: int | None, occurrence: int) -> Sample:
    notes: list[str] = []
    tokens = integers(fields.get("tokens"))
    if tokens is None and fields.get("tokens") is not None:
        notes.append("tokens is not a list of integers")
    tokens = np.empty(0, np.int64) if tokens is None else tokens
    log_probs = read_floats(fields, "rollout_log_probs", notes)
    mask = read_floats(fields, "loss_mask", notes)
    if mask is not None and not len(mask.gaps) and is_weighted(mask.values):
        notes.append(WEIGHTED_MASK)
    if index is None and fields.get("index") is not None:
        notes.append(f"index is of type {type_name(fields['index'])}, not a whole number")
    held = [len(tokens), *(len(numbers.values) for numbers in (mask, log_probs) if numbers is not None)]
    length = read_length(fields.get("response_length"), held, notes)
    return Sample(
        position=position,
        index=index,
        occurrence=occurrence,
        group=as_int(fields.get("group_index")),
        execution=read_execution(fields.get("rollout_id")),
        status=status_text(fields.get("status")),
        removed=bool(fields.get("remove_sample")),
        reward=plain(fields.get("reward")),
        label=fields.get("label"),
        prompt=fields.get("prompt"),
        response=as_text(fields.get("response")),
        response_length=length,
        tokens=tokens,
        loss_mask=None if mask is None else (mask.values > 0).view(np.int8),
        rollout_log_probs=None if log_probs is None else log_probs.values,
        unscored=np.empty(0, np.int64) if log_probs is None else log_probs.gaps,
        calls=read_calls(fields.get("weight_versions")),
        spec_info=as_mapping(fields.get("spec_info")),
        prefix_cache=as_mapping(fields.get("prefix_cache_info")),
        non_generation_time=as_float(fields.get("non_generation_time")),
        metadata=as_mapping(fields.get("metadata")),
        extra={
            key: read_extra(value, length)
            for key, value in fields.items()
            if key not in _NAMED_KEYS and value is not None
        },
        notes=tuple(notes),
    )


def read_execution(value: object) -> int | str | None:
    return value if isinstance(value, str) else as_int(value)


def read_floats(fields: Mapping[str, Any], name: str, notes: list[str]) -> Numbers | None:
    value = fields.get(name)
    if value is None:
        return None
    numbers = floats([value] if type(value) is float else value)
    if numbers is None:
        shape = other_shape(value, as_int(fields.get("response_length")))
        notes.append(f"{name} {shape or 'is not a list of numbers'}")
        return Numbers(np.empty(0, np.float32), np.empty(0, np.int64))
    if len(numbers.gaps):
        notes.append(f"{name} holds {len(numbers.gaps)} entries that are not numbers")
    return numbers


def read_length(dumped: object, held: Sequence[int], notes: list[str]) -> int:
    """Return the response length; `held` are the lengths of the token list and of the dumped response lists."""
    length = as_int(dumped)
    if length is None:
        length = max(held[1:], default=0)
        problem = "is not dumped" if dumped is None else f"is {preview(dumped)!r}, not a whole number"
        notes.append(f"response_length {problem}; {length} is assumed")
    elif not 0 <= length <= max(held):
        notes.append(f"response_length is {length}, but its longest list holds {max(held)}")
        length = min(max(length, 0), max(held))
    if length > held[0]:
        notes.append(f"the response of {length} tokens is longer than the sample's {held[0]} tokens")
    return length


def read_extra(value: object, length: int) -> object:
    """Return a list of floats, one per response token, as an array, which is an eighth of its size."""
    if isinstance(value, Dumped) and not value.shape and length == 1:
        return value.vector()
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) == length > 0 and isinstance(value[0], float):
        numbers = floats(value)
        return value if numbers is None or len(numbers.gaps) else numbers.values
    return value


def status_text(value: object) -> str:
    """Return the status as text; a pickled enum member has its value in the arguments of its placeholder."""
    if isinstance(value, Placeholder) and value.args:
        value = value.args[0]
    return as_text(value) or "unknown"


def samples_of_rows(shards: Sequence[Shard], file_bytes: int) -> list[Sample]:
    """Return the rows of train files as samples, in the order of sample_index, as the trainer numbers them in the
    file's order. Raises DumpError when they claim more values than files of `file_bytes` can hold.
    """
    rows = [row_fields(shard, row) for shard in shards for row in range(shard.rows)]
    rows.sort(key=lambda row: (row["index"] is None, row["index"] or 0))
    return list(read_samples(bounded(rows, shards[0].path, file_bytes)))


def row_fields(shard: Shard, row: int) -> dict[str, Any]:
    return {
        "index": shard.indices[row],
        "response_length": int(shard.responses[row]),
        "tokens": shard.tensor("tokens", row),
        "weight_versions": shard.value("weight_versions", row),
    }
