"""Rollout files and their samples, in the shapes that several years and frameworks have dumped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dumptui.core.arrays import Array, Ints
from dumptui.core.errors import DumpError, NoDump
from dumptui.core.formats.values import (
    Dumped,
    Numbers,
    as_cell,
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
from dumptui.core.formats.weight_versions import Call, counters, read_calls, version_at
from dumptui.core.ptfile.file import OnRead, Placeholder, PtFile
from dumptui.core.ptfile.tensor import most_values

__all__ = [
    "OnRead",
    "Rollout",
    "Sample",
    "datasets",
    "read_rollout",
    "read_sample",
    "read_samples",
    "reward_value",
]

# A loss mask says whether a token is trained on, not with which weight.
WEIGHTED_MASK = "loss_mask holds values other than 0 and 1: values above 0 count as 1"
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


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One entry of `samples` in a rollout file. Arrays are as dumped: usually of length T (`tokens`) or R (per response
    token), and empty where the dump holds something other than a list of numbers.

    `unscored` are the response tokens for which the engine's list holds no number. `execution` is Sample.rollout_id,
    which siblings share. `extra` has every other key; lists of R floats in it are arrays.
    """

    position: int
    index: int | None
    occurrence: int
    group: int | None
    execution: int | str | None
    status: str
    removed: bool
    reward: object
    label: object
    prompt: object
    response: str
    response_length: int
    tokens: Array
    loss_mask: Array | None
    rollout_log_probs: Array | None
    unscored: Ints
    calls: tuple[Call, ...]
    spec_info: Mapping[str, Any]
    prefix_cache: Mapping[str, Any]
    non_generation_time: float | None
    metadata: Mapping[str, Any]
    extra: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def total_length(self) -> int:
        return len(self.tokens)

    @property
    def prompt_length(self) -> int:
        return max(0, len(self.tokens) - self.response_length)

    @property
    def scored_log_probs(self) -> Numbers | None:
        """The engine's log-probs with the tokens that it gave none."""
        return None if self.rollout_log_probs is None else Numbers(self.rollout_log_probs, self.unscored)

    def note_on(self, name: str) -> str | None:
        """Return the note on a key that holds something other than a list of numbers, and so is empty here."""
        return next((note for note in self.notes if note.startswith(f"{name} ")), None)

    @property
    def shown_reward(self) -> object:
        """The reward as a table cell: a number, a text, a dict of both, or a preview of anything else."""
        if isinstance(self.reward, Mapping):
            return {name: as_cell(value) for name, value in self.reward.items()}
        return as_cell(self.reward)

    @property
    def versions(self) -> list[str]:
        """Every weight version in order; one per call where spans are not recorded."""
        return [span.version for call in self.calls for span in call.spans]

    @property
    def prefill_version_min(self) -> int | None:
        """The oldest version whose KV cache a prompt was read by."""
        return min(counters(span.version for call in self.calls for span in call.prefill), default=None)

    @property
    def prefill_lag(self) -> int | None:
        """The most that a call's output was ahead of the cache of its prompt, in versions."""
        lags = []
        for call in self.calls:
            output = counters(span.version for span in call.spans)
            prefill = counters(span.version for span in call.prefill)
            if output and prefill:
                lags.append(max(output) - min(prefill))
        return max(lags, default=None)

    @property
    def spec_accept_rate(self) -> float | None:
        accepted = ("spec_accept_token_num", "spec_num_correct_drafts")
        return share(self.spec_info, accepted, ("spec_draft_token_num", "spec_num_proposed_drafts"))

    @property
    def prefix_cache_hit_rate(self) -> float | None:
        return share(self.prefix_cache, ("cached_tokens",), ("total_prompt_tokens",))

    def version_at(self, position: int) -> str | None:
        """Return the version that wrote the token at `position` of the sequence; None where the dump doesn't say."""
        return version_at(self.calls, position)


def share(info: Mapping[str, object], part_names: Sequence[str], whole_names: Sequence[str]) -> float | None:
    """Return part / whole under whichever spelling is dumped; None of nothing."""
    if not info:  # as of most samples
        return None
    part = next((as_float(info[name]) for name in part_names if name in info), None)
    whole = next((as_float(info[name]) for name in whole_names if name in info), None)
    return part / whole if part is not None and whole else None


@dataclass(frozen=True, slots=True, eq=False)
class Rollout:
    """A rollout file: its samples in file order."""

    path: Path
    step: int
    evaluation: bool
    samples: tuple[Sample, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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


def is_weighted(mask: Array) -> bool:
    if mask.dtype.kind in "iu":
        return bool(np.bitwise_or.reduce(mask) >> 1)
    return bool(np.count_nonzero(mask == 0) + np.count_nonzero(mask == 1) < len(mask))


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


def reward_value(reward: object, key: str | None = None) -> float | None:
    """Return the number of a reward, or of its entry `key` when it is a dict; None when that is not a number."""
    if isinstance(reward, Mapping):
        return as_float(reward.get(key)) if key is not None else None
    return as_float(reward)


PREFERRED_ENTRIES = ("score", "reward", "acc")
"""The entries that usually hold the reward of a dict, the most usual first."""


def default_entry(rewards: Sequence[object], raw: Sequence[object]) -> str | None:
    """Return the entry to take as the reward where rewards are dicts; None where none is a dict with a number.

    It is the entry that equals the trainer's `raw` rewards where these are known, else one with a usual name, else the
    first number.
    """
    names = {name: None for one in rewards if isinstance(one, Mapping) for name in numeric_entries(one)}
    usual = [name for name in PREFERRED_ENTRIES if name in names]
    ordered = [*usual, *(name for name in names if name not in usual)]
    return next((name for name in ordered if equals_raw(name, rewards, raw)), next(iter(ordered), None))


def numeric_entries(reward: Mapping[Any, Any]) -> Iterator[str]:
    return (name for name, value in reward.items() if isinstance(name, str) and as_float(value) is not None)


def equals_raw(name: str, rewards: Sequence[object], raw: Sequence[object]) -> bool:
    """Whether an entry is the trainer's reward of every sample of which both are known, and of at least one."""
    pairs = [
        (reward_value(own, name), as_float(other))
        for own, other in zip(rewards, raw, strict=False)
        if other is not None
    ]
    known = [(own, other) for own, other in pairs if own is not None and other is not None]
    return bool(known) and all(math.isclose(own, other, rel_tol=1e-6, abs_tol=1e-9) for own, other in known)


# Evaluations ----------------------------------------------------------------------------------------------


def datasets(samples: Sequence[Sample]) -> list[int]:
    """Return the number of each sample's dataset in an eval file: indices restart with every dataset, so a drop
    starts the next one.
    """
    numbers: list[int] = []
    number, last = 0, None
    for sample in samples:
        if sample.index is not None:
            number += last is not None and sample.index < last
            last = sample.index
        numbers.append(number)
    return numbers
