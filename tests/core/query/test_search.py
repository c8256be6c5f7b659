"""What a pattern is found in, and what is said of one that can't be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.errors import DumpError
from dumptui.core.files.step_files import StepKey
from dumptui.core.query.text_search import Hit, Passage, check_pattern, first_hit, read_passages
from dumptui.core.run.run import Run
from tests.support.writer import sample, write_step


def found(root: Path, pattern: str, step: int = 0) -> dict[int, str]:
    """The part in which each sample has it."""
    samples = read_passages(Run.open(root).steps[StepKey(step)])
    hits = {at: first_hit(passages, pattern) for at, passages in enumerate(samples)}
    return {at: hit.part for at, hit in hits.items() if hit}


def write_talk(root: Path) -> None:
    chat = [{"role": "system", "content": "rules"}, {"role": "user", "content": [{"type": "text", "text": "who?"}]}]
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": {"q": "needle"}}}]}
    samples = [
        sample(0, prompt="find the needle", response="found"),
        sample(1, prompt=chat, response="a Needle, \ud83d"),
        sample(2, prompt=None, response="", metadata={"messages": [called]}),
        sample(3),
        sample(3),
    ]
    rows = [
        {"sample_index": 3, "messages": [{"role": "needle", "content": "first"}]},
        {"sample_index": 3, "messages": [{"role": "tool", "content": "the needle"}]},
    ]
    write_step(root, 0, samples, trajectory=rows, mirror=False)
    with open(root / "trajectory" / "0.jsonl", "a") as file:
        file.write('[1]\n{"sample_index": 0, "messages": "nee')


def test_prompts_responses_and_messages_are_searched(tmp_path: Path) -> None:
    write_talk(tmp_path)
    assert found(tmp_path, "needle") == {0: "prompt", 2: "messages", 4: "messages"}
    assert found(tmp_path, "(?i)NEEDLE") == {0: "prompt", 1: "response", 2: "messages", 4: "messages"}
    assert found(tmp_path, r"^(who\?|found)$") == {0: "response", 1: "prompt"}
    assert found(tmp_path, "user|text") == {}


def test_the_first_place_is_told_with_what_is_around_it() -> None:
    text = "é" * 500 + "the end. The End"
    hit = first_hit([Passage("prompt", "nothing"), Passage("response", text)], "(?i)END")
    assert hit == Hit("response", "é" * 148 + "the ", "end", ". The End")
    assert first_hit([], "x") is None


texts = st.text(st.characters(codec=None), max_size=20)


@given(texts, texts, texts)
def test_any_text_is_found_where_it_is(before: str, needle: str, after: str) -> None:
    pattern = "".join(f"\\x{{{ord(char):x}}}" for char in needle if not 0xD800 <= ord(char) < 0xE000)
    needle = "".join(char for char in needle if not 0xD800 <= ord(char) < 0xE000)
    hit = first_hit([Passage("prompt", before + needle + after)], pattern)
    assert hit is not None
    assert hit.match == needle


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "unclosed group"),
        ("[a", "unclosed character class"),
        ("*", "repetition operator missing expression"),
        ("(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(a)\1", "backreferences are not supported"),
        ("(x{1000}){1000}", "its repetitions expand to more than 10 MB"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_one_sentence(pattern: str, said: str) -> None:
    with pytest.raises(DumpError) as error:
        check_pattern(pattern)
    assert error.value.problem == f"the pattern can't be parsed: {said}"


def test_hostile_text_and_patterns(shared: Path) -> None:
    for pattern in ("\x1b\\[31m", "\\[/\\]", "\x00", "\u202e"):
        check_pattern(pattern)
        found(shared / "runs" / "odd", pattern)
    assert found(shared / "runs" / "odd", "\x1b\\[31m")


def test_a_step_without_a_rollout_file(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], mirror=False)
    (tmp_path / "rollout_data" / "0.pt").unlink()
    with pytest.raises(DumpError, match="has no rollout file"):
        found(tmp_path, "x")


def test_lines_that_are_no_rows(tmp_path: Path) -> None:
    deep = "[" * 5000 + "]" * 5000
    write_step(tmp_path, 0, [sample(0)], trajectory=[{"sample_index": 0, "messages": json.loads("[" * 60 + "]" * 60)}])
    with open(tmp_path / "trajectory" / "0.jsonl", "ab") as file:
        file.write(b"\xff\xfe\n" + deep.encode() + b"\n")
    assert found(tmp_path, "a response") == {0: "response"}
