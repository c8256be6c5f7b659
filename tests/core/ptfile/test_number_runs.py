"""Number lists cut out of a pickle come back as arrays of the same numbers, and everything else as it was."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.ptfile.number_lists import MIN_LIST_ITEMS, cut_number_runs


class Filled(pickle.Unpickler):
    def __init__(self, data: bytes, arrays: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self.persistent_load = arrays.__getitem__  # type: ignore[method-assign]


def back(value: object, protocol: int = 2) -> tuple[Any, int]:
    """What the cut pickle loads as, arrays as lists, and how many lists were cut."""
    cut = cut_number_runs(pickle.dumps(value, protocol))
    return as_lists(Filled(cut.pickle, list(cut.arrays)).load()), len(cut.arrays)


def as_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: as_lists(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_lists(one) for one in value)
    return value


lengths = st.sampled_from([0, 1, 63, 64, 65, 999, 1000, 1001, 1999, 2000, 2001, 3500])
floats = lengths.flatmap(
    lambda n: st.builds(lambda seed: np.random.default_rng(seed).normal(size=n).tolist(), st.integers(0, 99))
)
masks = lengths.flatmap(
    lambda n: st.builds(lambda seed: np.random.default_rng(seed).integers(0, 2, n).tolist(), st.integers(0, 99))
)
tokens = lengths.flatmap(
    lambda n: st.builds(lambda seed: np.random.default_rng(seed).integers(0, 150_000, n).tolist(), st.integers(0, 99))
)
leaves = st.one_of(
    floats, masks, tokens, st.text(max_size=30), st.none(), st.floats(allow_nan=False), st.integers(-5, 300)
)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


@given(trees)
def test_any_nest_of_lists_loads_as_it_was(value: object) -> None:
    assert back(value)[0] == value


@pytest.mark.parametrize("count", [64, 1000, 1001, 2500])
def test_long_lists_of_floats_and_masks_are_cut(count: int) -> None:
    value = {
        "log_probs": [-0.5 * at for at in range(count)],
        "mask": [at % 2 for at in range(count)],
        "text": "a ]q(G b",
    }
    assert back(value) == (value, 2)


@pytest.mark.parametrize("count", [64, 999, 1000, 1001, 1002, 2000, 2001, 2500])
@pytest.mark.parametrize("sizes", [(7, 70_000), (300, 40_000), (70_000,), (255, 256), (65_535, 65_536), (-1, 5)])
def test_long_lists_of_token_ids_are_cut(count: int, sizes: tuple[int, ...]) -> None:
    ids = [sizes[at % len(sizes)] for at in range(count)]
    value = [{"tokens": ids, "text": "e(K"}, {"tokens": ids[::-1], "after": [1, "one"]}]
    assert back(value) == (value, 2)


def test_ids_that_spell_the_marks_between_batches_are_cut() -> None:
    marks = [int.from_bytes(b"e(", "little"), int.from_bytes(b"e(K(", "little"), int.from_bytes(b"]q0(", "little")]
    ids = [*marks, 0x2865284B, 9] * 700
    assert back([ids, ids[1:]]) == ([ids, ids[1:]], 2)


@pytest.mark.parametrize("at", [0, 999, 1000, 1700])
@pytest.mark.parametrize("odd", [None, 2**31, -(2**40), 1.5, "text", True])
def test_token_ids_with_one_other_thing_among_them_stay_in_the_stream(at: int, odd: object) -> None:
    ids: list[object] = [at * 50 for at in range(1701)]
    ids[at] = odd
    assert back([ids, "after"]) == ([ids, "after"], 0)


@pytest.mark.parametrize("at", [0, 63, 500, 1000, 1500, 2499])
@pytest.mark.parametrize("odd", [None, 7, 70_000, "text", True, [1.0]])
def test_a_list_with_one_other_thing_in_it_stays_in_the_stream(at: int, odd: object) -> None:
    value = [float(n) for n in range(2500)]
    value[at] = odd  # type: ignore[call-overload]
    assert back([value, "after"]) == ([value, "after"], 0)


def test_a_list_that_is_referred_to_twice_is_one_array() -> None:
    shared = [0.25] * 100
    assert back([shared, shared, [shared]]) == ([shared, shared, [shared]], 1)


def test_floats_keep_their_value_and_go_to_half_the_width_only_without_loss() -> None:
    exact, fine = [0.5, float("inf"), float("-inf"), -0.0] * 20, [0.1, 1e300, 5e-324, 1.0] * 20
    cut = cut_number_runs(pickle.dumps([exact, fine, [float("nan"), 1.0] * 40], 2))
    assert [array.dtype for array in cut.arrays] == [np.float32, np.float64, np.float32]
    assert cut.arrays[0].tolist() == exact and cut.arrays[1].tolist() == fine
    assert np.isnan(cut.arrays[2][0]) and cut.arrays[2][1] == 1.0


def test_short_lists_are_left_to_the_unpickler() -> None:
    assert back([[1.5] * (MIN_LIST_ITEMS - 1)])[1] == 0


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_cut_without_an_error(data: bytes) -> None:
    cut_number_runs(b"]q\x00(G" + data)
    cut_number_runs(b"](" + data + b"]r\x00\x00\x00\x00(K")
    cut_number_runs(b"]q\x00(M" + data + b"]r\x00\x00\x00\x00(J")
