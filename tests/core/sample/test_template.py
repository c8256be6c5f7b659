"""Chat templates: the messages of a text are found, none of its characters is lost, and nothing unclear is split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.sample.chat_templates import CHAT_TEMPLATES, Template, find_template

BY_NAME = {template.name: template for template in CHAT_TEMPLATES}

# As the models' public templates write them.
CHATML = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n"
    "<think>\nhm\n</think>\n\n42<|im_end|>\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n"
)
LLAMA = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user"
    "<|end_header_id|>\n\nHow many?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nf()<|eom_id|>"
    "<|start_header_id|>ipython<|end_header_id|>\n\n42<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
)
GEMMA = (
    "<bos><start_of_turn>user\nHow many?<end_of_turn>\n<start_of_turn>model\n42<end_of_turn>\n"
    "<start_of_turn>user\nSure?<end_of_turn>\n<start_of_turn>model\n"
)
KIMI = (
    "<|im_system|>system<|im_middle|>Be kind.<|im_end|><|im_user|>user<|im_middle|>How many?<|im_end|>"
    "<|im_assistant|>assistant<|im_middle|><think></think>42<|im_end|><|im_assistant|>assistant<|im_middle|>"
)
GLM = (
    "[gMASK]<sop><|system|>\nBe kind.<|user|>\nHow many?<|assistant|>\n<think></think>\n<tool_call>f</tool_call>"
    "<|observation|>\n<tool_response>\n42\n</tool_response><|assistant|>\n<think></think>"
)
DEEPSEEK = (
    "<｜begin▁of▁sentence｜>Be kind.<｜User｜>How many?<｜Assistant｜></think>"
    "<｜tool▁calls▁begin｜>f<｜tool▁calls▁end｜><｜end▁of▁sentence｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>4<｜tool▁output▁end｜>"
    "\n<｜tool▁output▁begin｜>2<｜tool▁output▁end｜><｜tool▁outputs▁end｜>42<｜end▁of▁sentence｜><｜User｜>Sure?<｜Assistant｜><think>\n"
)
MISTRAL = (
    "<s>[SYSTEM_PROMPT]Be kind.[/SYSTEM_PROMPT][AVAILABLE_TOOLS] [][/AVAILABLE_TOOLS][INST]How many?[/INST]"
    '[TOOL_CALLS] [{"name": "f"}]</s>[TOOL_RESULTS] {"content": 42}[/TOOL_RESULTS]42</s>[INST]Sure?[/INST]'
)
TEXTS = {
    "ChatML": (CHATML, "system user assistant user"),
    "Llama": (LLAMA, "system user assistant tool"),
    "Gemma": (GEMMA, "user assistant user"),
    "Kimi": (KIMI, "system user assistant"),
    "GLM": (GLM, "system user assistant tool"),
    "DeepSeek": (DEEPSEEK, "system user assistant tool tool assistant user"),
    "Mistral": (MISTRAL, "system tools user assistant tool assistant user"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_messages_of_each_template_are_found(name: str) -> None:
    text, roles = TEXTS[name]
    assert find_template(text) is BY_NAME[name]
    sections = BY_NAME[name].split(text)
    assert [one.role for one in sections] == roles.split()
    assert "".join(one.text for one in sections) == text
    assert next(one.content for one in sections if one.role == "user") == "How many?"
    assert all(one.content == "Be kind." for one in sections if one.role == "system")
    assert sections[0].before.startswith(text[:5]) and text.endswith(sections[-1].after)


def test_the_opening_for_the_answer_belongs_to_the_message_before_it() -> None:
    asked = "<|im_start|>user\nHow many?<|im_end|>\n"
    for opened in ("", "<think>\n", "<think>\n\n</think>\n\n"):
        [one] = BY_NAME["ChatML"].split(f"{asked}<|im_start|>assistant\n{opened}")
        assert one.after == f"<|im_end|>\n<|im_start|>assistant\n{opened}"
    begun = BY_NAME["ChatML"].split(f"{asked}<|im_start|>assistant\nThe answer")
    assert [one.content for one in begun] == ["How many?", "The answer"]


@pytest.mark.parametrize(
    "text",
    [
        "What is 1+1?",
        "",
        "before <|im_start|>user\nHow many?<|im_end|>\n",
        "<|im_start|>user\nHow many?",
        "<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>user\nand",
        "<|im_start|>user\nWhat does <|im_start|>user\nmean?<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>user\nWhat does <|im_end|> mean?<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>user How many?<|im_end|>\n",
        "<|start_header_id|>user\n\nHow many?<|eot_id|>",
        "<start_of_turn>user\nHow<start_of_turn>model\n<end_of_turn>",
        "[INST] a [INST] b [/INST]",
        "[INST] How many?",
        "<|user|>\na<|user|>\nb<|assistant|>\n",
        "<｜begin▁of▁sentence｜>the beginning of a text",
        "<｜User｜>a<｜User｜>b<｜Assistant｜>",
    ],
)
def test_what_is_no_clean_template_is_not_split(text: str) -> None:
    assert find_template(text) is None


def test_a_response_goes_on_in_the_template_of_its_prompt() -> None:
    said = "call<|im_end|>\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\nIt is 4"
    sections = BY_NAME["ChatML"].split(said, continued=True)
    assert [(one.role, one.content) for one in sections] == [
        ("assistant", "call"),
        ("tool", "42"),
        ("assistant", "It is 4"),
    ]
    cut = BY_NAME["ChatML"].split(said[:-31], continued=True)
    assert [one.role for one in cut] == ["assistant", "tool"] and "".join(one.text for one in cut) == said[:-31]
    stopped = BY_NAME["GLM"].split("call<|observation|>\n42<|assistant|>\ndone<|user|>", continued=True)
    assert [one.role for one in stopped] == ["assistant", "tool", "assistant"] and stopped[-1].after == "<|user|>"


PIECES = [
    *("<|im_start|>", "<|im_end|>", "user\n", "assistant\n", "<|start_header_id|>user<|end_header_id|>", "<|eot_id|>"),
    *("<start_of_turn>model\n", "<end_of_turn>", "<|user|>", "<|assistant|>\n", "<|observation|>", "[gMASK]<sop>"),
    *("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜tool▁output▁begin｜>"),
    *("<｜tool▁output▁end｜>", "<｜tool▁outputs▁begin｜>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "<|im_user|>user<|im_middle|>", "<think>", "</think>", "\n", " ", "a", "世", "<", "["),
]


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from(CHAT_TEMPLATES), st.booleans())
def test_joining_the_messages_gives_the_text_again(text: str, template: Template, continued: bool) -> None:
    sections = template.split(text, continued=continued)
    assert not sections or "".join(one.text for one in sections) == text
    assert all(one.text for one in sections)


@given(st.data(), st.sampled_from(list(TEXTS)))
def test_a_text_cut_or_damaged_is_whole_or_not_split(data: st.DataObject, name: str) -> None:
    text = TEXTS[name][0]
    start = data.draw(st.integers(0, len(text)))
    damaged = text[:start] + text[data.draw(st.integers(start, len(text))) :]
    for continued in (False, True):
        sections = BY_NAME[name].split(damaged, continued=continued)
        assert not sections or "".join(one.text for one in sections) == damaged


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.text("ab \n世<|[>", max_size=30)))
)
def test_messages_put_into_the_template_come_out_of_it(messages: list[tuple[str, str]]) -> None:
    messages = [(role, said) for role, said in messages if said.strip()]
    text = "".join(f"<|im_start|>{role}\n{said}<|im_end|>\n" for role, said in messages) + "<|im_start|>assistant\n"
    sections = BY_NAME["ChatML"].split(text)
    assert not messages or [(one.role, one.content) for one in sections] == messages
