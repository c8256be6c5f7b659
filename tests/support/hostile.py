"""A run in which every string is written to drive the terminal, the app or the eye of whoever reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.crafted import call, name, program
from tests.support.writer import Layout, sample, write_step

POISON = [
    "\x1b]52;c;b3duZWQ=\x07",  # the clipboard
    "\x1b]0;owned\x07\x1b[2J\x1b[?1049l\x9b31m",  # the title, the screen, a colour
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "[bold red]red[/bold red][/][/nope]",  # rich
    "[@click=app.quit]quit[/][$error]x[/]",  # textual
    "\u202eright to left\u2066\u2069",
    "zero\u200bwidth\u200d\ufeff\u3164\U000e0041",
    "\u0301\u0301cafe\u0301",
    "漢字 한글 \u1112\u1161\u11ab 🤔🏽👩\u200d👩\ufe0f",
    "\x00\x08\x7f\x85\r\nline\ttab\u2028\u2029\xa0\xad",
    "lone \ud83d half",
]
"""What `evil` goes through in turn."""
GROUP, GROUPS, STEPS = 4, 2, 2
RUN = "run\x1b[31m[red]\u202e漢"


def evil(at: int, word: str = "") -> str:
    return f"{POISON[at % len(POISON)]}{word}"


def write_hostile_run(folder: Path) -> Path:
    root = folder / RUN
    for step in range(STEPS):
        samples = [hostile_sample(step, at) for at in range(GROUP * GROUPS)]
        columns: dict[str, Any] = {evil(1, "whole"): [evil(at) for at in range(len(samples))]}
        per_token = [[0.5] * one["response_length"] for one in samples]
        write_step(
            root,
            step,
            samples,
            Layout(dp=2),
            truth={evil(4, "column"): per_token, evil(8, "other"): per_token},
            columns=columns,
            trajectory=[conversation(one) for one in samples],
            metadata={evil(at): evil(at + 1) for at in range(len(POISON))},
        )
    evals = [hostile_sample(0, at) | {"metadata": {"dataset": evil(at)}} for at in (0, 1, 2, 0, 1, 2)]
    write_step(root, 0, evals, evaluation=True, train=False)
    write_tokenizer(root / "tokenizer")
    write_strangers(root)
    return root


def hostile_sample(step: int, at: int) -> dict[str, Any]:
    index = step * GROUP * GROUPS + at
    found = sample(
        index,
        prompt=[{"role": evil(at), "content": evil(at + 1)}, {"role": "user", "content": "".join(POISON)}],
        response="".join(POISON) + str(at),
        label=evil(at + 2),
        status="completed" if at % 2 else evil(at + 3),
        reward={evil(3, "score"): float(at % 3), evil(1, "other"): 1.0},
        weight_versions=[evil(at), evil(at + 1)],
        metadata={evil(one): {evil(one + 1): [evil(one + 2)]} for one in range(len(POISON))},
        loss_mask=[1, 1, 0, 0, 1, 1],
    )
    return found | {evil(at): evil(at + 5), "routing_key": evil(at), "adapter": evil(at + 1)}


def conversation(one: dict[str, Any]) -> dict[str, Any]:
    at = one["index"]
    call_of = {"id": evil(at), "type": "function", "function": {"name": evil(at + 1), "arguments": evil(at + 2)}}
    messages = [
        {"role": "user", "content": "".join(POISON)},
        {"role": "assistant", "content": evil(at), "reasoning_content": evil(at + 3), "tool_calls": [call_of]},
        {"role": "tool", "tool_call_id": evil(at), "name": evil(at + 1), "content": "".join(POISON)},
        {
            "role": evil(at + 4),
            "content": [{"type": evil(at), "text": evil(at + 1)}, {"type": "text", "text": "# [/]"}],
        },
    ]
    return {"sample_index": at, "group_index": one["group_index"], "status": evil(at), "messages": messages}


def write_tokenizer(folder: Path) -> None:
    folder.mkdir()
    vocabulary = {evil(at, f"{at}"): at for at in range(1000) if "\ud83d" not in evil(at)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": next(iter(vocabulary))}
    special = {"id": 3, "content": evil(3, "3"), "special": True}
    added = [special | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)]
    document = {"version": "1.0", "added_tokens": added, "model": model, "decoder": None}
    (folder / "tokenizer.json").write_text(json.dumps(document))


def write_strangers(root: Path) -> None:
    """Files that are no dumps, or whose names, classes and records are hostile."""
    for at, text in enumerate(POISON[:9]):
        word = text.replace("/", "_").replace("\x00", "")
        (root / "rollout_data" / f"{word}.pt").write_bytes(b"")
        (root / "train_data" / f"1_{word}.pt").write_bytes(b"")
        (root / "dashboard" / "phases").mkdir(parents=True, exist_ok=True)
        (root / "dashboard" / "phases" / f"{word}.jsonl").write_text(json.dumps({"name": text, "node": text}) + "\n{")
        (root / "dashboard" / "metrics.jsonl").open("a").write(json.dumps({text: {text: at}}) + "\n")
    (root / "train_data" / "1_7.pt").write_bytes(program(call(name("os\x1b[31m", "[/]system\u202e"), evil(1))))
    (root / "rollout_data" / "2.pt").write_bytes(program(call(name("\x9b31mbuiltins", "[@click=quit]x[/]"), evil(0))))
