"""Trajectory files, messages, tool calls and lifecycles of any shape: each wrong value costs itself and is told of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.formats.miles.trajectory_file import parse
from dumptui.core.query.text_search import passages_of
from dumptui.core.sample.conversation import document, open_sidecar, pair, read_conversation, read_message
from dumptui.core.sample.facts import sample_facts
from dumptui.core.sample.generation import call_facts
from dumptui.core.sample.messages import count_calls
from dumptui.core.sample.reconstruction import Said, as_messages
from dumptui.core.text import visible
from dumptui.tui.cell_formats.tables import to_json
from dumptui.tui.presentation.conversation import ConversationViews
from dumptui.tui.presentation.sample_rows import prompt_text
from tests.support.reading import read, samples
from tests.support.writer import sample, write_step


class Thing:
    """Of a class that dumptui does not know."""

    def __init__(self) -> None:
        self.role, self.content = "assistant", "said by an object"


DEEP: list[Any] = []
for _ in range(150):
    DEEP = [DEEP]
CIRCLE: list[Any] = [1]
CIRCLE.append(CIRCLE)
TALK = [
    {"role": "user", "name": "n", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {}}]},
    {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "r",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "name": "f", "content": "1"},
]
WRONG: list[Any] = [
    None,
    True,
    10**400,
    float("nan"),
    "\ud800",
    "\x1b[2J",
    [],
    [[]],
    {},
    {"type": 3},
    [{"function": {"name": []}}],
]
ONLY_PICKLED = [
    b"\xff",
    (1,),
    {2},
    np.arange(3),
    torch.zeros(2),
    Thing(),
    {10**5000: 1, None: 2, (3,): 4},
    CIRCLE,
    DEEP,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from places(one, (*path, key))


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    changed = value.copy()
    changed[path[0]] = put(value[path[0]], path[1:], wrong)
    return changed


def everything(root: Path) -> None:
    """All that is shown and printed of each sample of a step, apart from its tokens."""
    step = read(root)
    talks, sidecar = ConversationViews(), open_sidecar(step)
    assert len(samples(step)) == len(passages_of(step.files, step.samples))
    for one in step.samples:
        blocks = talks.open(step, one.position, None).blocks
        assert all(visible(line) == line for block in blocks for part in block.passages for line in part.text.lines)
        json.loads(to_json(document(read_conversation(step, one, sidecar, None))))
        prompt_text(one.prompt)
        if sidecar is None:  # else the whole file would be read for each of the samples
            sample_facts(step, one)


def test_wrong_values_anywhere_in_a_trajectory_file(tmp_path: Path) -> None:
    rows: list[Any] = [{"messages": put(TALK, path, wrong)} for path in places(TALK) for wrong in WRONG]
    fields = ("sample_occurrence", "group_index", "status", "reward", "prompt")
    rows += [{"messages": TALK, name: wrong} for name in fields for wrong in WRONG]
    rows = [{"sample_index": at, "status": "completed", **row} for at, row in enumerate(rows)]
    write_step(tmp_path, 0, [sample(at) for at in range(len(rows))], train=False, mirror=False, trajectory=rows)
    everything(tmp_path)


def test_wrong_values_anywhere_in_the_metadata(tmp_path: Path) -> None:
    wrong = WRONG + ONLY_PICKLED
    kept: list[Any] = [{"messages": put(TALK, path, one)} for path in places(TALK) for one in wrong]
    times = [{"t0": 1.0, "t1": 2.0, "turn": 1}, {"t0": 3.0, "t1": 4.0, "turn": 2}]
    kept += [{"lifecycle": put(times, path, one)} for path in places(times) for one in wrong]
    batch = [sample(at, metadata=one, weight_versions=["1", "2"]) for at, one in enumerate(kept)]
    batch += [sample(len(batch) + at, prompt=put(TALK, (at % 3,), one)) for at, one in enumerate(wrong)]
    batch += [sample(len(batch) + at, metadata=one, prompt=one) for at, one in enumerate(wrong)]
    write_step(tmp_path, 0, batch, train=False, mirror=False)
    everything(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from([*places(TALK)]), JSON), max_size=4))
def test_any_messages_are_read(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    talk: Any = TALK
    for path, wrong in changes:
        if path in places(talk):
            talk = put(talk, path, wrong)
    messages = [read_message(at, Said(one, None), masked=False) for at, one in enumerate(as_messages(talk))]
    for message in messages:
        made = count_calls(message.dumped)
        assert made == sum(part.kind == "call" for part in message.parts)
    for link in pair(messages):
        calls = [at for at, part in enumerate(messages[link.call].parts) if part.kind == "call"]
        assert calls[link.number] == link.part and link.call < link.result


# What is said of it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"sample_index": 0, "messages": [{"role": ]}', "line 1 of the trajectory file, where this sample's"),
        ('{"sample_index": 0, "messages": ' + "[" * 5000 + "]" * 5000 + "}", "line 1 of the trajectory file"),
        (
            '{"sample_index": 0, "messages": {"role": "user"}}',
            "file can't be shown: of type dict, not a list",
        ),
        ('{"sample_index": 0, "messages": "hi"}', "of type str, not a list"),
        ('{"sample_index": 0, "messages": []}', "the trajectory file has no conversation of this sample"),
        (
            '{"sample_index": 1, "messages": [{"role": "user"}]}',
            "the trajectory file has no conversation of this sample",
        ),
        (
            '{"sample_index": 0, "messages": [{"role": "user", "content": "hi"}, 3, "x"]}',
            "2 of 3 entries are not messages and are shown as dumped",
        ),
    ],
)
def test_why_a_conversation_is_not_shown(tmp_path: Path, line: str, told: str) -> None:
    write_step(tmp_path, 0, [sample(0)], trajectory=[])
    (tmp_path / "trajectory/0.jsonl").write_text(line + "\n")
    step = read(tmp_path)
    assert told in (read_conversation(step, step.samples[0], open_sidecar(step), None).note or "")


def test_messages_in_the_metadata_that_are_no_list_are_told_of(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, metadata={"messages": "hi"}), sample(1, metadata={"messages": []})])
    step = read(tmp_path)
    told, nothing = (read_conversation(step, one, None, None).note for one in step.samples)
    assert told == f"{nothing}; the messages in the metadata can't be shown: of type str, not a list"


def test_an_occurrence_that_is_no_number_leaves_the_row_to_its_order(tmp_path: Path) -> None:
    row = {"sample_index": 0, "sample_occurrence": "first", "status": "completed", "messages": TALK}
    write_step(tmp_path, 0, [sample(0)], trajectory=[row])
    step = read(tmp_path)
    assert len(read_conversation(step, step.samples[0], open_sidecar(step), None).messages) == len(TALK)


def test_a_number_that_python_refuses_costs_itself() -> None:
    row = parse(b'{"sample_index": 3, "reward": ' + b"1" * 5000 + b"}")
    assert row == {"sample_index": 3, "reward": "<a number of 5,000 digits>"}


def test_times_of_no_shape_keep_the_others_in_their_place(tmp_path: Path) -> None:
    """One that can't be read must not move those of the later calls up."""
    good = {"t0": 10.0, "t1": 12.0}
    for wrong, told in (
        ("junk", "times unreadable: junk, not a dict"),
        (None, "times unreadable: None, not a dict"),
        ({"t0": 3.0, "t1": "4"}, "times unreadable: t0 3.0, t1 4"),
        ({"t0": 3.0, "t1": 2.0}, "times unreadable: t0 3.0, t1 2.0"),
        ({"t0": 3.0, "t1": float("nan")}, "times unreadable: t0 3.0, t1 nan"),
        ({"turn": 2}, "weights v2"),
    ):
        one = sample(0, weight_versions=["1", "2", "3"], metadata={"lifecycle": [good, wrong, good]})
        write_step(tmp_path, 0, [one], train=False, mirror=False)
        found = call_facts(read(tmp_path).samples[0], [])
        assert found["call 1"] == str(found["call 3"]).replace("v3", "v1") == "weights v1 · 2.000 s"
        assert str(found["call 2"]).endswith(told)
