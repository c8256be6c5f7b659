"""Weight versions as text: oldest to newest by their order, in every place and spelling the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dumptui.core.formats.weight_versions import version_range
from dumptui.core.sample.generation import call_facts
from dumptui.core.sample.view import view_sample
from dumptui.tui.presentation.tokens import title
from tests.support.reading import read, samples
from tests.support.writer import sample, write_step


@pytest.mark.parametrize(
    ("versions", "shown"),
    [
        (["42", "41"], "v41–v42"),
        (["41", "42"], "v41–v42"),
        (["9", "10"], "v9–v10"),
        (["10", "9", "100"], "v9–v100"),
        (["7", "7"], "v7"),
        (["default"], "vdefault"),
        (["default", "1"], "vdefault–v1"),
        (["2", "default", "1"], "vdefault–v2"),
        (["step-b", "step-a"], "vstep-b–vstep-a"),
        (["", "3", ""], "v3"),
        ([""], ""),
        ([], ""),
    ],
)
def test_a_range_is_from_the_oldest_to_the_newest(versions: list[str], shown: str) -> None:
    assert version_range(versions) == shown


def one(path: Path, versions: Any) -> Any:
    write_step(path, 0, [sample(0, weight_versions=versions)], mirror=False)
    return read(path)


def test_every_place_shows_the_same_range(tmp_path: Path) -> None:
    step = one(tmp_path, ["42", "41"])
    assert samples(step)[0]["versions"] == "v41–v42"
    assert "weights v41–v42" in title(view_sample(step, 0, None), "").plain


@pytest.mark.parametrize(
    ("dumped", "versions", "calls"),
    [
        ([["3", "4"], ["4"]], ["3", "4", "4"], 2),
        ([[["3", 4, 7], ["4", 7, 10]]], ["3", "4"], 1),
        (["", "5"], ["5"], 2),
        ([[{"version": "", "abs_start": 4, "abs_end": 7}, {"version": "6", "abs_start": 7, "abs_end": 10}]], ["6"], 1),
    ],
)
def test_pairs_texts_and_empty_texts(tmp_path: Path, dumped: Any, versions: list[str], calls: int) -> None:
    (read_one,) = one(tmp_path, dumped).samples
    assert (read_one.versions, len(read_one.calls)) == (versions, calls)


def test_a_call_without_a_version_is_still_a_call(tmp_path: Path) -> None:
    step = one(tmp_path, ["", ""])
    (row,) = samples(step)
    assert (row["turns"], row["versions"], row["mixed_version"], row["staleness"]) == (2, None, None, None)
    assert list(call_facts(step.samples[0], [])) == ["call 1", "call 2"]
