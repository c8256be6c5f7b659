"""A followed JSON-lines file tells each record once, whatever its writers do to it."""

from __future__ import annotations

import builtins
import errno
import json
import math
import os
import re
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.telemetry import jsonl_tail
from dumptui.core.telemetry.jsonl_tail import Record, Tail, salvage

LINES = [
    b'{"ts":1.0,"name":"a"}',
    '{"ts":2.0,"name":"äé€😀\u2028b"}'.encode(),
    b'{"ts":3.0,"name":"\\ud83d"}',
    b'{"ts":NaN,"v":-Infinity,"other":{"deep":[1,2]}}',
    b'{"ts":4.0}{"ts":5.0}',
    b'{"ts":6.0,"metrics":{"loss":1.0}',
    b'{"ts":7.0,"na{"ts":8.0,"metrics":{"loss":2.0}}',
    b"[1,2]",
    b"not json",
    b'{"ts":9.0,"name":"\xff"}',
    b"",
    b'{"ts":10.0}\r',
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.jsonl"


def append(path: Path, content: bytes) -> None:
    with open(path, "ab") as file:
        file.write(content)


def all_records(tail: Tail) -> list[Record]:
    records: list[Record] = []
    while True:
        poll = tail.poll()
        records = poll.records if poll.restarted else records + poll.records
        if not poll.more:
            return records


def times(records: list[Record]) -> list[Any]:
    return [record["ts"] for record in records]


# Case 29: hiyouga/LlamaFactory#10715, gptme/gptme#1364, radixark/miles#2581 and #2024, lines that are being written


def test_each_record_is_told_once_as_the_file_grows(path: Path) -> None:
    tail = Tail(path)
    assert tail.poll() == ([], 0, False, False)
    append(path, b'{"ts":1}\n{"ts":2}\n')
    assert times(tail.poll().records) == [1, 2]
    assert tail.poll().records == []
    append(path, b'{"ts":3}\n')
    assert times(tail.poll().records) == [3]
    assert (tail.bad, tail.problem, tail.restarts) == (0, None, 0)


def test_half_a_line_waits_for_its_end(path: Path) -> None:
    tail = Tail(path)
    append(path, b'{"ts":1}\n{"ts":2,"na')
    assert times(tail.poll().records) == [1]
    assert (tail.pending, tail.bad) == (11, 0)
    append(path, b'me":"x"}\n')
    assert tail.poll().records == [{"ts": 2, "name": "x"}]
    assert (tail.pending, tail.bad) == (0, 0)


def test_a_line_cut_inside_a_character_waits(path: Path) -> None:
    line = '{"name":"語"}\n'.encode()
    tail = Tail(path)
    append(path, line[:10])
    assert tail.poll().records == []
    append(path, line[10:])
    assert tail.poll().records == [{"name": "語"}]
    assert tail.bad == 0


def test_values_that_strict_json_has_not(path: Path) -> None:
    append(path, b'{"loss":NaN,"a":Infinity,"b":-Infinity,"text":"x\xe2\x80\xa8y","half":"\\ud83d"}\n')
    (record,) = Tail(path).poll().records
    assert math.isnan(record["loss"])
    assert (record["a"], record["b"]) == (math.inf, -math.inf)
    assert (record["text"], record["half"]) == ("x\u2028y", "\ud83d")


@pytest.mark.parametrize("line", [b"{", b"[1]", b"17", b"null", b'{"a":1} x', b"\x00\x00\x00\x00", b"[" * 100_000])
def test_a_malformed_line_is_counted_and_passed(path: Path, line: bytes) -> None:
    append(path, b'{"ts":1}\n' + line + b'\n{"ts":2}\n' + line + b"\n")
    tail = Tail(path)
    assert times([record for record in tail.poll().records if "ts" in record]) == [1, 2]
    assert tail.bad == 2
    assert tail.first_problem is not None and tail.first_problem.startswith("byte 9: ")
    tail.poll()
    assert tail.bad == 2


def test_bytes_that_are_no_text_cost_only_their_line(path: Path) -> None:
    append(path, b'{"ts":1,"name":"\xff"}\n{"ts":2}\n')
    tail = Tail(path)
    assert tail.poll().records == [{"ts": 1, "name": "�"}, {"ts": 2}]
    assert (tail.bad, tail.first_problem) == (1, "byte 0: not UTF-8")


@pytest.mark.parametrize(
    ("line", "saved"),
    [
        ('{"a":1}{"b":2}', [{"a": 1}, {"b": 2}]),
        ('{"a":1} \t{"b":2} ', [{"a": 1}, {"b": 2}]),
        ('{"ts":1,"na{"ts":2}', [{"ts": 2}]),
        ('{"ts":1,"metrics":{"ts":2,"metrics":{"loss":1}}', [{"ts": 2, "metrics": {"loss": 1}}]),
        ('{"ts":1}{"ts":2,"me{"ts":3}', [{"ts": 1}, {"ts": 3}]),
        ('{"ts":1}{"ts":2', [{"ts": 1}]),
        ('{"ts":1,"metrics":{"loss":1}', []),
        ("junk", []),
    ],
)
def test_what_is_whole_in_a_malformed_line_is_saved(line: str, saved: list[Record]) -> None:
    assert salvage(line, '{"ts":0,"metrics":{}}') == saved


def test_a_run_resumed_behind_a_torn_line(path: Path) -> None:
    tail = Tail(path)
    append(path, b'{"ts":1.0,"metrics":{"loss":1.0}}\n{"ts":2.0,"metrics":{"loss":2.')
    assert times(tail.poll().records) == [1.0]
    append(path, b'{"ts":3.0,"metrics":{"loss":3.0}}\n{"ts":4.0,"metrics":{}}\n')
    assert times(tail.poll().records) == [3.0, 4.0]
    assert tail.bad == 1


@pytest.mark.parametrize("content", [b'{"ts":7}\n', b'{"ts":7}\n{"ts":8}\n', b'{"ts":7}\n{"ts":8}\n{"ts":9}\n'])
@pytest.mark.parametrize("replace", [True, False])
def test_another_file_is_read_from_its_start(path: Path, content: bytes, replace: bool) -> None:
    """Shorter, of the same size and longer; renamed into place and rewritten in place."""
    append(path, b'{"ts":1}\n{"ts":2}\n')
    tail = Tail(path)
    tail.poll()
    if replace:
        other = path.with_suffix(".tmp")
        other.write_bytes(content)
        os.replace(other, path)
    else:
        path.write_bytes(content)
    poll = tail.poll()
    assert (poll.restarted, tail.restarts) == (True, 1)
    assert times(poll.records) == [json.loads(line)["ts"] for line in content.splitlines()]
    assert tail.poll() == ([], len(content), False, False)


def test_a_file_cut_to_nothing_drops_its_records(path: Path) -> None:
    append(path, b'{"ts":1}\nbad\n')
    tail = Tail(path)
    tail.poll()
    os.truncate(path, 0)
    assert tail.poll() == ([], 0, True, False)
    assert tail.bad == 0


def test_an_error_of_the_file_system_is_told_and_over_at_the_next_poll(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, b'{"ts":1}\n')
    tail = Tail(path)
    tail.poll()
    append(path, b'{"ts":2}\n')

    def stale(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", stale)
        assert tail.poll().records == []
    assert tail.problem is not None
    assert str(tail.problem) == f"{path}: can't be read: Stale file handle"
    assert times(tail.poll().records) == [2]
    assert tail.problem is None


def test_a_restart_is_not_lost_to_an_error_while_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, b'{"ts":1}\n')
    tail = Tail(path)
    tail.poll()
    path.write_bytes(b'{"ts":5}\n')
    read_at = jsonl_tail._read_at
    left = [1]

    def fail_once(*args: Any) -> bytes:
        if args[1] == 0 and args[2] == jsonl_tail.BLOCK_BYTES and left:
            left.clear()
            raise OSError(errno.EIO, "Input/output error")
        return read_at(*args)

    monkeypatch.setattr(jsonl_tail, "_read_at", fail_once)
    assert tail.poll() == ([], 0, False, False)
    assert tail.poll() == ([{"ts": 5}], 0, True, False)


def test_a_folder_in_the_place_of_the_file(path: Path) -> None:
    path.mkdir()
    tail = Tail(path)
    assert tail.poll().records == []
    assert tail.problem is not None


def test_much_is_read_in_blocks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_tail, "BLOCK_BYTES", 64)
    append(path, b"".join(b'{"ts":%d}\n' % at for at in range(100)))
    tail = Tail(path)
    first = tail.poll()
    assert first.more and len(first.records) < 10
    assert times(first.records + all_records(tail)) == list(range(100))


def test_a_line_longer_than_a_block_is_read_and_one_beyond_the_limit_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_tail, "BLOCK_BYTES", 64)
    monkeypatch.setattr(jsonl_tail, "MAX_LINE_BYTES", 256)
    long, too_long = json.dumps({"ts": 2, "x": "y" * 150}), json.dumps({"ts": 4, "x": "z" * 2000})
    append(path, f'{{"ts":1}}\n{long}\n{{"ts":3}}\n{too_long}\n{{"ts":5}}\n'.encode())
    tail = Tail(path)
    assert times(all_records(tail)) == [1, 2, 3, 5]
    assert tail.bad == 1
    append(path, b'{"ts":6}\n')
    assert times(all_records(tail)) == [6]


def test_lines_without_what_is_looked_for_are_not_parsed(path: Path) -> None:
    append(path, b'{"type":"hash","x":\n{"type":"metric","ts":1}\n{"type": "metric","ts":2}\n')
    tail = Tail(path, re.compile(rb'"type":\s*"metric"'))
    assert times(tail.poll().records) == [1, 2]
    assert tail.bad == 0


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(st.sampled_from(LINES), max_size=12),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    block=st.sampled_from([8, 64, 1 << 20]),
)
def test_any_split_of_the_bytes_gives_the_same_records_once(lines: list[bytes], cuts: list[int], block: int) -> None:
    content = b"".join(line + b"\n" for line in lines)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl_tail, "BLOCK_BYTES", block)
        whole = Path(folder, "whole")
        whole.write_bytes(content)
        at_once = Tail(whole)
        expected = all_records(at_once)
        growing = Path(folder, "growing")
        tail = Tail(growing)
        records: list[Record] = []
        bounds = sorted({0, len(content), *(min(cut, len(content)) for cut in cuts)})
        for first, last in pairwise(bounds):
            append(growing, content[first:last])
            records += all_records(tail)
        assert repr(records) == repr(expected)  # NaN is not equal to itself
        assert (tail.bad, tail.first_problem, tail.restarts) == (at_once.bad, at_once.first_problem, 0)
