"""Conversations: from which file the messages come, what each of them says, and where it lies in the tokens."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dumptui.core.demo.text import tokenizer, write_tokenizer
from dumptui.core.files.step_files import StepKey
from dumptui.core.formats.miles.trajectory_file import Trajectories
from dumptui.core.run.run import Run
from dumptui.core.sample.conversation import Conversation, open_sidecar, read_conversation
from dumptui.core.sample.messages import Part, parts_of, pretty, split_blocks
from dumptui.core.sample.turns import Where, join_texts
from dumptui.core.vocabulary import Vocabulary
from dumptui.tui.presentation.sample_rows import prompt_text
from tests.support.reading import read
from tests.support.screen import run
from tests.support.writer import sample, write_step

WORDS = {"role": "user", "content": "how many?"}


def talk(run: Path, position: int = 0, step: int = 0, *, evaluation: bool = False) -> Conversation:
    join_texts = read(run, step, evaluation=evaluation)
    tokenizer = Run.open(run).tokenizer
    vocabulary = Vocabulary.load(tokenizer) if tokenizer.exists() else None
    return read_conversation(join_texts, join_texts.samples[position], open_sidecar(join_texts), vocabulary)


def row(index: int | None, *messages: Any, **more: Any) -> dict[str, Any]:
    return {"sample_index": index, "group_index": 0, "status": "completed", "messages": list(messages), **more}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def contents(conversation: Conversation) -> list[str]:
    return ["".join(part.text for part in one.parts) for one in conversation.messages]


# Where the messages are -------------------------------------------------------------------------------------------


def test_the_trajectory_file_is_asked_first_then_the_metadata(tmp_path: Path) -> None:
    samples = [sample(at, metadata={"messages": [WORDS, said("kept in the sample")]}) for at in range(2)]
    write_step(tmp_path, 0, samples, trajectory=[row(1, WORDS, said("from the file"))])
    assert contents(talk(tmp_path, 1)) == ["how many?", "from the file"]
    assert contents(talk(tmp_path, 0)) == ["how many?", "kept in the sample"]


@pytest.mark.parametrize("told", [True, False])
def test_of_siblings_the_one_that_the_row_tells_has_the_conversation(tmp_path: Path, told: bool) -> None:
    samples = [sample(7, seed=1), sample(7, seed=2), sample(8)]
    occurrence = {"sample_occurrence": 1} if told else {}
    write_step(tmp_path, 0, samples, trajectory=[row(7, WORDS, said("a response"), **occurrence)])
    found = [talk(tmp_path, position) for position in (0, 1)]
    recorded = [contents(one)[-1] == "a response" and one.messages[0].role == "user" for one in found]
    if told:
        assert recorded == [False, True]
        assert "no conversation" in (found[0].note or "") and found[1].note is None
    else:
        assert sum(recorded) == 1 and any("matched by order" in (one.note or "") for one in found)


def test_siblings_are_told_apart_by_what_the_response_holds(tmp_path: Path) -> None:
    samples = [sample(7, seed=at, response=f"words of {at}") for at in range(3)]
    write_step(tmp_path, 0, samples, trajectory=[row(7, said("words of 0")), row(7, said("words of 2"))])
    notes = [talk(tmp_path, at).note or "" for at in range(3)]
    assert contents(talk(tmp_path, 2)) == ["words of 2"]
    assert "matched by order" in notes[0] and "no conversation" in notes[1] and "matched by order" in notes[2]


def test_samples_of_two_eval_sets_keep_their_own_words(shared: Path) -> None:
    root = shared / "runs/multiturn"
    lines = [json.loads(line) for line in (root / "trajectory/eval_0.jsonl").read_text().splitlines()]
    step = read(root, 0, evaluation=True)
    generated = [one for one in step.samples if one.total_length]  # the aborted one has no line
    for line, one in zip(lines, generated, strict=True):
        found = read_conversation(step, one, open_sidecar(step), None)
        assert [message.dumped for message in found.messages] == line["messages"]


def test_a_cut_line_costs_its_own_sample(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0), sample(1)], trajectory=[row(0, WORDS), row(1, WORDS)])
    path = tmp_path / "trajectory/0.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert contents(talk(tmp_path, 0)) == ["how many?"]
    assert "last line is truncated" in (talk(tmp_path, 1).note or "")


@pytest.mark.parametrize("line", ["null", "[]", "{", '{"sample_index": 0}', '{"messages": {}, "sample_index": 0}'])
def test_a_line_without_messages_is_no_conversation(tmp_path: Path, line: str) -> None:
    write_step(tmp_path, 0, [sample(0)], trajectory=[])
    (tmp_path / "trajectory/0.jsonl").write_text(line + "\n")
    assert contents(talk(tmp_path)) == ["a prompt", "a response"]


def test_an_index_inside_of_a_message_is_not_taken_for_the_rows_own(tmp_path: Path) -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"sample_index": 1}}}]}
    path = tmp_path / "0.jsonl"
    rows = [{"messages": [call], "sample_index": 0}, {"sample_index": None, "messages": []}]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    found = Trajectories.scan(path)
    assert found.rows(1) == [] and found.rows(0) == [rows[0]] and found.rows(None) == [rows[1]]


# Turns --------------------------------------------------------------------------------------------------------------


def test_without_a_conversation_the_response_is_split_by_the_mask(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tokenizer")
    write_step(tmp_path, 0, [sample(0, prompt_len=4, response_len=6, loss_mask=[1, 1, 0, 0, 0, 1])])
    found = talk(tmp_path)
    assert [one.role for one in found.messages] == ["prompt", "assistant", "masked", "assistant"]
    assert [(one.where.start, one.where.stop) for one in found.messages if one.where] == [
        (0, 4),
        (4, 6),
        (6, 9),
        (9, 10),
    ]
    assert "split where its loss mask changes" in (found.note or "")
    texts = Vocabulary.load(tmp_path / "tokenizer/tokenizer.json").texts(read(tmp_path).samples[0].tokens.tolist())
    assert contents(found)[2] == "".join(text for text in texts[6:9] if text != "⋯")


def spelled(root: Path, prompt: Any, asked: str, answered: str, **fields: Any) -> Vocabulary:
    """A step of one sample whose tokens are those of two texts."""
    write_tokenizer(root / "tokenizer")
    before, after = (tokenizer().encode(text).ids for text in (asked, answered))
    one = sample(0, response_len=len(after), tokens=before + after, prompt=prompt, response=answered, **fields)
    write_step(root, 0, [one])
    return Vocabulary.load(root / "tokenizer/tokenizer.json")


ASKED = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n"
ANSWERED = "<think>hm</think>I ask.<|im_end|>\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n42, 世<|im_end|>"


@pytest.mark.parametrize("recorded", ["text", "messages", "nothing"])
def test_prompt_and_response_are_split_by_their_template(tmp_path: Path, recorded: str) -> None:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "How many?"}]
    prompt = {"text": ASKED, "messages": messages, "nothing": None}[recorded]
    vocabulary = spelled(tmp_path, prompt, ASKED, ANSWERED)
    found = talk(tmp_path)
    assert [one.role for one in found.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert contents(found) == ["Be kind.", "How many?", "hmI ask.", "42", "42, 世"]
    subject = "the response is" if recorded == "messages" else "prompt and response are"
    assert found.note == f"no conversation was recorded; {subject} split by the ChatML template"
    one = read(tmp_path).samples[0]
    texts = vocabulary.texts(one.tokens.tolist())
    at = 0
    for message in found.messages:
        assert message.where is not None and (message.where.start, message.where.how) == (at, "template")
        at = message.where.stop
        if recorded != "messages" or message.position > 1:
            whole = message.before + message.dumped["content"] + message.after
            assert whole == join_texts(texts[message.where.start : at])
        assert all(found.at_token(token) is message for token in range(message.where.start, at))
    assert at == one.total_length


def test_a_turn_of_the_model_that_was_not_trained_on_is_told(tmp_path: Path) -> None:
    length = len(tokenizer().encode(ANSWERED).ids)
    mask = [0] * (length - 3) + [1] * 3
    spelled(tmp_path, ASKED, ASKED, ANSWERED, loss_mask=mask)
    found = talk(tmp_path)
    assert [(one.role, one.masked) for one in found.messages[2:]] == [
        ("assistant", True),
        ("tool", True),
        ("assistant", False),
    ]


def test_a_prompt_that_is_no_clean_template_stays_whole(tmp_path: Path) -> None:
    asked = "<|im_start|>user\nWhat does <|im_end|> mean?<|im_end|>\n<|im_start|>assistant\n"
    spelled(tmp_path, asked, asked, "It ends a message.<|im_end|>")
    found = talk(tmp_path)
    assert [one.role for one in found.messages] == ["prompt", "assistant"]
    assert contents(found)[0] == asked
    assert found.messages[0].where == Where(0, read(tmp_path).samples[0].prompt_length, "mask")


def test_turns_are_told_apart_without_a_tokenizer_where_the_text_has_their_template(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, prompt=ASKED, response=ANSWERED, response_len=5, loss_mask=[1, 1, 0, 1, 1])])
    found = talk(tmp_path)
    assert [one.role for one in found.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [one.where and (one.where.start, one.where.stop, one.where.how) for one in found.messages] == [
        *[(0, 4, "prompt")] * 2,
        *[(4, 6, "mask"), (6, 7, "mask"), (7, 9, "mask")],
    ]


def test_turns_that_cannot_be_read_are_not_made_up(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0, response_len=4, loss_mask=[1, 0, 0, 1])])
    found = talk(tmp_path)
    assert contents(found) == ["a prompt", "a response"] and "without a tokenizer" in (found.note or "")


def test_a_sample_that_was_never_generated_has_its_prompt_only(tmp_path: Path) -> None:
    nothing = {"tokens": [], "response": "", "response_length": 0, "rollout_log_probs": None, "status": "aborted"}
    write_step(tmp_path, 0, [sample(0) | nothing])
    assert contents(talk(tmp_path)) == ["a prompt"]


def test_messages_are_found_in_the_tokens_and_tokens_in_the_messages(shared: Path) -> None:
    """The model's messages by the mask, the tool's and the prompt's by their text."""
    root = shared / "runs/multiturn"
    for position, one in enumerate(read(root, 2).samples):
        found = talk(root, position, 2)
        mask = one.loss_mask
        for message in found.messages:
            if message.where is None or message.where.how == "prompt":
                continue
            where = message.where
            assert found.at_token(where.start) is message and found.at_token(where.stop - 1) is message
            inside: Any = (
                [] if mask is None else mask[max(0, where.start - one.prompt_length) : where.stop - one.prompt_length]
            )
            if message.role == "assistant" and where.how == "mask":
                assert all(inside)
            if message.role == "tool":
                assert not any(inside)


# What a message says ------------------------------------------------------------------------------------------------


def kinds(text: str) -> list[tuple[str, str, str]]:
    return [(part.kind, part.label, part.text) for part in parts_of(said(text))]


def test_blocks_of_raw_text_are_told_apart() -> None:
    call = '<tool_call>\n{"name": "stock", "arguments": {"item": "ropes"}}\n</tool_call>'
    assert kinds(f"<think>\nhm\n</think>\n\nSo:\n{call}<|im_end|>\n") == [
        ("thinking", "", "hm"),
        ("text", "", "So:"),
        ("call", "stock", '{\n  "item": "ropes"\n}'),
        ("special", "", "<|im_end|>"),
    ]
    assert kinds("opened by the template</think>42") == [("thinking", "", "opened by the template"), ("text", "", "42")]
    assert kinds("<think>cut off") == [("thinking", "not closed", "cut off")]
    assert kinds("<tool_call>f(1)</tool_call>") == [("call", "", "f(1)")]


@given(st.lists(st.sampled_from(["<think>", "</think>", "<tool_call>", "</tool_call>", "<|eos|>", "a", "\n", "{}"])))
@example(["a", "</think>", "<think>"])
@example(["<|eos|>", " ", "<|eos|>", "\n"])
def test_splitting_loses_no_character(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert "".join(piece.raw for piece in split_blocks(text)) == text
    shown = "".join(piece.inner for piece in split_blocks(text))
    for marker in ("<think>", "</think>", "<tool_call>", "</tool_call>"):
        text, shown = text.replace(marker, ""), shown.replace(marker, "")
    assert shown == text


def test_structured_messages_are_read_in_full() -> None:
    function = {"name": "lookup", "arguments": '{"query": "x", "k": 1}'}
    message = {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": "<think>not split</think>",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": function},
            {"function": {"name": "f", "arguments": "{x"}},
        ],
        "refusal": "no",
        "audio": None,
    }
    assert list(parts_of(message)) == [
        Part("thinking", "hm"),
        Part("text", "<think>not split</think>"),
        Part("call", '{\n  "query": "x",\n  "k": 1\n}', "lookup", "c1"),
        Part("call", "{x", "f"),
        Part("data", '"no"', "refusal"),
    ]


def test_media_are_named_never_dumped() -> None:
    encoded = "iVBORw0KGgo" + "AbC1" * 3000
    content = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}},
        {"type": "input_audio", "input_audio": {"data": encoded, "format": "wav"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png", "detail": "low"}},
    ]
    text, image, audio, link = parts_of({"role": "user", "content": content})
    assert text == Part("text", "what is this?")
    assert image == Part("media", "image_url.url: <image/png, 9.0 kB>", "image_url")
    assert '"data": "<base64, 9.0 kB>"' in audio.text and '"format": "wav"' in audio.text
    assert "https://example.org/cat.png" in link.text and "low" in link.text


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8


def test_raw_bytes_and_data_urls_in_text_are_named(tmp_path: Path) -> None:
    url = "data:image/jpeg;base64," + base64.b64encode(PNG).decode()
    words = f"see ![it]({url}) and {url} please, data:image/png;base64,short"
    content = [{"type": "image", "image": PNG}, b"\xff\xd8\xff" + bytes(997), b"no known kind", words, f"{url} what?"]
    prompt = [{"role": "user", "content": content}]
    write_step(tmp_path, 0, [sample(0, prompt=prompt, metadata={"picture": PNG, "note": words})])
    said = ["image image: <image/png, 2.1 kB>", '"<image/jpeg, 1.0 kB>"', '"<13 B of bytes>"']
    said += ["see ![it](<image/jpeg, 2.1 kB>) and <image/jpeg, 2.1 kB> please, data:image/png;base64,short"]
    said += ["<image/jpeg, 2.1 kB> what?"]
    rows = list(csv.DictReader(io.StringIO(printed(tmp_path, "--step", "0", "--sample", "0", "--csv"))))
    assert rows[0]["content"] == "\n\n".join(said)
    facts = run(tmp_path, "--print", "facts", "--step", "0", "--sample", "0", "--json").stdout
    values = {
        one["name"]: one["value"] for one in json.loads(facts)["rows"] if one["section"] in ("metadata", "prompt")
    }
    assert values["picture"] == '"<image/png, 2.1 kB>"' and values["note"] == said[3]
    assert len(values["prompt"]) < 1000 and "<image/jpeg, 2.1 kB> what?" in values["prompt"]
    assert prompt_text(prompt) == " ".join(["image: <image/png, 2.1 kB>", *said[1:]])


def test_any_value_has_a_text() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert pretty(deep) and pretty({"x": b"ab", 1: float("nan")}) == '{\n  "x": "<2 B of bytes>",\n  "1": NaN\n}'


def test_calls_are_paired_by_id_else_in_order(tmp_path: Path) -> None:
    def call(*ids: str | None) -> dict[str, Any]:
        calls = [{"function": {"name": "f", "arguments": "{}"}} | ({"id": one} if one else {}) for one in ids]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def result(identity: str | None = None) -> dict[str, Any]:
        return {"role": "tool", "content": "1"} | ({"tool_call_id": identity} if identity else {})

    messages = [call("a", "b"), result("b"), result("a"), call("a"), result("a"), call(None), result(), result("z")]
    write_step(tmp_path, 0, [sample(0)], trajectory=[row(0, *messages)])
    found = talk(tmp_path)
    links = [(link.call, link.number, link.result, link.by) for link in found.links]
    assert links == [(0, 1, 1, "id"), (0, 0, 2, "id"), (3, 0, 4, "id"), (5, 0, 6, "order")]
    assert [found.partner(at) for at in (2, 4, 5, 7)] == [0, 3, 6, None]


def called(*calls: tuple[str | None, str]) -> dict[str, Any]:
    """A message that calls tools by id and name."""
    made = [{"function": {"name": name, "arguments": "{}"}} | ({"id": one} if one else {}) for one, name in calls]
    return {"role": "assistant", "content": None, "tool_calls": made}


def answer(identity: str | None = None, name: str | None = None) -> dict[str, Any]:
    said = {"tool_call_id": identity, "name": name}
    return {"role": "tool", "content": "1"} | {key: value for key, value in said.items() if value}


@pytest.mark.parametrize(
    ("messages", "links"),
    [
        ([called(("x", "f"), ("x", "f")), answer("x"), answer("x")], [(0, 0, 1, "id"), (0, 1, 2, "id")]),
        ([called(("x", "f"), ("x", "g")), answer("x", "g"), answer("x", "f")], [(0, 1, 1, "id"), (0, 0, 2, "id")]),
        ([called(("x", "f")), answer("x"), called(("x", "f")), answer("x")], [(0, 0, 1, "id"), (2, 0, 3, "id")]),
        ([called(("x", "f")), called(("x", "f")), answer("x")], [(1, 0, 2, "id")]),
        (
            [called((None, "f"), (None, "g")), answer(None, "g"), answer(None, "f")],
            [(0, 1, 1, "name"), (0, 0, 2, "name")],
        ),
        ([called((None, "f"), (None, "g")), answer(), answer(None, "f")], [(0, 1, 1, "order"), (0, 0, 2, "name")]),
        (
            [called((None, "f"), (None, "f")), answer(None, "f"), answer(None, "f")],
            [(0, 0, 1, "name"), (0, 1, 2, "name")],
        ),
        ([called((None, "f")), answer(None, "h")], []),
        ([called((None, "f")), called((None, "g")), answer(None, "f"), answer()], [(1, 0, 3, "order")]),
        ([called(("x", "f")), answer("y", "f")], []),
    ],
    ids=[
        "equal ids",
        "equal ids, names",
        "an id again",
        "newest",
        "names",
        "name first",
        "one name",
        "other",
        "last",
        "id",
    ],
)
def test_a_result_belongs_to_the_call_of_its_id_then_of_its_name_then_of_its_place(
    tmp_path: Path, messages: list[Any], links: list[Any]
) -> None:
    write_step(tmp_path, 0, [sample(0)], trajectory=[row(0, *messages)])
    document = json.loads(printed(tmp_path, "--step", "0", "--sample", "0", "--json"))
    assert [(one["call"], one["number"], one["result"], one["by"]) for one in document["links"]] == links


def test_a_call_keeps_its_name_in_whatever_form_it_was_recorded() -> None:
    forms: list[Any] = [
        {"name": "f", "arguments": '{"k": 1}', "id": "c"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"k": 1}},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"k": 1}},
        {"id": "c", "function": "f", "arguments": {"k": 1}},
        json.dumps({"id": "c", "function": {"name": "f", "arguments": {"k": 1}}}),
        {"id": "c", "type": "function", "index": 0, "function": {"name": "f", "arguments": '{"k": 1}'}},
    ]
    for form in forms:
        assert parts_of({"role": "assistant", "tool_calls": [form]}) == (Part("call", '{\n  "k": 1\n}', "f", "c"),)
    assert parts_of({"role": "assistant", "function_call": {"name": "f", "arguments": "x"}}) == (
        Part("call", "x", "f"),
    )
    assert parts_of({"tool_calls": [{"name": "f", "arguments": "x", "thought": "hm"}, {"odd": 1}, 3]}) == (
        Part("call", 'x\n{\n  "thought": "hm"\n}', "f"),
        Part("call", '{\n  "odd": 1\n}'),
        Part("call", "3"),
    )


# --print ------------------------------------------------------------------------------------------------------------


def printed(root: Path, *words: str) -> str:
    found = run(root, "--print", "conversation", *words)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_printed_conversation_has_the_messages_as_recorded(shared: Path) -> None:
    root = shared / "runs/multiturn"
    lines = [json.loads(line) for line in (root / "trajectory/2.jsonl").read_text().splitlines()]
    second = [line for line in lines if line["sample_index"] == 25][1]
    document = json.loads(printed(root, "--step", "2", "--sample", "25.1", "--json"))
    assert document["messages"] == second["messages"] and "matched by order" in document["note"]
    rows = list(csv.DictReader(io.StringIO(printed(root, "--step", "2", "--sample", "25.1", "--csv"))))
    assert [one["role"] for one in rows] == [message["role"] for message in second["messages"]]
    assert rows[-1]["thinking"] == second["messages"][-1]["reasoning_content"]


def test_a_run_without_a_sidecar_prints_prompt_and_response(shared: Path) -> None:
    root = shared / "runs/shard_once"
    document = json.loads(printed(root, "--step", "1", "--sample", "13", "--json"))
    one = next(one for one in read(root, 1).samples if one.index == 13)
    asked, answered = document["messages"]
    around = document["delimiters"][0]
    assert (asked["role"], answered) == ("user", {"role": "assistant", "content": one.response})
    assert around["before"] + asked["content"] + around["after"] == one.prompt
    assert document["note"] == "no conversation was recorded; the prompt is split by the ChatML template"
    assert "assistant" in printed(root, "--step", "1", "--sample", "13")


def test_special_tokens_stand_where_they_were_written(tmp_path: Path) -> None:
    texts = ["42<|im_end|>\n", "42\n<|im_end|>", "<think>hm</think>42 <|im_end|><|eot_id|>", "<|im_end|>"]
    write_step(tmp_path, 0, [sample(0)], trajectory=[row(0, *map(said, texts))])
    rows = csv.DictReader(io.StringIO(printed(tmp_path, "--step", "0", "--sample", "0", "--csv")))
    assert [one["content"] for one in rows] == [
        "42<|im_end|>",
        "42\n<|im_end|>",
        "42 <|im_end|><|eot_id|>",
        "<|im_end|>",
    ]


def test_a_conversation_is_of_one_sample(demo: Path) -> None:
    found = run(demo, "--print", "conversation")
    assert found.returncode == 2 and "--sample" in found.stderr and found.stderr.count("\n") == 1


def test_no_text_reaches_a_terminal_as_it_is(shared: Path) -> None:
    out = printed(shared / "runs/odd", "--step", "0", "--sample", "1")
    assert "\x1b" not in out and "␀" in out and StepKey(0) in Run.open(shared / "runs/odd").steps
