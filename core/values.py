"""Values as a dump may hold them, made plain: numbers, texts and flat arrays, whichever type the framework of the
year gave them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dumptui.core.context_parallel import Array, Ints
from dumptui.core.ptfile import Array as Inline
from dumptui.core.ptfile import Placeholder, Tensor

# A dumped array: a tensor still in its file, or numbers that stood in the pickle itself.
Dumped: TypeAlias = Tensor | Inline

_NOTHING: Ints = np.empty(0, np.int64)
# What is plain as it is: nearly every value that is asked about, and told by its type in a tenth of the time.
_PLAIN = frozenset((bool, int, float, str, type(None)))
_LARGEST_INT = 2**62  # and a float that is exact


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A flat array.

    `gaps` are the places where the dump has something that is no number (None, text); the array has NaN or 0 there.
    """

    values: Array
    gaps: Ints


def floats(value: object) -> Numbers | None:
    """A dumped list, array or tensor as float32; None when it is no flat list of numbers."""
    if isinstance(value, Dumped):
        array = flat(value)
        return None if array is None else Numbers(array.astype(np.float32, copy=False), _NOTHING)
    if not isinstance(value, (list, tuple, np.ndarray)):
        return None
    try:
        array = np.asarray(value, np.float32) if isinstance(value, np.ndarray) else _float_array(value)
    except (TypeError, ValueError, OverflowError):
        return _floats_with_gaps(value)
    if isinstance(value, np.ndarray):
        return Numbers(array, _NOTHING) if array.ndim == 1 else None
    # numpy makes NaN of None, which is no value, and of a text that says so
    odd = np.isnan(array)
    if not np.count_nonzero(odd):
        return Numbers(array, _NOTHING)
    gaps = [at for at in np.flatnonzero(odd) if not isinstance(value[at], float)]
    return None if len(gaps) == len(array) else Numbers(array, np.array(gaps, np.int64))


def _float_array(values: list[Any] | tuple[Any, ...]) -> Array:
    if values and type(values[0]) is int:
        try:
            return np.frombuffer(bytes(values), np.uint8).astype(np.float32)  # a mask: a third of the time
        except (TypeError, ValueError):
            pass
    return np.fromiter(values, np.float32, len(values))


def _floats_with_gaps(values: Any) -> Numbers | None:
    read = [as_float(one) for one in values]
    gaps = [at for at, one in enumerate(read) if one is None]
    if len(gaps) == len(read):
        return None
    return Numbers(np.array([np.nan if one is None else one for one in read], np.float32), np.array(gaps, np.int64))


def integers(value: object) -> Array | None:
    """A dumped list, array or tensor as int64; None when it is no flat list of whole numbers."""
    if isinstance(value, Dumped):
        array = flat(value)
        return None if array is None else _whole(array)
    if isinstance(value, np.ndarray):
        return _whole(value)
    if not isinstance(value, (list, tuple)):
        return None
    try:
        # Told the type, numpy is four times as fast, but cuts fractions off: lists are of one kind: the first tells.
        of_integers = value and type(value[0]) is int
        array = np.fromiter(value, np.int64, len(value)) if of_integers else np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return _whole(array) if len(array) else np.empty(0, np.int64)


def _whole(array: Array) -> Array | None:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        return None
    if array.dtype.kind == "f" and not (np.floor(array) == np.clip(array, -_LARGEST_INT, _LARGEST_INT)).all():
        return None
    return array.astype(np.int64, copy=False)


def flat(dumped: Dumped) -> Array | None:
    """The numbers of a tensor that has at most one side longer than 1; None of any other."""
    if sum(side != 1 for side in dumped.shape) > 1:
        return None
    return dumped.numpy().reshape(-1)


def plain(value: object) -> object:
    """A reward or counter without its tensor or one-element wrapping; dicts are unwrapped inside."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Dumped):
        return value.numpy().reshape(-1)[0].item() if value.size == 1 else f"tensor{list(value.shape)}"
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    return value


def as_float(value: object) -> float | None:
    """A number as a float, None for anything else (also text that looks like one)."""
    if type(value) is float:
        return value
    value = plain(value)
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def as_int(value: object) -> int | None:
    if type(value) is int:
        return value
    number = plain(value)
    if isinstance(number, (bool, int)):
        return int(number)
    return int(number) if isinstance(number, float) and number.is_integer() else None


def as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def as_mapping(value: object) -> Mapping[str, Any]:
    """A dict as it is, the attributes of an object of a class that is not known here, {} of anything else."""
    if type(value) is dict:  # nearly always; the check for any Mapping costs five times as much
        return value
    if isinstance(value, Placeholder):
        value = value.state
    return value if isinstance(value, Mapping) else {}


def alike(one: object, other: object) -> bool:
    """Whether two values are equal, arrays within them included."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)  # type: ignore[arg-type]
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return bool(one == other)


def type_name(value: object) -> str:
    return value.qualified_name if isinstance(value, Placeholder) else type(value).__name__


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxtuple, _SHORT.maxdict = 3, 6, 6, 6
_SHORT.maxstring = _SHORT.maxother = 120


def preview(value: object) -> str:
    """A line that tells what a value is; of a long one its beginning and its size."""
    if isinstance(value, np.ndarray):
        return f"<{value.dtype}{list(value.shape)}>"
    if isinstance(value, str):
        return value if len(value) <= _SHORT.maxstring else f"{_SHORT.repr(value)} ({len(value):,} characters)"
    if isinstance(value, (list, tuple, Mapping)) and len(value) > _SHORT.maxlist:
        return f"{_SHORT.repr(value)} ({len(value):,} entries)"
    return _SHORT.repr(value)
