"""The text of a response beside that of its tokens: where it was cut, both panes say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from dumptui.core.conversation import read_conversation
from dumptui.core.tokens import Vocabulary
from dumptui.core.view import view_sample
from tests.reading import read
from tests.test_tokens import byte_level
from tests.writer import sample, write_step

CUT = "the response text ends 5 characters before its tokens do, as if it was cut at a stop string"


def notes_of(run: Path, written: str, response: str, special: int | None = None) -> list[str]:
    """What is said of the text, the same beside the tokens and beside the conversation."""
    (run / "tokenizer").mkdir()
    tokenizer = byte_level()
    (run / "tokenizer" / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    vocabulary = Vocabulary.load(run / "tokenizer" / "tokenizer.json")
    ids = tokenizer.encode(written).ids + ([] if special is None else [special])
    write_step(run, 0, [sample(0, tokens=[65, 66, *ids], response_len=len(ids), response=response)], mirror=False)
    step = read(run)
    found = [note for note in view_sample(step, 0, vocabulary).notes if "response text" in note]
    talk = read_conversation(step, step.samples[0], None, vocabulary)
    assert [note for note in (talk.note or "").split("; ") if "response text" in note] == found
    return found


@pytest.mark.parametrize(
    ("written", "response", "special", "said"),
    [
        ("the answer is 42 STOP", "the answer is 42", None, [CUT]),
        ("the answer is 42 STOP", "the answer is 42", 256, [CUT]),
        ("the answer is 42", "the answer is 42", None, []),
        ("the answer is 42", "the answer is 42", 256, []),
        ("the answer is 42", "the answer is 42<|im_end|>", 256, []),
        ("the answer is 42", " the answer is 42\n", None, []),
        ("the answer is 42", "another text", None, []),
        ("the answer is 42", "", None, []),
        (
            "the answer is 42",
            "the answer is 42, I think",
            None,
            ["the response text goes on for 9 characters behind its tokens"],
        ),
    ],
)
def test_a_text_that_is_not_that_of_its_tokens(
    tmp_path: Path, written: str, response: str, special: int | None, said: list[str]
) -> None:
    assert notes_of(tmp_path, written, response, special) == said


def test_a_character_of_which_a_part_was_written(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert notes_of(tmp_path / "a", "the answer is 世", "the answer is 世") == []
    ids = [*b"the answer is ", *"世".encode()[:2]]
    write_step(tmp_path, 0, [sample(0, tokens=ids, response_len=len(ids), response="the answer is")], mirror=False)
    vocabulary = Vocabulary.load(tmp_path / "a" / "tokenizer" / "tokenizer.json")
    assert not [note for note in view_sample(read(tmp_path), 0, vocabulary).notes if "response text" in note]
