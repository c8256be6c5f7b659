"""Turns and context-parallel chunks of a response."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dumptui.core.sample.view import SampleView, view_sample
from tests.support.reading import read
from tests.support.writer import Layout, brute_force_slices, sample, write_step

SPANS = [
    [{"version": "3", "abs_start": 4, "abs_end": 7}, {"version": "4", "abs_start": 7, "abs_end": 8}],
    [{"version": "4", "abs_start": 10, "abs_end": 12}],
]


def view(run: Path, position: int = 0) -> SampleView:
    return view_sample(read(run), position, None)


@pytest.mark.parametrize("cp", [2, 4])
@pytest.mark.parametrize("response", [1, 3, 13, 40])
def test_the_rank_of_every_token_is_the_one_that_trained_it(tmp_path: Path, cp: int, response: int) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=response), sample(1)], layout=Layout(cp=cp))
    shown = view(tmp_path)
    owner = {at: rank for rank, held in enumerate(brute_force_slices(4 + response, response, cp)) for at in held}
    assert [shown.cp_rank(4 + at) for at in range(response)] == [owner[at] for at in range(response)]
    assert shown.chunks is not None and shown.chunks.size == cp
    changes = [4 + at for at in range(1, response) if owner[at] != owner[at - 1]]
    assert set(changes) <= set(shown.chunks.edges.tolist())
    assert len(shown.chunks.edges) < 2 * cp
    assert shown.cp_rank(0) is None and shown.cp_rank(4 + response) is None


def test_outliers_at_the_borders_of_chunks(tmp_path: Path) -> None:
    """Case 19: verl-project/verl#4250, one bad log-prob a chunk, of which rank 0 holds tokens 0-3 and 30-39."""
    batch = [sample(0, prompt_len=10, response_len=40)]
    bad = np.array(batch[0]["rollout_log_probs"])
    bad[[3, 29]] -= 8
    write_step(tmp_path, 0, batch, Layout(cp=2), truth={"log_probs": [bad]}, mirror=False)
    shown = view(tmp_path)
    assert sorted(shown.worst(limit=2).tolist()) == [13, 39]
    assert shown.borders[1] == [14, 27, 40]
    assert [shown.cp_rank(at) for at in (13, 14, 39, 40)] == [0, 1, 1, 0]
    assert shown.value("lp_diff", 13) == pytest.approx(-8, abs=1e-5)


def test_a_run_without_context_parallelism_has_no_chunks(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)])
    assert view(tmp_path).chunks is None


def test_where_the_tokens_of_a_missing_rank_are_is_known(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=40)], layout=Layout(cp=2), drop=[1])
    assert view(tmp_path).cp_rank(20) == 1


def test_turns_are_the_runs_of_trained_tokens(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=8, loss_mask=[1, 1, 0, 0, 1, 0, 1, 1])])
    shown = view(tmp_path)
    assert shown.turns.tolist() == [4, 8, 10]
    assert [shown.turn(at) for at in range(3, 12)] == [None, 1, 1, 1, 1, 2, 2, 3, 3]
    assert [shown.masked(at) for at in range(3, 9)] == [False, False, False, True, True, False]


def test_turns_are_the_calls_where_their_places_are_recorded(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=8, weight_versions=SPANS, loss_mask=[1, 1, 1, 1, 0, 0, 1, 1])])
    shown = view(tmp_path)
    assert shown.turns.tolist() == [4, 10]
    assert [shown.version(at) for at in range(3, 12)] == [None, "3", "3", "3", "4", None, None, "4", "4"]


def test_no_range_is_made_up_for_a_version_a_call(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, weight_versions=["3", "5"]), sample(1, weight_versions=["3", "3"])])
    assert view(tmp_path).version(5) is None
    assert view(tmp_path, 1).version(5) == "3"
    assert view(tmp_path, 1).version(0) is None


def test_an_empty_response_has_no_turns(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=0), sample(1)])
    shown = view(tmp_path)
    assert not len(shown.turns)
    assert shown.turn(0) is None
