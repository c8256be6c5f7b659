"""Which positions a context-parallel rank holds, against a cut made token by token, and putting slices back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.parallel.context_parallel import MissingRank, assemble, spans, split
from tests.support.writer import brute_force_slices

CP_SIZES = range(2, 9)


def held(total: int, response: int, cp_size: int, padded: int | None) -> list[list[int]]:
    found = []
    for rank in range(cp_size):
        first, second = spans(total, response, cp_size, rank, padded).at(0)
        found.append([*range(response)[first], *range(response)[second]])
    return found


@pytest.mark.parametrize("cp_size", CP_SIZES)
@pytest.mark.parametrize("padded", [None, 20, 64])
def test_every_short_length_is_cut_as_token_by_token_and_put_back(cp_size: int, padded: int | None) -> None:
    empty = 0
    for total in range(1, 21):
        for response in range(total):
            qkv, longest = ("thd", 0) if padded is None else ("bshd", padded)
            slices = held(total, response, cp_size, padded)
            assert slices == brute_force_slices(total, response, cp_size, qkv, longest)
            empty += any(response and not part for part in slices)
            values = np.arange(response, dtype=np.float32)
            assert assemble(split(values, total, cp_size, padded), total, response, padded).tolist() == values.tolist()
    assert empty, "ranks that hold nothing were meant to be among them"


@given(
    prompt=st.integers(1, 40_000),
    response=st.integers(0, 40_000),
    cp_size=st.sampled_from(CP_SIZES),
    padding=st.one_of(st.none(), st.integers(0, 4096)),
)
def test_put_back_is_what_was_cut_at_any_length(prompt: int, response: int, cp_size: int, padding: int | None) -> None:
    total = prompt + response
    padded = None if padding is None else total + padding
    values = np.arange(response, dtype=np.float32)
    slices = split(values, total, cp_size, padded)
    assert np.array_equal(assemble(slices, total, response, padded), values)
    widths = [int(spans(total, response, cp_size, rank, padded).width[0]) for rank in range(cp_size)]
    assert [len(part) for part in slices] == widths and sum(widths) == response


@pytest.mark.parametrize("cp_size", CP_SIZES)
def test_a_missing_rank_is_an_error_even_where_it_holds_nothing(cp_size: int) -> None:
    slices = split(np.arange(3, dtype=np.float32), 100, cp_size)
    for rank in range(cp_size):
        with pytest.raises(MissingRank, match=f"cp rank {rank} of {cp_size} missing"):
            assemble([None if at == rank else part for at, part in enumerate(slices)], 100, 3)


def test_slices_of_another_width_are_an_error() -> None:
    with pytest.raises(ValueError, match="cp rank 0 holds 1 values, the slicing rule gives 4"):
        assemble([np.zeros(1), np.zeros(9)], 20, 10)
    with pytest.raises(ValueError, match="2 slices hold 9 of 10 values"):
        assemble([np.zeros(4), np.zeros(5)], 20, 10)


def test_the_first_token_of_an_empty_prompt_has_no_logit_and_is_never_made_up() -> None:
    assert held(8, 8, 2, None) == brute_force_slices(8, 8, 2)
    with pytest.raises(ValueError, match="hold 7 of 8 values"):
        assemble(split(np.ones(8), 8, 2), 8, 8)
    assert assemble([np.ones(8)], 8, 8).tolist() == [1] * 8


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 90)), min_size=1, max_size=8), st.sampled_from(CP_SIZES))
def test_many_samples_at_once_are_each_alone(lengths: list[tuple[int, int]], cp_size: int) -> None:
    totals = [prompt + response for prompt, response in lengths]
    responses = [response for _, response in lengths]
    for rank in range(cp_size):
        together = spans(totals, responses, cp_size, rank)
        alone = [spans(total, response, cp_size, rank) for total, response in zip(totals, responses, strict=True)]
        assert [together.at(row) for row in range(len(totals))] == [one.at(0) for one in alone]
