"""What a rollout sample is, whatever year and framework dumped it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dumptui.core.context_parallel import Array
from dumptui.core.errors import DumpError
from dumptui.core.ptfile import Array as Inline
from dumptui.core.ptfile import Placeholder, PtFile, Tensor

OnRead = Callable[[int, int], None]
# A dumped array: a tensor still in its file, or numbers that stood in the pickle itself.
Dumped: TypeAlias = Tensor | Inline

# What Sample.to_dict() is known to write and `Sample` names; any other key is kept in `Sample.extra`.
_NAMED = frozenset(
    "index group_index rollout_id status remove_sample reward label prompt response response_length tokens loss_mask rollout_log_probs "
    "weight_versions spec_info prefix_cache_info non_generation_time metadata".split()
)


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens [start, stop) of the sequence made by one weight version; without positions, a whole generate call."""

    version: str
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One generate call: the versions that wrote its output, and those that made its prompt's KV cache where recorded."""

    spans: tuple[Span, ...]
    prefill: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One entry of `samples` in a rollout file. Arrays have length T (`tokens`) or R (per response token)."""

    position: int
    index: int | None
    occurrence: int
    group: int | None
    execution: int | None
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
    def versions(self) -> list[str]:
        """Every weight version in order, one a call where spans are not recorded."""
        return [span.version for call in self.calls for span in call.spans]


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
    """Read a whole rollout file. Raises DumpError when it is no rollout dump."""
    root = PtFile(path, on_read=on_read).root
    notes = []
    if isinstance(root, Mapping):
        found, metadata = root.get("samples"), as_mapping(root.get("metadata"))
        if (inside := as_int(root.get("rollout_id"))) not in (None, step):
            notes.append(f"the name says step {step}, the content says {inside}")
    else:  # dumps older than the wrapping dict are the bare list
        found, metadata = root, {}
    if not isinstance(found, (list, tuple)):
        raise DumpError(path, "no rollout dump: it holds no list of samples")
    return Rollout(path, step, evaluation, tuple(read_samples(found)), metadata, tuple(notes))


def read_samples(dumped: Iterable[object]) -> Iterable[Sample]:
    seen: dict[int | None, int] = {}
    for position, one in enumerate(dumped):
        fields = one if isinstance(one, Mapping) else as_mapping(one)
        index = as_int(fields.get("index"))
        occurrence = seen.get(index, 0)
        seen[index] = occurrence + 1
        yield read_sample(fields, position, index, occurrence)


def read_sample(fields: Mapping[str, Any], position: int, index: int | None, occurrence: int) -> Sample:
    notes: list[str] = []
    tokens = numbers(fields.get("tokens"), np.int64, notes, "tokens")
    log_probs = numbers(fields.get("rollout_log_probs"), np.float32, notes, "rollout_log_probs")
    mask = numbers(fields.get("loss_mask"), np.int8, notes, "loss_mask")
    length = as_int(fields.get("response_length"))
    if length is None:
        length = next((len(a) for a in (mask, log_probs) if a is not None), 0)
        notes.append(f"response_length is not dumped, taken as {length}")
    return Sample(
        position=position,
        index=index,
        occurrence=occurrence,
        group=as_int(fields.get("group_index")),
        execution=as_int(fields.get("rollout_id")),
        status=status_text(fields.get("status")),
        removed=bool(fields.get("remove_sample")),
        reward=plain(fields.get("reward")),
        label=fields.get("label"),
        prompt=fields.get("prompt"),
        response=as_text(fields.get("response")),
        response_length=length,
        tokens=tokens if tokens is not None else np.empty(0, np.int64),
        loss_mask=mask,
        rollout_log_probs=log_probs,
        calls=read_calls(fields.get("weight_versions")),
        spec_info=as_mapping(fields.get("spec_info")),
        prefix_cache=as_mapping(fields.get("prefix_cache_info")),
        non_generation_time=as_float(fields.get("non_generation_time")),
        metadata=as_mapping(fields.get("metadata")),
        extra={key: value for key, value in fields.items() if key not in _NAMED and value is not None},
        notes=tuple(notes),
    )


# Values ---------------------------------------------------------------------------------------------------------


def numbers(value: object, dtype: Any, notes: list[str], name: str) -> Array | None:
    """A dumped list, array or tensor of numbers as a flat array; None when there is none. What is no number becomes NaN and a note."""
    if value is None:
        return None
    if isinstance(value, Dumped):
        return value.numpy().astype(dtype, copy=False).reshape(-1)
    if not isinstance(value, (list, tuple, np.ndarray)):
        notes.append(f"{name} is no list of numbers but {type_name(value)}")
        return None
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError):
        pass
    read = [as_float(one) for one in value]
    notes.append(f"{name} holds {sum(one is None for one in read)} entries that are no numbers")
    if not np.issubdtype(dtype, np.floating):
        return None
    return np.array([math.nan if one is None else one for one in read], dtype)


def plain(value: object) -> object:
    """A reward or counter without its tensor or one-element wrapping; dicts are unwrapped inside."""
    if isinstance(value, Dumped):
        return value.numpy().reshape(-1)[0].item() if value.size == 1 else f"tensor{list(value.shape)}"
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    return value


def as_float(value: object) -> float | None:
    """A number as a float, None for anything else (also text that looks like one)."""
    value = plain(value)
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def as_int(value: object) -> int | None:
    number = plain(value)
    if isinstance(number, (bool, int)):
        return int(number)
    return int(number) if isinstance(number, float) and number.is_integer() else None


def as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def as_mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Placeholder):
        value = value.state
    return value if isinstance(value, Mapping) else {}


def type_name(value: object) -> str:
    return value.qualified_name if isinstance(value, Placeholder) else type(value).__name__


def status_text(value: object) -> str:
    """The status as text; an enum member that was pickled as an object keeps its value in the arguments of its placeholder."""
    if isinstance(value, Placeholder) and value.args:
        value = value.args[0]
    return as_text(value) or "unknown"


def reward_value(reward: object, key: str | None = None) -> float | None:
    """The number of a reward, chosen by `key` when it is a dict. None when there is no number to take."""
    if isinstance(reward, Mapping):
        return as_float(reward.get(key)) if key is not None else None
    return as_float(reward)


# Weight versions ------------------------------------------------------------------------------------------------


def read_calls(value: object) -> tuple[Call, ...]:
    """The generate calls behind `weight_versions`, in any of its shapes (a text, a list of spans, or a record with spans a call)."""
    return tuple(read_call(one) for one in value) if isinstance(value, (list, tuple)) else ()


def read_call(value: object) -> Call:
    if isinstance(value, (list, tuple)):
        return Call(read_spans(value))
    fields = as_mapping(value)
    if "version" in fields:
        return Call(read_spans([fields]))
    if fields:
        return Call(read_spans(fields.get("spans")), read_spans(fields.get("prefill_spans")))
    return Call((Span(as_text(plain(value))),)) if value is not None else Call(())


def read_spans(value: object) -> tuple[Span, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    records = [as_mapping(one) for one in value]
    return tuple(
        Span(as_text(plain(one.get("version"))), as_int(one.get("abs_start")), as_int(one.get("abs_end")))
        for one in records
    )
