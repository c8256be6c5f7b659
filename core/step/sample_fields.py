"""The per-token fields that the rollout samples hold themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import definition
from dumptui.core.fields.token_field import TokenField
from dumptui.core.formats.sample import Sample
from dumptui.core.formats.values import Dumped, Numbers, floats, mostly, other_shape


def sample_fields(samples: Sequence[Sample]) -> frozenset[str]:
    """Return the keys of the samples that hold one float a response token; known ones also if their length is wrong."""
    names = {name for sample in samples for name in sample.extra}
    return frozenset(name for name in names if definition(name).in_samples or is_per_token(samples, name))


def is_per_token(samples: Sequence[Sample], name: str) -> bool:
    """Whether most samples that have a key hold one float a response token under it."""
    holders = [sample for sample in samples if sample.response_length and name in sample.extra]
    return mostly(lambda sample: is_float_row(sample.extra[name], sample.response_length), holders)


def is_float_row(value: object, length: int) -> bool:
    if not isinstance(value, (np.ndarray, Dumped)) or value.shape != (length,):
        return False
    return str(value.dtype).startswith(("float", "bfloat"))


def fill_from_extra(out: TokenField, samples: Sequence[Sample]) -> None:
    """Write what the samples hold under the name of the field, for those of `out` that have no values yet."""
    fill_from_samples(out, samples, lambda sample: floats(sample.extra.get(out.name)))


def fill_from_samples(out: TokenField, samples: Sequence[Sample], get: Callable[[Sample], Numbers | None]) -> None:
    """Write the numbers that `get` takes of each sample, for those of `out` that have no values yet."""
    for index, position in enumerate(out.positions.tolist()):
        if out.states[index] != "not dumped":
            continue
        try:
            numbers = get(samples[position])
        except DumpError as error:  # a tensor, which is read only here
            out.fail(index, str(error))
            continue
        problem = what_instead(samples[position], out.name, numbers)
        if problem is not None:
            out.fail(index, problem)
        elif numbers is not None:
            fill_whole(out, index, numbers)


def what_instead(sample: Sample, name: str, numbers: Numbers | None) -> str | None:
    """Return what a sample holds in place of one value per token; None if it holds nothing, or the values."""
    if not sample.response_length or (numbers is not None and len(numbers.values)):
        return None
    if numbers is not None:
        return sample.note_on(name)
    value = sample.extra.get(name)
    if value is None:
        return None
    return f"{name} {other_shape(value, sample.response_length) or 'is not a list of numbers'}"


def fill_whole(out: TokenField, index: int, numbers: Numbers) -> None:
    """Write one value for each response token of a sample; another number of values is unreadable."""
    values, known = out.one(index)
    if len(numbers.values) != len(values):
        out.fail(index, f"{out.name} has {len(numbers.values)} values for {len(values)} response tokens")
        return
    values[:], known[:], out.states[index], out.reasons[index] = numbers.values, True, "ok", None
    if len(numbers.gaps):
        known[numbers.gaps] = False
