"""The prompts and responses of a demo run: sums in words, and questions about stock that need a tool."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SUMS = [
    ("A depot stacks {a} crates and each crate holds {b} lamps. How many lamps are there?", "lamps"),
    ("A ferry makes {a} trips a week with {b} guests on each. How many guests ride in a week?", "guests"),
    ("A hall has {a} rows of {b} chairs. How many chairs are in the hall?", "chairs"),
    ("A press prints {a} sheets an hour for {b} hours. How many sheets does it print?", "sheets"),
]
THOUGHTS = [
    "Let me write the quantities down before I multiply anything.",
    "That matches the first estimate, which is a good sign.",
    "Hmm, the last digit looks wrong, so I will compute it again.",
    "Wait, each of them is counted once, so there is nothing to double.",
    "The units agree on both sides, therefore the product is the answer.",
    "I could also split the second number into tens and ones.",
    "Adding the two parts should give the same total as before.",
    "Let me check this with a rough estimate first 🤔",
    "Nothing in the question says that some of them are missing.",
    "So far the result is even, as it has to be.",
    "先算十位 first, then the ones.",
    "It is safer to do the small step twice than to guess.",
    "Alternatively I can round up and subtract what was too much.",
    "The order of the two numbers does not matter here.",
    "Good, now only the final sum is left ✅",
    "I am not sure about the carry, let me look at it once more.",
]
PLANS = [
    "I need the count of every warehouse, one call each.",
    "The next warehouse is still missing.",
    "That is one count, let me ask for the other one.",
    "I should look this up instead of guessing.",
    "Now the last lookup, then I can add them 🧮",
]
WAREHOUSES = ["north", "harbor", "hill", "airport"]
GOODS = ["lamps", "valves", "ropes", "mirrors", "kettles", "tiles"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "stock",
            "description": "Count the goods in a warehouse.",
            "parameters": {"warehouse": "string", "item": "string"},
        },
    }
]
SYSTEM = "You answer questions about stock. Use the tool, then give the sum in a box."


@dataclass(frozen=True)
class Question:
    """A prompt and its answer. `text` is the prompt as the model reads it."""

    prompt: str | list[Message]
    """A chat-templated string, or messages for a run that applies the template later."""
    text: str
    answer: int
    unit: str
    parts: dict[str, int]
    """Factors of a sum in words, or counts by warehouse."""

    @property
    def uses_tools(self) -> bool:
        return isinstance(self.prompt, list)


@dataclass(frozen=True)
class Answer:
    """A response in pieces, each with whether the model wrote it; a tool wrote the others."""

    pieces: list[tuple[str, bool]]
    messages: list[Message] | None
    """The conversation in OpenAI's format; None where no tool is used."""

    @property
    def turns(self) -> int:
        return sum(written for _, written in self.pieces)


def question(rng: random.Random, uses_tools: bool) -> Question:
    if not uses_tools:
        template, unit = rng.choice(SUMS)
        a, b = rng.randint(12, 97), rng.randint(12, 97)
        text = _chat([{"role": "user", "content": template.format(a=a, b=b)}])
        return Question(text, text, a * b, unit, {"a": a, "b": b})
    counts = {place: rng.randint(20, 480) for place in rng.sample(WAREHOUSES, rng.randint(1, 3))}
    item = rng.choice(GOODS)
    prompt = f"How many {item} are there in the warehouses {', '.join(counts)} together?"
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    tools = "\nTools: " + json.dumps(TOOLS)
    text = _chat([{"role": "system", "content": SYSTEM + tools}, messages[1]])
    return Question(messages, text, sum(counts.values()), item, counts)


def answer(rng: random.Random, question: Question, right: bool, thoughts: int) -> Answer:
    """Return a response; without a tool it has about `thoughts` sentences."""
    result = question.answer if right else question.answer + rng.choice([-100, -10, -1, 1, 10, 90])
    if question.uses_tools:
        return _tool_answer(rng, question, result)
    a, b = question.parts["a"], question.parts["b"]
    tens = b // 10 * 10
    lines = [f"{a} times {b} is wanted.", *rng.sample(THOUGHTS * (thoughts // len(THOUGHTS) + 1), thoughts)]
    lines.insert(thoughts // 2 + 1, f"{a} × {tens} = {a * tens} and {a} × {b - tens} = {a * (b - tens)}.")
    text = f"<think>\n{_prose(rng, lines)}\n</think>\n{_closing(result, question.unit)}"
    return Answer([(text + "<|im_end|>", True)], None)


def _tool_answer(rng: random.Random, question: Question, result: int) -> Answer:
    assert isinstance(question.prompt, list)
    pieces, messages = [], list(question.prompt)
    for call, (place, count) in enumerate(question.parts.items()):
        plan, arguments = rng.choice(PLANS), {"warehouse": place, "item": question.unit}
        output = json.dumps({**arguments, "count": count, "shelves": rng.randint(1, 9), "checked": "today"})
        request = json.dumps({"name": "stock", "arguments": arguments})
        pieces.append((f"<think>\n{plan}\n</think>\n<tool_call>\n{request}\n</tool_call><|im_end|>", True))
        pieces.append((f"\n<|im_start|>tool\n{output}<|im_end|>\n<|im_start|>assistant\n", False))
        function = {"name": "stock", "arguments": json.dumps(arguments)}
        calls = [{"id": f"call_{call}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": "", "reasoning_content": plan, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"call_{call}", "name": "stock", "content": output})
    plan = f"{' + '.join(map(str, question.parts.values()))} = {result}. {rng.choice(THOUGHTS)}"
    closing = _closing(result, question.unit)
    pieces.append((f"<think>\n{plan}\n</think>\n{closing}<|im_end|>", True))
    messages.append({"role": "assistant", "content": closing, "reasoning_content": plan})
    return Answer(pieces, messages)


def _closing(result: int, unit: str) -> str:
    return f"There are \\boxed{{{result}}} {unit}."


def _prose(rng: random.Random, lines: Sequence[str]) -> str:
    return "".join(line + rng.choice([" ", " ", "\n"]) for line in lines).strip()


def _chat(messages: Sequence[Message]) -> str:
    turns = [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages]
    return "".join(turns) + "<|im_start|>assistant\n"


@cache
def tokenizer() -> Any:
    """Return a byte-level BPE tokenizer trained on this module's texts; emoji and Chinese take several tokens each."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator(_corpus(), trainer)
    return trained


def _corpus() -> list[str]:
    rng = random.Random(0)
    questions = [question(rng, uses_tools) for uses_tools in [False, True] * 30]
    texts = [item.text for item in questions] + THOUGHTS + PLANS
    texts += [piece for item in questions for piece, _ in answer(rng, item, True, 2).pieces]
    return ["".join(letter for letter in text if letter.isascii()) for text in texts]


def write_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer().save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
