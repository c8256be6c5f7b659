"""Where each token of a rollout response lies in the trainer's, whose media may be expanded."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.parallel.token_alignment import TokenAlignment, align

MEDIA, SENTINEL = 9, -101
tokens = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1)) | st.tuples(st.just(MEDIA), st.integers(1, 5)))
"""(token, how often the trainer has it): text of few different ids, so that runs of it are there too, and media."""


def aligned(
    prompt: list[tuple[int, int]], response: list[tuple[int, int]], media: bool = False
) -> TokenAlignment | None:
    own = [token for token, _ in prompt + response]
    train = [token for token, times in prompt + response for _ in range(times)]
    written = sum(times for _, times in response)
    mask = np.array([token != MEDIA for token, times in response for _ in range(times)], np.int32)
    return align(np.array(train, np.int64), written, np.array(own, np.int64), len(response), mask, media)


@settings(max_examples=300)
@given(prompt=tokens, response=tokens)
def test_every_token_of_text_is_found(prompt: list[tuple[int, int]], response: list[tuple[int, int]]) -> None:
    found = aligned(prompt, response)
    assert found is not None
    starts = [0, *accumulate(times for _, times in response)]
    for at, (token, _) in enumerate(response):
        if token != MEDIA:
            assert found.own[at] and found.positions[at] == starts[at]
    assert all(times == 1 for own, (_, times) in zip(found.own, response, strict=True) if own)


@settings(max_examples=300)
@given(
    one=st.lists(st.integers(0, 2), max_size=8), other=st.lists(st.integers(0, 2), max_size=8), prompt=st.integers(0, 3)
)
def test_other_text_is_never_aligned(one: list[int], other: list[int], prompt: int) -> None:
    """Also where one is the beginning of the other, or only a token is repeated more often."""
    before = [0, 1, 2][:prompt]
    mask = np.ones(len(other), np.int32)
    found = align(
        np.array(before + other, np.int64), len(other), np.array(before + one, np.int64), len(one), mask, False
    )
    assert (found is not None) == (one == other)


def test_sentinels_may_be_missing_or_one_for_many() -> None:
    for held in ([], [SENTINEL], [SENTINEL, SENTINEL]):
        own = np.array([5, 6, *held, 7, 8])
        train = np.array([5, 6, *[SENTINEL] * 4, 7, 8])
        found = align(train, 7, own, len(own) - 1, None, False)
        assert found is not None
        assert found.positions[found.own].tolist() == [0, 5, 6]
        assert len(found.positions) == len(own) - 1


def test_a_prompt_that_is_rewritten_around_media_needs_a_response_that_tells() -> None:
    for length, fits in ((7, False), (8, True)):
        response = list(range(20, 20 + length))
        train, own = np.array([1, 50, 51, 51, 52, 2, *response]), np.array([1, 60, 2, *response])
        assert (align(train, length, own, length, None, True) is not None) == fits
        assert align(train, length, own, length, None, False) is None
