"""The streams of a run: read back as written, parsed when needed, followed as they grow."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.telemetry import logs, streams
from dumptui.core.telemetry.column_store import Schema
from dumptui.core.telemetry.jsonl_tail import Record
from dumptui.core.telemetry.metrics import History
from dumptui.core.telemetry.phases import Lane
from dumptui.core.telemetry.telemetry import STREAM_FIELDS, Telemetry
from tests.support.streams import HOURS, MIDNIGHT, append, document, logged

"""2026-01-01 00:00 UTC."""
LAST_HOUR = MIDNIGHT - 3600


def gpu(ts: float, at: int = 0, util: float = 50, node: str = "a") -> Record:
    return {"ts": ts, "node": node, "gpu": at, "util": util, "mem_mb": 60000, "power_w": 400}


def engine(ts: float, value: float, rank: str | None = None, metric: str = "sglang_token_usage") -> Record:
    labels = {} if rank is None else {"dp_rank": rank}
    return {"ts": ts, "addr": "http://b:1", "metric": metric, "labels": labels, "value": value}


def phase(name: str, t0: float, t1: float, rank: int = 0) -> Record:
    return {"name": name, "t0": t0, "t1": t1, "node": "a", "gpus": [rank], "rank": rank, "role": "train"}


def event(ts: float, kind: str = "gen_start") -> Record:
    end = {"turn": -1, "weight_version": "", "detail": ""}
    return {"ts": ts, "kind": kind, "sample_index": 7, "group_index": 1, **end}


def parsed(telemetry: Telemetry, stream: str) -> list[str]:
    return [part.path.stem for part in telemetry.streams[stream].parts if part.columns is not None]


def values(telemetry: Telemetry, key: str) -> list[Any]:
    return [row["value"] for row in telemetry.metrics.rows(key)]


# Streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "record"),
    [
        ("gpu_util", gpu(MIDNIGHT)),
        ("gpu_processes", {"ts": MIDNIGHT, "node": "a", "gpu": 1, "pid": 4_000_000, "name": "ray", "mem_mb": 51200}),
        ("engine_series", engine(MIDNIGHT, 0.25)),
        ("trajectories", event(MIDNIGHT)),
        ("phases", phase("actor_train", MIDNIGHT, MIDNIGHT + 5)),
    ],
)
def test_a_record_is_read_back_as_written(tmp_path: Path, stream: str, record: Record) -> None:
    append(tmp_path, f"{stream}/{HOURS[2]}", record, record)
    telemetry = Telemetry(tmp_path)
    (part,) = telemetry.streams[stream].parts
    rows = list(telemetry.streams[stream].schema.concat([part.load()]).rows())
    written = record | {"gpus": tuple(record["gpus"])} if "gpus" in record else record
    written = written | {"labels": ()} if "labels" in written else written
    assert rows == [written, written]


def test_an_empty_run_has_nothing_and_no_problems(tmp_path: Path) -> None:
    telemetry = Telemetry(tmp_path)
    assert telemetry.time_range() is None
    assert not telemetry.lanes() and not telemetry.lane_index() and not list(telemetry.metrics.rows())
    assert not telemetry.gpu_util() and not telemetry.engine_series("x") and not telemetry.engine_metrics()
    assert not telemetry.data_buffer()
    assert telemetry.problems(everything=True) == []
    assert telemetry.poll() == set()


def test_samples_by_gpu_are_in_order_of_time(tmp_path: Path) -> None:
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT + 1, 1, 30), gpu(MIDNIGHT, 1, 20), gpu(MIDNIGHT, 0, 10))
    found = Telemetry(tmp_path).gpu_util()
    assert list(found) == [Lane("a", 0), Lane("a", 1)]
    assert found[Lane("a", 1)].util.tolist() == [20, 30]
    assert found[Lane("a", 1)].ts.tolist() == [MIDNIGHT, MIDNIGHT + 1]


def test_engine_samples_are_kept_by_dp_rank(tmp_path: Path) -> None:
    records = [engine(MIDNIGHT, 0.1, "1"), engine(MIDNIGHT, 0.2, "0"), engine(MIDNIGHT + 2, 0.3, "0")]
    append(tmp_path, f"engine_series/{HOURS[2]}", *records, engine(MIDNIGHT, 9.0, metric="sglang_gen_throughput"))
    telemetry = Telemetry(tmp_path)
    found = telemetry.engine_series("sglang_token_usage")
    assert [(one.labels, one.value.tolist()) for one in found] == [
        ({"dp_rank": "0"}, [0.2, 0.3]),
        ({"dp_rank": "1"}, [0.1]),
    ]
    assert telemetry.engine_series("no such metric") == []
    assert telemetry.engine_metrics() == ["sglang_gen_throughput", "sglang_token_usage"]


def test_a_window_parses_only_the_hours_it_touches(tmp_path: Path) -> None:
    for at, hour in enumerate(HOURS):
        append(tmp_path, f"gpu_util/{hour}", gpu(MIDNIGHT + (at - 2) * 3600 + 5, util=at))
    telemetry = Telemetry(tmp_path)
    assert telemetry.time_range() == (MIDNIGHT - 7195, MIDNIGHT + 3605)
    assert parsed(telemetry, "gpu_util") == []
    assert telemetry.gpu_util(MIDNIGHT - 10, MIDNIGHT + 10)[Lane("a", 0)].util.tolist() == [2]
    assert parsed(telemetry, "gpu_util") == HOURS[1:3]
    assert telemetry.gpu_util()[Lane("a", 0)].util.tolist() == [0, 1, 2, 3]


def test_hours_are_dropped_when_memory_is_short_and_parsed_again(tmp_path: Path) -> None:
    for at, hour in enumerate(HOURS):
        append(tmp_path, f"gpu_util/{hour}", *(gpu(MIDNIGHT + (at - 2) * 3600 + n, util=at) for n in range(50)))
    telemetry = Telemetry(tmp_path, memory=50 * 28 * 2)
    for _ in range(2):
        assert telemetry.gpu_util()[Lane("a", 0)].util.tolist() == [at for at in range(4) for _ in range(50)]
        assert parsed(telemetry, "gpu_util") == HOURS[2:]
        assert telemetry.memory.nbytes <= telemetry.memory.limit
    telemetry.gpu_util(stop=LAST_HOUR - 1)
    assert parsed(telemetry, "gpu_util") == [HOURS[0], HOURS[3]]


def test_the_flat_file_of_an_old_run_is_read_as_well(tmp_path: Path) -> None:
    append(tmp_path, "gpu_util", gpu(MIDNIGHT - 5, util=1))
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT + 5, util=2))
    telemetry = Telemetry(tmp_path)
    assert telemetry.gpu_util()[Lane("a", 0)].util.tolist() == [1, 2]
    assert telemetry.time_range() == (MIDNIGHT - 5, MIDNIGHT + 5)


def test_files_of_other_names_are_no_hours(tmp_path: Path) -> None:
    for name in [".nfs0001", "20260101_00.jsonl.tmp", "20261399_77.jsonl", "copy.jsonl"]:
        append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT)).with_name(name).write_text("junk\n")
    telemetry = Telemetry(tmp_path)
    assert len(telemetry.gpu_util()[Lane("a", 0)].ts) == 4
    assert telemetry.problems(everything=True) == []


def test_a_record_that_does_not_fit_is_left_out_and_told(tmp_path: Path) -> None:
    odd: list[Record] = [{"ts": MIDNIGHT}, gpu(math.nan), gpu(MIDNIGHT) | {"gpu": "x"}, gpu(MIDNIGHT) | {"node": None}]
    path = append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT, util=1), *odd, gpu(MIDNIGHT + 1, util=math.nan))
    telemetry = Telemetry(tmp_path)
    util = telemetry.gpu_util()[Lane("a", 0)].util
    assert util[0] == 1 and math.isnan(util[1])
    ((told, sentence),) = telemetry.problems()
    assert told == path
    assert sentence == ("4 malformed lines, the first: after byte 0: a record lacks a field or has it of another type")


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_polars_reads_what_json_reads(data: st.DataObject) -> None:
    """Or refuses: then json does."""
    name = data.draw(st.sampled_from(sorted(STREAM_FIELDS)))
    text = st.text(max_size=3) | st.sampled_from(["\ud83d", "a,b", '"', "é\u2028"])
    integer = st.integers(-(2**31), 2**31 - 1)
    number = st.floats(allow_nan=False, allow_infinity=False) | integer
    odd: st.SearchStrategy[Any] = st.none() | st.just("1") | st.just([]) | st.booleans() | st.integers(2**31, 2**70)
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "text": text,
        "gpus": st.lists(st.integers(0, 9), max_size=3),
        "labels": st.dictionaries(st.sampled_from(["dp_rank", "engine_type", "x"]), text),
        "i4": integer,
        "i8": integer,
        "f8": number,
        "f4": st.integers(0, 1000),
    }
    fields = {
        field.name: kinds[field.dtype] | odd if data.draw(st.integers(0, 9)) == 0 else kinds[field.dtype]
        for field in STREAM_FIELDS[name]
    }
    records = data.draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=8))
    ascii_only = data.draw(st.booleans())
    lines = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records)
    schema = Schema(STREAM_FIELDS[name])
    by_polars = schema.parse(lines.encode("utf-8", "surrogatepass"))
    if by_polars is not None:
        by_json, misfits = Schema(STREAM_FIELDS[name]).columns_and_misfits(
            [json.loads(line) for line in lines.split("\n") if line]
        )
        assert misfits == 0
        assert repr(list(by_polars.rows())) == repr(list(by_json.rows()))


def test_much_is_read_by_polars_and_its_faults_by_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "WORTH_POLARS", 1)
    append(tmp_path, f"engine_series/{HOURS[2]}", *(engine(MIDNIGHT + n, n, "0") for n in range(100)))
    path = append(tmp_path, f"engine_series/{HOURS[3]}", engine(MIDNIGHT + 3600, 1.5, "0"))
    path.open("a").write("torn{\n")
    append(tmp_path, f"engine_series/{HOURS[3]}", engine(MIDNIGHT + 3601, math.nan, "0"))
    (series,) = Telemetry(tmp_path).engine_series("sglang_token_usage")
    assert series.value.tolist()[:101] == [*range(100), 1.5]
    assert len(series.value) == 102


# Following ----------------------------------------------------------------------------------------------------


def test_following_takes_in_what_is_appended_once(tmp_path: Path) -> None:
    append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 1, util=1))
    append(tmp_path, "metrics", logged(MIDNIGHT, 0, rollout_reward=0.5))
    telemetry = Telemetry(tmp_path)
    lane = Lane("a", 0)
    assert telemetry.gpu_util()[lane].util.tolist() == [1]
    assert values(telemetry, "rollout/reward") == [0.5]
    assert telemetry.poll() == set()

    append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 0.5, util=2))
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT, util=3))
    assert telemetry.poll() == {"gpu_util"}
    assert telemetry.newest() == MIDNIGHT
    append(tmp_path, "metrics", logged(MIDNIGHT, 1, rollout_reward=0.6))
    assert telemetry.poll() == {"metrics"}
    assert telemetry.poll() == set()
    assert telemetry.gpu_util()[lane].util.tolist() == [1, 2, 3]
    assert values(telemetry, "rollout/reward") == [0.5, 0.6]


def test_what_is_shown_stays_until_the_next_poll(tmp_path: Path) -> None:
    append(tmp_path, "metrics", logged(MIDNIGHT, 0, rollout_reward=0.5))
    telemetry = Telemetry(tmp_path)
    values(telemetry, "rollout/reward")
    append(tmp_path, "metrics", logged(MIDNIGHT, 1, rollout_reward=0.6))
    assert values(telemetry, "rollout/reward") == [0.5]


def test_an_hour_not_parsed_yet_is_not_parsed_by_following(tmp_path: Path) -> None:
    append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 1))
    telemetry = Telemetry(tmp_path)
    append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 0.5))
    assert telemetry.poll() == {"gpu_util"}
    assert parsed(telemetry, "gpu_util") == []


def test_a_rewritten_hour_replaces_what_was_read(tmp_path: Path) -> None:
    path = append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT, util=11), gpu(MIDNIGHT + 1, util=12))
    telemetry = Telemetry(tmp_path)
    telemetry.gpu_util()
    path.write_text(path.read_text().replace("1767225600.0", "1767225602.0").replace(":12,", ":13,"))
    assert telemetry.poll() == {"gpu_util"}
    assert telemetry.gpu_util()[Lane("a", 0)].util.tolist() == [13, 11]


def test_an_hour_that_is_deleted_is_gone(tmp_path: Path) -> None:
    append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 1, util=1)).unlink()
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT, util=2))
    path = append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 1, util=1))
    telemetry = Telemetry(tmp_path)
    telemetry.gpu_util()
    path.unlink()
    assert telemetry.poll() == {"gpu_util"}
    assert telemetry.gpu_util()[Lane("a", 0)].util.tolist() == [2]


def test_a_half_written_document_keeps_the_last_good_one(tmp_path: Path) -> None:
    path = document(tmp_path, "meta.json", {"run_name": "r", "start_ts": 5.0})
    telemetry = Telemetry(tmp_path)
    path.write_text('{"run_name": "r", "start')
    assert telemetry.poll() == set()
    assert telemetry.started == 5.0
    ((told, sentence),) = telemetry.problems()
    assert told == path and sentence.startswith("is not a JSON document: ")
    path.write_text('{"run_name": "r", "start_ts": 9.0}')
    assert telemetry.poll() == {"meta"}
    assert telemetry.started == 9.0
    assert telemetry.problems() == []


def test_a_folder_that_can_not_be_listed_is_told_and_keeps_its_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT))
    telemetry = Telemetry(tmp_path)

    def stale(folder: Path) -> list[str]:
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", stale)
        telemetry.poll()
        assert (tmp_path / "dashboard" / "gpu_util", "can't be listed: Stale file handle") in telemetry.problems()
        assert list(telemetry.gpu_util()) == [Lane("a", 0)]
    telemetry.poll()
    assert telemetry.problems() == []


# Metrics ------------------------------------------------------------------------------------------------------


def test_each_value_has_the_axis_it_was_logged_with(tmp_path: Path) -> None:
    append(
        tmp_path,
        "metrics",
        logged(1.0, 3, rollout_step=3, rollout_reward=0.5),
        logged(2.0, 6, "alpha/train/step", train_loss=math.nan),
        logged(3.0, None, None, misc_note="text"),
        logged(4.0, 3, rollout_reward=0.7),
    )
    history = Telemetry(tmp_path).metrics
    assert list(history.rows("rollout/reward")) == [
        {"key": "rollout/reward", "step_key": "rollout/step", "step": 3, "ts": 1.0, "value": 0.5},
        {"key": "rollout/reward", "step_key": "rollout/step", "step": 3, "ts": 4.0, "value": 0.7},
    ]
    (loss,) = history.rows("train/loss")
    assert (loss["step_key"], loss["step"]) == ("alpha/train/step", 6)
    assert math.isnan(loss["value"])
    assert [row["key"] for row in history.rows()] == [
        "rollout/step",
        "rollout/reward",
        "train/loss",
        "misc/note",
        "rollout/reward",
    ]
    assert history.keys() == ["misc/note", "rollout/reward", "rollout/step", "train/loss"]
    assert list(history.rows("no/such")) == []


def write_events(root: Path, process: str, *events: Record) -> None:
    path = root / "events" / f"{process}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def metric_event(second: int, **metrics: Any) -> Record:
    named = {name.replace("_", "/", 1): value for name, value in metrics.items()}
    return {"timestamp": f"2026-01-01T00:00:{second:02}.500000Z", "type": "metric", "metrics": named}


def test_without_a_collector_the_metrics_are_those_of_the_events(tmp_path: Path) -> None:
    write_events(tmp_path, "main", {"type": "inference_engine_weight_checksum", "timestamp": "?"})
    write_events(tmp_path, "actor_cell0_rank0", metric_event(2, train_step=4, train_loss=None))
    write_events(tmp_path, "main", metric_event(1, rollout_step=2, rollout_reward=0.5), metric_event(3, misc_x=1))
    telemetry = Telemetry(tmp_path)
    rows = list(telemetry.metrics.rows())
    assert [(row["key"], row["step_key"], row["step"], row["value"]) for row in rows] == [
        ("rollout/step", "rollout/step", 2, 2),
        ("rollout/reward", "rollout/step", 2, 0.5),
        ("train/step", "train/step", 4, 4),
        ("train/loss", "train/step", 4, None),
        ("misc/x", None, None, 1),
    ]
    assert rows[0]["ts"] == MIDNIGHT + 1.5
    write_events(tmp_path, "critic_cell0_rank0", metric_event(4, critic_step=4, critic_loss=0.1))
    assert telemetry.poll() == {"metrics"}
    assert values(telemetry, "critic/loss") == [0.1]
    assert telemetry.poll() == set()
    assert telemetry.problems() == []


def test_the_collector_has_precedence_over_the_events(tmp_path: Path) -> None:
    write_events(tmp_path, "main", metric_event(1, rollout_step=2, rollout_reward=0.5))
    append(tmp_path, "metrics", logged(1.0, 2, rollout_reward=0.7))
    assert [row["value"] for row in History(tmp_path).rows()] == [0.7]


@pytest.mark.parametrize("record", [{}, {"ts": 1, "metrics": 5}, {"ts": "x", "metrics": {}}, {"ts": 1}])
def test_what_is_no_logging_call_is_left_out_and_told(tmp_path: Path, record: Record) -> None:
    append(tmp_path, "metrics", record, logged(1.0, 2, rollout_reward=0.7))
    telemetry = Telemetry(tmp_path)
    assert values(telemetry, "rollout/reward") == [0.7]
    assert len(telemetry.problems()) == 1


# Lanes and times ----------------------------------------------------------------------------------------------


# Case 29: radixark/miles#2024, a phase that is still open ends at -1


def test_an_open_phase_does_not_stretch_the_time_range_and_closes_later(tmp_path: Path) -> None:
    append(tmp_path, f"phases/{HOURS[1]}", phase("actor_train", MIDNIGHT - 20, -1.0))
    append(tmp_path, f"gpu_util/{HOURS[1]}", gpu(MIDNIGHT - 15))
    telemetry = Telemetry(tmp_path)
    assert telemetry.time_range() == (MIDNIGHT - 20, MIDNIGHT - 15)
    assert [(one.t1, one.open) for one in telemetry.lanes()] == [(MIDNIGHT - 15, True)]
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT + 5))
    telemetry.poll()
    assert [(one.t1, one.open) for one in telemetry.lanes()] == [(MIDNIGHT + 5, True)]
    append(tmp_path, f"phases/{HOURS[2]}", phase("actor_train", MIDNIGHT - 20, MIDNIGHT + 2))
    telemetry.poll()
    assert [(one.t1, one.open) for one in telemetry.lanes()] == [(MIDNIGHT + 2, False)]


def test_a_window_of_lanes_has_the_phases_that_reach_into_it(tmp_path: Path) -> None:
    append(tmp_path, f"phases/{HOURS[1]}", phase("before", MIDNIGHT - 90, MIDNIGHT - 60))
    append(tmp_path, f"phases/{HOURS[2]}", phase("across", MIDNIGHT - 50, MIDNIGHT + 50))
    append(tmp_path, f"phases/{HOURS[3]}", phase("long", MIDNIGHT + 60, MIDNIGHT + 4000))
    telemetry = Telemetry(tmp_path)
    assert [one.name for one in telemetry.lanes(MIDNIGHT - 60, MIDNIGHT)] == ["across"]
    assert [one.name for one in telemetry.lanes(MIDNIGHT + 55, MIDNIGHT + 90)] == ["long"]
    assert [one.name for one in telemetry.lanes()] == ["before", "across", "long"]


def test_a_phase_that_hangs_for_days_is_still_shown(tmp_path: Path) -> None:
    append(tmp_path, f"phases/{HOURS[1]}", phase("train_wait", MIDNIGHT - 60, -1.0))
    append(tmp_path, "gpu_util/20260103_00", gpu(MIDNIGHT + 2 * 86400))
    now = MIDNIGHT + 2 * 86400
    (one,) = Telemetry(tmp_path).lanes(now - 600, now)
    assert (one.name, one.t0, one.t1, one.open) == ("train_wait", MIDNIGHT - 60, now, True)


def test_a_lane_idle_for_long_does_not_initialize_again(tmp_path: Path) -> None:
    now = MIDNIGHT + 86400
    document(tmp_path, "meta.json", {"start_ts": MIDNIGHT - 60})
    append(tmp_path, f"phases/{HOURS[2]}", phase("actor_train", MIDNIGHT, MIDNIGHT + 5))
    append(tmp_path, "phases/20260102_00", phase("actor_train", now, now + 5))
    telemetry = Telemetry(tmp_path)
    assert [one.name for one in telemetry.lanes(now - 600, now + 600)] == ["actor_train"]
    assert [one.name for one in telemetry.lanes(MIDNIGHT - 30, MIDNIGHT)] == ["initialize"]


def test_lanes_of_an_external_engine_are_those_of_its_host(tmp_path: Path) -> None:
    rollout = phase("rollout", MIDNIGHT, MIDNIGHT + 9) | {"gpus": [], "rank": -1, "role": "rollout_manager"}
    append(tmp_path, f"phases/{HOURS[2]}", rollout)
    append(tmp_path, "topology", {"ts": MIDNIGHT, "engines": [{"addr": "http://b:1", "gpus": []}]})
    append(tmp_path, f"gpu_util/{HOURS[2]}", gpu(MIDNIGHT, 3, node="b"), gpu(MIDNIGHT, 4, node="a"))
    assert [(one.node, one.gpu) for one in Telemetry(tmp_path).lanes()] == [("b", 3)]


def test_a_catalogue_splits_its_keys_at_the_last_colon(tmp_path: Path) -> None:
    use = {"ranks": [3], "engine_addrs": [], "roles": ["train"]}
    document(tmp_path, "lane_catalog.json", {"lanes": {"fd00::1:5": use, "odd": {}, "b:0": None}})
    assert [(one.node, one.gpu, one.ranks) for one in Telemetry(tmp_path).lane_index()] == [
        ("b", 0, set()),
        ("fd00::1", 5, {3}),
    ]


def test_the_newest_time_is_found_behind_a_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without parsing more than both ends of a file."""
    monkeypatch.setattr(logs, "EDGE_BYTES", (256, 1024))
    path = append(tmp_path, f"gpu_util/{HOURS[2]}", *(gpu(MIDNIGHT + n) for n in range(100)))
    path.open("a").write('{"ts":99')
    append(tmp_path, "metrics", logged(MIDNIGHT - 1, 1, rollout_text="x" * 600), logged(MIDNIGHT + 100.5, 2))
    assert Telemetry(tmp_path).time_range() == (MIDNIGHT - 1, MIDNIGHT + 100.5)


# The recorded runs --------------------------------------------------------------------------------------------


def peer(shared: Path, run: str) -> Any:
    return json.loads(gzip.open(shared / "oracle" / f"{run}.json.gz").read())["metric_store"]


@pytest.fixture(params=["plain", "multiturn", "broken"])
def run(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_metrics_of_the_recorded_runs(shared: Path, run: str) -> None:
    theirs = Counter(
        (key, axis, step, value, ts)
        for axis, series in peer(shared, run)["metric_series"].items()
        for key, one in series.items()
        for step, value, ts in zip(one["x"], one["y"], one["ts"], strict=True)
    )
    history = Telemetry(shared / "runs" / run).metrics
    mine = Counter(
        (row["key"], row["step_key"], row["step"], row["value"], row["ts"])
        for row in history.rows()
        if row["step_key"] is not None
    )
    assert mine == theirs
    assert history.keys() == peer(shared, run)["metric_keys"]


def test_lanes_of_the_recorded_runs(shared: Path, run: str) -> None:
    telemetry = Telemetry(shared / "runs" / run)
    told = peer(shared, run)["phases_by_lane"]

    def shown(start: float | None = None, stop: float | None = None) -> list[Record]:
        return [{k: v for k, v in row.items() if k != "open"} for row in telemetry.lane_rows(start, stop)]

    key = json.JSONEncoder(sort_keys=True).encode
    assert sorted(map(key, shown())) == sorted(map(key, told["full"]))
    for window in told["windows"]:
        # The peer clips a rollout to its engines only after it chose by the window.
        touching = [one for one in window["value"] if one["t0"] < window["t1"] and one["t1"] > window["t0"]]
        assert sorted(map(key, shown(window["t0"], window["t1"]))) == sorted(map(key, touching))


def test_engine_samples_of_the_recorded_run(shared: Path) -> None:
    theirs = peer(shared, "multiturn")["engine_series"]["sglang_token_usage"]["per_dp_rank"]
    found = Telemetry(shared / "runs" / "multiturn").engine_series("sglang_token_usage")
    assert [
        {"addr": one.addr, "labels": one.labels, "ts": one.ts.tolist(), "value": one.value.tolist()} for one in found
    ] == theirs


def test_times_and_samples_of_the_recorded_runs(shared: Path, run: str) -> None:
    telemetry, told = Telemetry(shared / "runs" / run), peer(shared, run)
    assert telemetry.time_range() == tuple(told["time_range"])
    assert telemetry.meta == told["meta"]
    series = told["gpu_series"]["full"]
    found = telemetry.gpu_util()
    assert [f"{node}:{gpu}" for node, gpu in found] == sorted(series)
    for (node, at), columns in found.items():
        for name, values in series[f"{node}:{at}"].items():
            np.testing.assert_array_equal(getattr(columns, name), values)


@pytest.mark.parametrize("catalogue", [True, False])
def test_the_lane_index_of_the_recorded_runs(shared: Path, run: str, catalogue: bool, tmp_path: Path) -> None:
    root = shared / "runs" / run
    if not catalogue:
        ignore = shutil.ignore_patterns("lane_catalog.json")
        shutil.copytree(root / "dashboard", tmp_path / "dashboard", ignore=ignore, copy_function=shutil.copyfile)
        root = tmp_path
    mine = [
        {"node": one.node, "gpu": one.gpu, "index": at}
        | {"ranks": sorted(one.ranks), "engine_addrs": sorted(one.engines), "roles": sorted(one.roles)}
        for at, one in enumerate(Telemetry(root).lane_index())
    ]
    assert mine == peer(shared, run)["lane_index"]


def test_what_is_told_of_the_broken_run(shared: Path) -> None:
    problems = Telemetry(shared / "runs" / "broken").problems(everything=True)
    assert {path.parent.name for path, _ in problems} == {"dashboard", "engine_series", "gpu_util", "phases"}
    assert all("in the middle of a record" in sentence for _, sentence in problems)


@pytest.mark.parametrize("odd", [1, "x", [{}], {"a": 1}, [None], [[1]], True])
def test_a_catalogue_and_a_document_of_other_types_are_left_out_and_told(tmp_path: Path, odd: Any) -> None:
    use = {"ranks": odd, "engine_addrs": odd, "roles": odd}
    document(tmp_path, "lane_catalog.json", {"lanes": {"a:0": use, "b:1": {"ranks": [3], "roles": ["train"]}}})
    document(tmp_path, "meta.json", {"start_ts": [odd], "run_name": odd, "args": odd})
    telemetry = Telemetry(tmp_path)
    assert telemetry.lane_index() == [("a", 0, set(), set(), set()), ("b", 1, {3}, set(), {"train"})]
    assert telemetry.started is None and list(telemetry.lane_rows()) == []
    told = dict(telemetry.problems())
    assert told[tmp_path / "dashboard" / "meta.json"] == "start_ts is not a time and is ignored"
    assert "1 of its lanes" in told[tmp_path / "dashboard" / "lane_catalog.json"]


def test_a_time_of_400_digits_is_none(tmp_path: Path) -> None:
    """It ended the thread that follows a live run, which went on saying that it is live."""
    document(tmp_path, "meta.json", {"start_ts": 10**400})
    (tmp_path / "dashboard" / "metrics.jsonl").write_text(
        f'{{"ts": {10**400}, "metrics": {{}}}}\n{{"ts": 5.0, "metrics": {{}}}}\n'
    )
    telemetry = Telemetry(tmp_path)
    assert telemetry.started is None and telemetry.time_range() == (5.0, 5.0)
    assert len(telemetry.metrics.calls()) == 1
    assert telemetry.poll() == set()


def test_no_pipe_in_the_dashboard_is_waited_for(tmp_path: Path) -> None:
    names = ("meta.json", "lane_catalog.json", "metrics.jsonl", "topology.jsonl", "phases.jsonl", "gpu_util.jsonl")
    (tmp_path / "dashboard").mkdir()
    (tmp_path / "events").mkdir()
    for name in names:
        os.mkfifo(tmp_path / "dashboard" / name)
    os.mkfifo(tmp_path / "events" / "0.jsonl")
    telemetry = Telemetry(tmp_path)
    found = telemetry.problems(everything=True)
    assert {path.name for path, problem in found if "is not a file" in problem} >= set(names)
    assert telemetry.time_range() is None and list(telemetry.lane_rows()) == []
