"""Phases end up on the GPUs they ran on, once, with an end."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.telemetry import phases
from dumptui.core.telemetry.column_store import Schema
from dumptui.core.telemetry.jsonl_tail import MISFIT_ERRORS, Record
from dumptui.core.telemetry.phases import STILL_OPEN, Attempt, Engine, Interval, Lane, Topology, lanes, topology

START, NEWEST = 100.0, 200.0


def phase(name: str, t0: float, t1: float = STILL_OPEN, rank: int = 0, **other: Any) -> Record:
    record = {"name": name, "t0": t0, "t1": t1, "node": "a", "gpus": [rank], "rank": rank, "role": "train"}
    return record | other


def rollout(t0: float, t1: float = STILL_OPEN) -> Record:
    return phase("rollout", t0, t1, rank=-1, node="driver", gpus=[], role="rollout_manager")


def engine(host: str, *gpus: int, port: int = 30000) -> Record:
    return {"addr": f"http://{host}:{port}", "worker_type": "regular", "gpus": [[host, gpu] for gpu in gpus]}


def resolve(
    records: list[Record],
    topologies: list[Record] | None = None,
    known: set[Lane] | None = None,
    start: float | None = None,
    newest: float = NEWEST,
) -> list[Interval]:
    table = Schema(phases.PHASE_FIELDS).columns(records)
    return lanes(table, [topology(one) for one in topologies or []], known or set(), Attempt(start, newest))


def spans(intervals: list[Interval]) -> list[tuple[str, int, str, float, float]]:
    return [(one.node, one.gpu, one.name, one.t0, one.t1) for one in intervals]


def test_a_training_phase_is_on_every_gpu_it_names() -> None:
    assert resolve([phase("actor_train", 110, 120, rank=3, gpus=[6, 7])]) == [
        Interval("a", 6, 3, "train", "actor_train", 110, 120),
        Interval("a", 7, 3, "train", "actor_train", 110, 120),
    ]


def test_lanes_are_in_order_and_phases_by_start_within() -> None:
    records = [phase("b", 120, 130, rank=1), phase("a", 110, 115, rank=1), phase("c", 150, 160), phase("d", 1, 2)]
    assert [(one.gpu, one.name) for one in resolve(records)] == [(0, "d"), (0, "c"), (1, "a"), (1, "b")]


def test_ranks_keep_their_own_times() -> None:
    found = resolve([phase("train_wait", 110, 120 + rank / 5, rank=rank) for rank in range(3)])
    assert [one.t1 for one in found] == [120, 120.2, 120.4]


def test_a_phase_that_still_runs_reaches_the_newest_data() -> None:
    assert resolve([phase("actor_train", 150)]) == [Interval("a", 0, 0, "train", "actor_train", 150, NEWEST, True)]


def test_one_that_began_after_the_newest_data_has_no_negative_length() -> None:
    (one,) = resolve([phase("actor_train", 250)])
    assert (one.t0, one.t1) == (250, 250)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_end_takes_the_place_of_the_open_mark(reverse: bool) -> None:
    records = [phase("actor_train", 150), phase("actor_train", 150, 160)]
    (one,) = resolve(records[::-1] if reverse else records)
    assert (one.t1, one.open) == (160, False)


@pytest.mark.parametrize("other", [{"node": "b"}, {"rank": 1}, {"name": "log_probs"}, {"t0": 151}])
def test_only_the_end_of_the_same_phase_does(other: Record) -> None:
    assert len(resolve([phase("actor_train", 150), phase("actor_train", 150, 160) | other])) == 2


def test_an_open_mark_written_twice_is_one_phase() -> None:
    assert len(resolve([phase("actor_train", 150), phase("actor_train", 150)])) == 1


def test_a_phase_of_a_dead_attempt_ends_where_the_next_begins() -> None:
    records = [phase("actor_train", 50), phase("actor_train", 150)]
    found = [one for one in resolve(records, start=START) if one.role == "train"]
    assert [(one.t0, one.t1, one.open) for one in found] == [(50, START, True), (150, NEWEST, True)]


def test_a_phase_whose_end_was_lost_ends_when_its_rank_begins_it_again() -> None:
    records = [phase("actor_train", 110), phase("actor_train", 130, 140), phase("actor_train", 112, rank=1)]
    found = resolve(records)
    assert [(one.gpu, one.t0, one.t1, one.open) for one in found] == [
        (0, 110, 130, True),
        (0, 130, 140, False),
        (1, 112, NEWEST, True),
    ]


def test_a_rollout_is_on_every_gpu_of_every_engine() -> None:
    found = resolve([rollout(110, 120)], [{"ts": 100, "engines": [engine("b", 0, 1), engine("c", 0)]}])
    assert spans(found) == [("b", 0, "rollout", 110, 120), ("b", 1, "rollout", 110, 120), ("c", 0, "rollout", 110, 120)]
    assert {(one.rank, one.role) for one in found} == {(-1, "rollout_manager")}


def test_a_rollout_is_cut_where_the_engines_change() -> None:
    """An engine on GPU 1 goes, one on GPU 2 comes; the snapshots are not in order."""
    found = resolve(
        [rollout(90, 150)],
        [
            {"ts": 130, "engines": [engine("b", 0, 2)]},
            {"ts": 100, "engines": [engine("b", 0, 1)]},
        ],
    )
    assert spans(found) == [
        ("b", 0, "rollout", 100, 130),
        ("b", 0, "rollout", 130, 150),
        ("b", 1, "rollout", 100, 130),
        ("b", 2, "rollout", 130, 150),
    ]


def test_only_the_last_piece_of_an_open_rollout_is_open() -> None:
    changes = [{"ts": 100, "engines": [engine("b", 0)]}, {"ts": 130, "engines": [engine("b", 0)]}]
    assert [one.open for one in resolve([rollout(110)], changes)] == [False, True]


def test_a_rollout_before_any_engine_is_known_is_nowhere() -> None:
    assert resolve([rollout(110, 120)], [{"ts": 130, "engines": [engine("b", 0)]}]) == []


def test_an_engine_without_gpus_has_all_lanes_of_its_host() -> None:
    known = {Lane("b", 0), Lane("b", 3), Lane("c", 0)}
    found = resolve([rollout(110, 120)], [{"ts": 100, "engines": [engine("b")]}], known)
    assert [(one.node, one.gpu) for one in found] == [("b", 0), ("b", 3)]


@pytest.mark.parametrize(
    ("addr", "host"),
    [
        ("http://10.0.0.1:30000", "10.0.0.1"),
        ("https://node-a:30000/v1", "node-a"),
        ("10.0.0.1:30000", "10.0.0.1"),
        ("http://[fd00::1]:30000", "fd00::1"),
        ("http://[fd00::1]", "fd00::1"),
        ("node-a", "node-a"),
        ("", ""),
    ],
)
def test_the_host_of_an_engine(addr: str, host: str) -> None:
    assert Engine(addr, "external", -1, ()).host == host


def test_each_lane_initializes_until_its_first_phase() -> None:
    records = [phase("train_wait", 130, 140), phase("train_wait", 120, 140, rank=1), phase("late", 150, 160)]
    found = [one for one in resolve(records, start=START) if one.name == "initialize"]
    assert found == [
        Interval("a", 0, -1, "derived", "initialize", START, 130),
        Interval("a", 1, -1, "derived", "initialize", START, 120),
    ]


def test_a_resumed_run_initializes_anew() -> None:
    records = [phase("actor_train", 50, 60), phase("actor_train", 150, 160), phase("actor_train", 50, 60, rank=1)]
    found = [one for one in resolve(records, start=START) if one.name == "initialize"]
    assert spans(found) == [("a", 0, "initialize", START, 150)]


@pytest.mark.parametrize("start", [None, 110.0])
def test_no_initialize_without_time_for_it(start: float | None) -> None:
    assert [one.name for one in resolve([phase("actor_train", 110, 120)], start=start)] == ["actor_train"]


def test_nothing_gives_nothing() -> None:
    assert resolve([], [{"ts": 1, "engines": [engine("b", 0)]}], start=START) == []


@pytest.mark.parametrize(
    "record",
    [{}, {"ts": 1}, {"ts": None, "engines": []}, {"ts": 1, "engines": [{}]}, {"ts": 1, "engines": ["x"]}],
)
def test_what_is_no_topology_raises_a_misfit(record: Record) -> None:
    with pytest.raises(MISFIT_ERRORS):
        topology(record)


def test_a_topology_of_an_external_engine() -> None:
    record = {"ts": 5, "engines": [{"addr": "http://x:1", "worker_type": "external", "engine_rank": -1, "gpus": []}]}
    assert topology(record) == Topology(5.0, (Engine("http://x:1", "external", -1, ()),))


moments = st.integers(90, 210).map(float)
events = st.lists(
    st.builds(
        phase,
        st.sampled_from(["train", "actor_train"]),
        moments,
        st.one_of(st.just(STILL_OPEN), moments),
        rank=st.integers(0, 1),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(events, st.one_of(st.none(), moments))
def test_no_phase_is_lost_and_none_runs_backwards(records: list[Record], start: float | None) -> None:
    found = resolve(records, start=start)
    assert all(one.t0 <= one.t1 and math.isfinite(one.t1) for one in found)
    shown = {(one.rank, one.name, one.t0) for one in found if one.role == "train"}
    assert shown == {(one["rank"], one["name"], one["t0"]) for one in records}
    closed = [(one["rank"], one["name"], one["t0"]) for one in records if one["t1"] != STILL_OPEN]
    assert sum(not one.open for one in found if one.role == "train") == len(closed)
    assert not {(one.rank, one.name, one.t0) for one in found if one.open} & set(closed)
