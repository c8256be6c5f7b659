"""A text that is not that of its tokens is told of, in every place that shows either."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from dumptui.core.demo.text import tokenizer, write_tokenizer
from dumptui.core.run.run import Run
from dumptui.core.sample.response_text import text_note
from dumptui.core.vocabulary import Vocabulary
from dumptui.tui.app.app import DumpTui
from tests.support.reading import read
from tests.support.screen import press, run, tab, until, until_shown
from tests.support.writer import Json, sample, write_step

CUT = 'the text is truncated: its tokens continue with "</answer>"'
OTHER = "the text differs from its tokens"


def spelled(root: Path, response: str, *turns: str) -> Json:
    """A sample of which every second turn is not trained on, and whose recorded text is `response`."""
    write_tokenizer(root / "tokenizer")
    asked, *ids = [tokenizer().encode(text).ids for text in ("how many?", *turns)]
    mask = [int(at % 2 == 0) for at, turn in enumerate(ids) for _ in turn]
    tokens = asked + [token for turn in ids for token in turn]
    return sample(0, response_len=len(mask), tokens=tokens, loss_mask=mask, response=response)


def note_of(root: Path, one: Json) -> str | None:
    write_step(root, 0, [one], train=False, mirror=False)
    return text_note(read(root).samples[0], Vocabulary.load(Run.open(root).tokenizer))


RESULT = "<|im_end|>\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("response", "turns", "told"),
    [
        ("It is 42", ["It is 42"], None),
        ("It is 42", ["It is 42<|im_end|>\n"], None),
        ("It is 42<|im_end|>", ["It is 42<|im_end|>"], None),
        ("世 é 🙂", ["世 é 🙂"], None),
        ("I ask.42So it is 42", ["I ask.", RESULT, "So it is 42<|im_end|>"], None),
        ("", ["It is 42"], None),
        ("<answer>42", ["<answer>42</answer>"], CUT),
        ("I ask42So", ["I ask</call>", RESULT, "So"], CUT.replace("text", "text of turn 1").replace("answer", "call")),
        ("I ask42<answer>42", ["I ask", RESULT, "<answer>42</answer>"], CUT.replace("text", "text of turn 2")),
        ("It is", ["It is 42, I think<|im_end|>"], CUT.replace("</answer>", "42, I think")),
        ("It is 43", ["It is 42"], OTHER),
        ("42", ["It is 42"], OTHER),
        ("It is 42, I think", ["It is 42"], "the text continues after its tokens end"),
        ("I ask42No", ["I ask", RESULT, "So"], "the text of turn 2 differs from its tokens"),
    ],
)
def test_what_is_told_of_a_text(tmp_path: Path, response: str, turns: list[str], told: str | None) -> None:
    """The engine leaves out the stop string that ended a text, its tokens hold it."""
    assert note_of(tmp_path, spelled(tmp_path, response, *turns)) == told


def test_texts_of_real_runs_are_those_of_their_tokens(shared: Path) -> None:
    for name in ("multiturn", "shard_once"):
        words = Vocabulary.load(Run.open(shared / "runs" / name).tokenizer)
        assert {text_note(one, words) for one in read(shared / "runs" / name, 0).samples} == {None}


def test_without_a_tokenizer_nothing_is_told(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)])
    assert text_note(read(tmp_path).samples[0], None) is None


async def test_both_panes_tell_of_a_cut_text(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [spelled(tmp_path, "<answer>42", "<answer>42</answer>")], mirror=False)
    async with DumpTui(Run.open(tmp_path), pane="tokens").run_test(size=(160, 40)) as pilot:
        await until_shown(pilot, "sample 0", CUT)
        await press(pilot, tab("conversation"))
        await until(pilot, lambda: pilot.app.pane == "conversation")  # type: ignore[attr-defined]
        await until_shown(pilot, "▾ 1 assistant", CUT)


def test_both_printed_views_tell_of_a_cut_text(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [spelled(tmp_path, "<answer>42", "<answer>42</answer>")], mirror=False)
    for view in ("tokens", "conversation"):
        document = json.loads(run(tmp_path, "--print", view, "--step", "0", "--sample", "0", "--json").stdout)
        assert CUT in (document.get("notes") or document["note"])


def test_a_long_text_is_compared_while_nobody_waits(tmp_path: Path) -> None:
    words = tokenizer().encode("a line of words, 世界 ").ids * 10_000
    one = spelled(tmp_path, "other " * 50_000, "x")
    one |= {"tokens": [*one["tokens"], *words], "response_length": len(words) + 1, "loss_mask": None}
    write_step(tmp_path, 0, [one | {"rollout_log_probs": [0.0] * (len(words) + 1)}], train=False, mirror=False)
    found, vocabulary = read(tmp_path).samples[0], Vocabulary.load(Run.open(tmp_path).tokenizer)
    assert np.size(found.tokens) > 50_000
    start = time.process_time()
    assert text_note(found, vocabulary) == OTHER
    assert time.process_time() - start < 1
