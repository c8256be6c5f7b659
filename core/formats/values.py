"""Dumped values as plain numbers, texts and flat arrays, whichever types the framework used."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dumptui.core.arrays import Array, Ints
from dumptui.core.errors import DumpError
from dumptui.core.formats.media import bytes_name
from dumptui.core.ptfile.file import Array as Inline
from dumptui.core.ptfile.file import Placeholder, Tensor, read_all

# A dumped array: a tensor still in its file, or numbers from the pickle itself.
Dumped: TypeAlias = Tensor | Inline

T = TypeVar("T")

COMPLEX_DTYPES = frozenset(("complex64", "complex128"))
_NO_GAPS: Ints = np.empty(0, np.int64)
# Most values have one of these types and need no unwrapping; the lookup takes a tenth of the time of the checks.
_PLAIN_TYPES = frozenset((bool, int, float, str, type(None)))
A_TOKEN, BY_NAME = "values per token", "series by name"  # as reasons say it
_FEW = 3  # values that are checked first, to skip a check of the whole column
_MAX_EXACT_INT = 2**62  # also exact as a float
_MAX_COUNTER_BITS = 64  # of an index or counter; Python refuses to write out a number of more than 4,300 digits
_MAX_COMPARED_PARTS = 200_000  # of two values; beyond them the values count as different


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A flat array.

    `gaps` are the positions where the dump has something else (None, text); the array has NaN or 0 there.
    """

    values: Array
    gaps: Ints


def floats(value: object) -> Numbers | None:
    """Return a dumped list, array or tensor as float32; None when it is not a flat list of numbers."""
    if isinstance(value, Dumped):
        array = flat(value)
        return None if array is None else Numbers(array.astype(np.float32, copy=False), _NO_GAPS)
    if not isinstance(value, (list, tuple, np.ndarray)) or is_nested(value):
        return None
    try:
        if isinstance(value, np.ndarray):
            return Numbers(np.asarray(value, np.float32), _NO_GAPS) if value.ndim == 1 else None
        if (mask := _bytes_of(value)) is not None:
            return Numbers(mask.astype(np.float32), _NO_GAPS)
        array = np.fromiter(value, np.float32, len(value))
    except (TypeError, ValueError, OverflowError):
        return _floats_with_gaps(value)
    # numpy also makes NaN of None and of the text "nan"
    odd = np.isnan(array)
    if not np.count_nonzero(odd):
        return Numbers(array, _NO_GAPS)
    gaps = [index for index in np.flatnonzero(odd) if not isinstance(value[index], float)]
    return None if len(gaps) == len(array) else Numbers(array, np.array(gaps, np.int64))


def _bytes_of(values: Sequence[Any]) -> Array | None:
    """Return a list of numbers from 0 to 255, such as a mask, in a third of the time; None of any other list."""
    if not values or type(values[0]) is not int:
        return None
    try:
        return np.frombuffer(bytes(values), np.uint8)
    except (TypeError, ValueError):
        return None


def _floats_with_gaps(values: Any) -> Numbers | None:
    read = [as_float(value) for value in values]
    gaps = [index for index, value in enumerate(read) if value is None]
    if len(gaps) == len(read):
        return None
    return Numbers(
        np.array([np.nan if value is None else value for value in read], np.float32), np.array(gaps, np.int64)
    )


def integers(value: object) -> Array | None:
    """Return a dumped list, array or tensor as int64; None when it is not a flat list of whole numbers."""
    if isinstance(value, Dumped):
        array = flat(value)
        return None if array is None else _as_whole_numbers(array)
    if isinstance(value, np.ndarray):
        return _as_whole_numbers(value)
    if not isinstance(value, (list, tuple)) or is_nested(value):
        return None
    try:
        # With a given type numpy is four times as fast, but drops fractions. The first value shows a list's type.
        of_integers = value and type(value[0]) is int
        array = np.fromiter(value, np.int64, len(value)) if of_integers else np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return _as_whole_numbers(array) if len(array) else np.empty(0, np.int64)


def is_nested(values: Sequence[object] | Array) -> bool:
    """Whether a list holds lists: numpy would go through all of them, and lists in lists may never end."""
    return len(values) > 0 and isinstance(values[0], (list, tuple, np.ndarray))


def _as_whole_numbers(array: Array) -> Array | None:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        return None
    if array.dtype.kind == "f" and not (np.floor(array) == np.clip(array, -_MAX_EXACT_INT, _MAX_EXACT_INT)).all():
        return None
    return array.astype(np.int64, copy=False)


def other_shape(value: object, length: int | None) -> str | None:
    """Return how a list of `length` tokens has several values per token; None where it has one."""
    if isinstance(value, Mapping) and len(value) > 1:
        return f"holds {len(value)} {BY_NAME}: {', '.join(map(as_text, value))}"
    if isinstance(value, (Dumped, np.ndarray)):
        of_tokens = len(value.shape) == 2 and value.shape[0] == length
        return f"holds {value.shape[1]} {A_TOKEN}" if of_tokens and value.shape[1] > 1 else None
    if not isinstance(value, (list, tuple)) or len(value) != length or not is_nested(value):
        return None
    widths = {len(entry) if isinstance(entry, (list, tuple, np.ndarray)) else -1 for entry in value}
    width = widths.pop() if len(widths) == 1 else 0
    return f"holds {width} {A_TOKEN}" if width > 1 else None


def is_other_shape(reason: str) -> bool:
    """Whether a reason names a shape other than one value per token, which is not damage."""
    return A_TOKEN in reason or BY_NAME in reason


def flat(dumped: Dumped) -> Array | None:
    """Return the numbers of a real tensor with at most one side longer than 1; None of any other."""
    if dumped.dtype in COMPLEX_DTYPES or sum(side != 1 for side in dumped.shape) > 1:
        return None
    return dumped.numpy().reshape(-1)


def plain(value: object) -> object:
    """Return a reward or counter without its tensor or one-element wrapping; a dict is unwrapped one level deep."""
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, Dumped):
        return value.numpy().reshape(-1)[0].item() if value.size == 1 else value
    if isinstance(value, Mapping):
        return {as_text(key): entry if isinstance(entry, Mapping) else plain(entry) for key, entry in value.items()}
    return value


def as_float(value: object) -> float | None:
    """Return a number as a float; None for anything else, also for text that looks like one."""
    if value is None or type(value) is float:
        return value
    value = plain(value)
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def as_int(value: object) -> int | None:
    """Return a whole number as an int; None for anything else, and for a number of more than 64 bits."""
    if type(value) is not int:
        value = plain(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int):
            return None
    return int(value) if value.bit_length() <= _MAX_COUNTER_BITS else None


def as_text(value: object) -> str:
    """Return a text as it is, "" for None, a preview of anything that may be long or nested."""
    return value if isinstance(value, str) else "" if value is None else preview(value)


def as_cell(value: object) -> object:
    """Return a number, a text or None as it is, a preview of anything else."""
    return value if value is None or as_float(value) is not None else as_text(value)


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a dict as it is, the attributes of an object of an unknown class, {} for anything else."""
    if type(value) is dict:  # nearly always; the check for any Mapping costs five times as much
        return value
    if isinstance(value, Placeholder):
        value = value.state
    return value if isinstance(value, Mapping) else {}


def alike(value: object, expected: object) -> bool:
    """Whether two values are equal, arrays and objects of unknown classes within them included.

    It does not recurse and stops after 200,000 parts: in a pickle, a list may contain itself, or appear twice in each
    of a thousand nested lists.
    """
    pairs, budget = [(value, expected)], _MAX_COMPARED_PARTS
    while pairs:
        first, second = pairs.pop()
        if first is second:
            continue
        first_parts, second_parts = parts_of(first, second), parts_of(second, first)
        budget -= len(first_parts)
        if budget < 0 or len(first_parts) != len(second_parts) or not (first_parts or equal_leaves(first, second)):
            return False
        pairs += zip(first_parts, second_parts, strict=True)
    return True


def parts_of(value: object, model: object) -> list[object]:
    """Return what to compare of a container: its kind, then its parts, those of a dict in the order of `model`.

    The list is empty for a leaf.
    """
    if isinstance(value, (list, tuple)):
        return [list, *value]
    if isinstance(value, Placeholder):
        return [value.qualified_name, value.state, value.args, value.items]
    if not isinstance(value, Mapping):
        return []
    keys = model if isinstance(model, Mapping) and model.keys() == value.keys() else value
    return [dict, *keys, *(value[key] for key in keys)]


def equal_leaves(value: object, expected: object) -> bool:
    first, second = (leaf.numpy() if isinstance(leaf, Dumped) else leaf for leaf in (value, expected))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and bool(first == second)


def type_name(value: object) -> str:
    return value.qualified_name if isinstance(value, Placeholder) else type(value).__name__


class _Short(reprlib.Repr):
    def repr_int(self, value: int, level: int) -> str:
        bits = value.bit_length()
        return f"<a number of {bits:,} bits>" if bits > 8 * self.maxlong else super().repr_int(value, level)

    def repr_bytes(self, value: bytes, level: int) -> str:
        return bytes_name(value) if len(value) > self.maxstring else repr(value)

    def repr_bytearray(self, value: bytearray, level: int) -> str:
        return bytes_name(value) if len(value) > self.maxstring else repr(value)


_PREVIEW = _Short()
_PREVIEW.maxlevel, _PREVIEW.maxlist, _PREVIEW.maxtuple, _PREVIEW.maxdict = 3, 6, 6, 6
_PREVIEW.maxstring = _PREVIEW.maxother = 120


def preview(value: object) -> str:
    """Return a value as one line; of a long one its beginning and its size."""
    if isinstance(value, np.ndarray):
        return f"<{value.dtype}{list(value.shape)}>"
    if isinstance(value, str):
        return value if len(value) <= _PREVIEW.maxstring else f"{_PREVIEW.repr(value)} ({len(value):,} characters)"
    if isinstance(value, (list, tuple, Mapping)) and len(value) > _PREVIEW.maxlist:
        return f"{_PREVIEW.repr(value)} ({len(value):,} entries)"
    return _PREVIEW.repr(value)


def read_each(tensors: Sequence[Dumped | None]) -> list[Array | None]:
    """Return the values of each tensor; None for a missing one, and for an unreadable one, which is reported where its
    values would be shown.
    """
    try:
        arrays = iter(read_all([tensor for tensor in tensors if tensor is not None]))
        return [None if tensor is None else next(arrays) for tensor in tensors]
    except DumpError:
        return [None] if len(tensors) == 1 else [read_each([tensor])[0] for tensor in tensors]


def as_list(value: object) -> list[Any] | tuple[Any, ...] | None:
    """Return a column as a sequence: arrays and flat tensors as lists of numbers; None if it is not a sequence."""
    if isinstance(value, (Dumped, np.ndarray)):
        array = value if isinstance(value, np.ndarray) else value.numpy() if len(value.shape) == 1 else None
        return None if array is None else array.tolist()
    return value if isinstance(value, (list, tuple)) else None


def mostly(fits: Callable[[T], bool], values: Sequence[T]) -> bool:
    """Whether more than half of the values fit, so that an odd one costs only itself; a first few without a fit: no."""
    return any(map(fits, values[:_FEW])) and 2 * sum(map(fits, values)) > len(values)
