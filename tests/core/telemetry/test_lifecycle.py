"""The life of a sample: its events paired to spans, told in words and drawn as a lane."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.files.step_files import StepKey
from dumptui.core.live import Follow
from dumptui.core.run.run import Run
from dumptui.core.sample.generation import lifecycle_facts
from dumptui.core.telemetry.lifecycle import Lifecycle, Span, paired, read_lifecycle
from dumptui.core.telemetry.telemetry import Telemetry
from dumptui.core.text import visible
from dumptui.tui.presentation.timeline import Lane
from tests.support.screen import run, text, until_shown
from tests.support.session import go, opened
from tests.support.streams import HOURS, MIDNIGHT, append, document, logged
from tests.support.writer import sample, write_step

Event = dict[str, Any]
TWO_TURNS = [
    (0.0, "attempt_start", -1),
    (0.5, "gen_start", 1),
    (2.5, "gen_end", 1, "3", "57"),
    (2.5, "tool_start", 1),
    (3.5, "tool_end", 1, "", "2 calls"),
    (4.0, "gen_start", 2),
    (6.0, "gen_end", 2, "4", "9"),
    (8.0, "attempt_end", -1, "4", "completed"),
]


def event(ts: float, kind: str, turn: int = -1, version: str = "", detail: str = "") -> Event:
    place = {"sample_index": 7, "group_index": 1, "turn": turn}
    return {"ts": MIDNIGHT + ts, "kind": kind, **place, "weight_version": version, "detail": detail}


def events(told: Sequence[tuple[Any, ...]], later: float = 0.0, index: int = 7) -> list[Event]:
    return [event(ts + later, *rest) | {"sample_index": index} for ts, *rest in told]


def shown(spans: Sequence[Span]) -> list[tuple[Any, ...]]:
    """Name, start and end in seconds since midnight, and what is not known of them."""
    return [
        (f"{one.kind} {one.turn}" if one.turn >= 0 else one.kind, one.t0 - MIDNIGHT, one.t1 - MIDNIGHT, one.unknown)
        for one in spans
    ]


def said(life: Lifecycle | None, siblings: int = 1) -> dict[str, str]:
    assert life is not None
    return dict(lifecycle_facts(life, siblings))


# Pairing ----------------------------------------------------------------------------------------------------------


def test_starts_and_ends_of_one_turn_belong_together_in_whatever_order_they_were_written() -> None:
    expected = [
        ("attempt", 0.0, 8.0, ""),
        ("gen 1", 0.5, 2.5, ""),
        ("tool 1", 2.5, 3.5, ""),
        ("gen 2", 4.0, 6.0, ""),
    ]
    assert shown(paired(events(TWO_TURNS))) == expected
    assert shown(paired(events(TWO_TURNS)[::-1])) == expected


def test_what_an_end_says_goes_before_what_its_start_says() -> None:
    (span,) = paired([event(0, "gen_start", 1, "3", "asked"), event(1, "gen_end", 1, "", "57")])
    assert (span.version, span.detail) == ("3", "57")


def test_the_end_of_an_attempt_ends_what_is_open() -> None:
    told = [(0, "attempt_start"), (1, "gen_start"), (5, "attempt_end", -1, "", "completed")]
    assert shown(paired(events(told))) == [("attempt", 0, 5, ""), ("gen", 1, 5, "")]


def test_generating_as_a_whole_gives_way_to_its_turns() -> None:
    told = [*TWO_TURNS, (0.25, "gen_start", -1), (10, "attempt_start", -1), (11, "gen_start", -1)]
    told += [(12, "attempt_end", -1, "", "aborted")]
    names = [name for name, *_ in shown(paired(events(told)))]
    assert names == ["attempt", "gen 1", "tool 1", "gen 2", "attempt", "gen"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(0, "gen_start", 1), (4, "tool_start", 1)], [("gen 1", 0, 4, "end"), ("tool 1", 4, 4, "end")]),
        ([(0, "gen_start", 1), (4, "tool_end", 1)], [("tool 1", 0, 4, "start"), ("gen 1", 0, 4, "end")]),
        (
            [(0, "attempt_start"), (1, "gen_start", 1), (6, "attempt_start"), (8, "attempt_end")],
            [("attempt", 0, 6, "end"), ("gen 1", 1, 6, "end"), ("attempt", 6, 8, "")],
        ),
        ([(0, "tool_start", 1), (0, "tool_end", 1)], [("tool 1", 0, 0, "")]),
        (
            [(0, "attempt_start"), (3, "attempt_end"), (3, "attempt_start"), (5, "attempt_end")],
            [("attempt", 0, 3, ""), ("attempt", 3, 5, "")],
        ),
        ([(0, "reward_start"), (2, "reward_end"), (3, "killed")], [("reward", 0, 2, ""), ("killed", 3, 3, "")]),
        (
            [(0, "attempt_start"), (1, "gen_start", 1), (3, "gen_end", 1), (4, "tool_end", 1), (7, "gen_end", 2)],
            [("attempt", 0, 7, "end"), ("gen 1", 1, 3, ""), ("tool 1", 3, 4, "start"), ("gen 2", 4, 7, "start")],
        ),
        (
            [(0, "attempt_start"), (3, "attempt_end"), (5, "attempt_start"), (8, "gen_end", 1), (9, "attempt_end")],
            [("attempt", 0, 3, ""), ("attempt", 5, 9, ""), ("gen 1", 5, 8, "start")],
        ),
        (
            [(0, "attempt_start"), (3, "attempt_end"), (5, "gen_start", 1), (8, "gen_end", 1), (9, "attempt_end")],
            [("attempt", 0, 3, ""), ("attempt", 5, 9, "start"), ("gen 1", 5, 8, "")],
        ),
        (
            [(0, "gen_start", 1), (5, "tool_start", 1), (5, "gen_end", 1), (5, "deser_end", 1), (6, "tool_end", 1)],
            [("gen 1", 0, 5, ""), ("deser 1", 0, 5, "start"), ("tool 1", 5, 6, "")],
        ),
    ],
    ids=[
        *("no end", "no start", "an attempt that died", "no length", "at once again", "other kinds"),
        *("after the one before", "of its attempt", "an attempt without start", "at one time"),
    ],
)
def test_what_is_missing_is_told(told: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert shown(paired(events(told))) == expected


def test_scoring_and_deserializing_are_spans_of_their_own() -> None:
    """Scoring may go on when the attempt has ended, with which generating ends."""
    told = [(0, "attempt_start"), (1, "gen_start"), (4, "deser_start", 1), (4.5, "deser_end", 1), (5, "reward_start")]
    told += [(6, "attempt_end", -1, "", "completed"), (9, "reward_end", -1, "", "0.5")]
    spans = paired(events(told))
    assert shown(spans) == [
        ("attempt", 0, 6, ""),
        ("gen", 1, 6, ""),
        ("deser 1", 4, 4.5, ""),
        ("reward", 5, 9, ""),
    ]
    assert shown(paired(events(told[:-1])))[-1] == ("reward", 5, 6, "end")
    assert Lane(Lifecycle(tuple(spans))).rows(45) == [
        "·····███████████████░░███▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓",
        "0 s                                   9.000 s",
        "█ gen  ░ deser  ▓ reward  · waiting",
    ]


KINDS = [f"{kind}_{what}" for kind in ("attempt", "gen", "tool", "reward") for what in ("start", "end")]
KINDS += ["odd", "_end", "", "\x1b[2J_start", "[/x]\u202e漢_start"]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(KINDS), st.integers(-1, 2)), max_size=30), st.integers())
def test_any_events_make_a_lane(told: list[tuple[Any, ...]], width: int) -> None:
    spans = paired(events(told))
    assert all(span.t0 <= span.t1 for span in spans)
    if spans:
        life = Lifecycle(tuple(spans))
        assert 0.0 <= life.waiting() <= life.t1 - life.t0 and life.queued() >= 0.0
        assert len(said(life)["total"]) > 0
        width = width % 200
        lane = Lane(life)
        rows = lane.rows(width)
        assert len(rows) == lane.height(width) >= 2
        assert max(1, width) in (len(rows[0]), len(rows[1]))
        assert all(visible(row) == row for row in rows)  # nothing of the dump reaches the terminal raw


# Which events -----------------------------------------------------------------------------------------------------


def test_a_life_is_told_in_words(tmp_path: Path) -> None:
    append(tmp_path, f"trajectories/{HOURS[2]}", *events(TWO_TURNS), *events(TWO_TURNS, 1, index=8))
    append(tmp_path, "metrics", logged(MIDNIGHT + 7, 0, rollout_reward=0.5))
    append(tmp_path, "metrics", logged(MIDNIGHT + 30, 0, perf_step_time=9.0), logged(MIDNIGHT + 31, 0, other_x=1))
    found = said(read_lifecycle(Telemetry(tmp_path), StepKey(0), 7))
    assert found["total"] == "8.000 s: 4.000 in 2 gen, 1.000 in 1 tool, 3.000 waiting, 0.500 of it queued"
    assert found["began"] == "2026-01-01 00:00:00 UTC"
    assert found["logged"] == "22.000 s after it ended"
    assert found["attempt"] == "at 0.000 s for 8.000 s · completed"
    assert found["gen 1"] == "at 0.500 s for 2.000 s · weights v3 · 57 tokens"
    assert found["tool 1"] == "at 2.500 s for 1.000 s · 2 calls"


def test_a_life_over_midnight_and_its_second_attempt(tmp_path: Path) -> None:
    append(tmp_path, f"trajectories/{HOURS[1]}", *events(TWO_TURNS[:-1], -200))
    append(tmp_path, f"trajectories/{HOURS[2]}", event(-190, "attempt_end", -1, "", "aborted"), *events(TWO_TURNS))
    append(tmp_path, "metrics", logged(MIDNIGHT + 30, 4, perf_step_time=9.0))
    life = read_lifecycle(Telemetry(tmp_path), StepKey(4), 7)
    found = said(life, siblings=2)
    assert found["attempt 1"].endswith("for  10.0 s · aborted") and found["attempt 2"].endswith("8.0 s · completed")
    assert found["shared by"] == "2 samples with this index: the events do not distinguish them"


def test_of_a_step_run_again_the_second_time_counts(tmp_path: Path) -> None:
    died = [*events(TWO_TURNS[:3], -3000), *events(TWO_TURNS)]
    append(tmp_path, f"trajectories/{HOURS[2]}", *died)
    document(tmp_path, "meta.json", {"start_ts": MIDNIGHT - 100})
    append(tmp_path, "metrics", logged(MIDNIGHT - 2000, 0, perf_step_time=9.0))
    append(tmp_path, "metrics", logged(MIDNIGHT + 30, 0, perf_step_time=9.0))
    life = read_lifecycle(Telemetry(tmp_path), StepKey(0), 7)
    assert life is not None and len(life.of("attempt")) == 1 and life.t0 == MIDNIGHT


def test_without_metrics_the_newest_events_of_the_sample_are_taken(tmp_path: Path) -> None:
    append(tmp_path, f"trajectories/{HOURS[0]}", *events(TWO_TURNS, -7000))
    append(tmp_path, f"trajectories/{HOURS[2]}", *events(TWO_TURNS, index=8))
    life = read_lifecycle(Telemetry(tmp_path), StepKey(0), 7)
    assert life is not None and life.t0 == MIDNIGHT - 7000 and "logged" not in said(life)


@pytest.mark.parametrize(("key", "index"), [(StepKey(0, True), 7), (StepKey(0), None), (StepKey(0), 3)])
def test_there_is_none_of_an_eval_and_without_events(tmp_path: Path, key: StepKey, index: int | None) -> None:
    assert read_lifecycle(Telemetry(tmp_path), key, index) is None
    append(tmp_path, f"trajectories/{HOURS[2]}", *events(TWO_TURNS), *events(TWO_TURNS, index=-1))
    assert read_lifecycle(Telemetry(tmp_path), key, index) is None


# Drawn ------------------------------------------------------------------------------------------------------------


def test_a_lane_is_as_wide_as_there_is_room() -> None:
    lane = Lane(Lifecycle(tuple(paired(events(TWO_TURNS)))))
    assert lane.rows(64) == [
        "    1                           2",
        "····████████████████▒▒▒▒▒▒▒▒····████████████████················",
        "0 s               █ gen  ▒ tool  · waiting               8.000 s",
    ]
    assert lane.rows(16) == [" 1      2", "·████▒▒·████····", "0 s      8.000 s", "█ gen  ▒ tool", "· waiting"]
    assert lane.height(16) == 5 and lane.height(64) == 3


def test_a_life_of_one_turn_has_no_row_of_turns() -> None:
    life = Lifecycle(tuple(paired(events([(0, "attempt_start"), (1, "gen_start"), (5, "attempt_end")]))))
    assert Lane(life).rows(30) == ["·" * 6 + "█" * 24, "0 s  █ gen  · waiting  5.000 s"]
    assert said(life)["total"] == "5.000 s: 4.000 in 1 gen, 1.000 waiting, all of it queued"


def test_a_short_span_is_seen_among_long_ones() -> None:
    told = [(0, "gen_start", 1), (50, "gen_end", 1), (50, "tool_start", 1), (50.1, "tool_end", 1)]
    told += [(50.1, "gen_start", 2), (99, "gen_end", 2)]
    row = Lane(Lifecycle(tuple(paired(events(told))))).rows(20)[1]
    assert row.count("▒") == 1 and row.count("█") == 19


async def test_the_facts_of_a_sample_show_its_lane(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(7), sample(8)])
    append(tmp_path, f"trajectories/{HOURS[2]}", *events(TWO_TURNS))
    async with opened(tmp_path, size=(100, 60)) as (app, pilot):
        await go(pilot, "i")
        await until_shown(pilot, "▾ lifecycle", "████", "█ gen  ▒ tool  · waiting", "4.000 in 2 gen", "57 tokens")
        await go(pilot, "escape", "n", "i")
        await until_shown(pilot, "sample 8: all dumped fields")
        assert "lifecycle" not in text(app)


@pytest.mark.parametrize("live", [False, True])
async def test_events_that_come_later_are_seen(tmp_path: Path, live: bool) -> None:
    write_step(tmp_path, 0, [sample(7), sample(8)])
    append(tmp_path, f"trajectories/{HOURS[2]}", *events(TWO_TURNS))
    follow = Follow(tmp_path, run=Run.open(tmp_path)) if live else None
    async with opened(tmp_path, size=(100, 60), follow=follow) as (app, pilot):
        await go(pilot, "i")
        await until_shown(pilot, "▾ lifecycle")
        append(tmp_path, f"trajectories/{HOURS[2]}", *events(TWO_TURNS, index=8))
        if live:
            app.reader.look()
        await go(pilot, "n")
        await until_shown(pilot, "sample 8: all dumped", "▾ lifecycle")


def test_lifecycles_are_printed(shared: Path) -> None:
    words = ["--print", "facts", "--step", "1", "--sample", "13", "--json"]
    document = json.loads(run(shared / "runs/multiturn", *words).stdout)
    life = {row["name"]: row["value"] for row in document["rows"] if row["section"] == "lifecycle"}
    assert life["total"] == "8.000 s: 5.000 in 2 gen, 1.500 in 2 tool, 1.500 waiting, 0.500 of it queued"
    assert life["gen 2"] == "at 4.000 s for 2.500 s · weights v1 · 57 tokens"
