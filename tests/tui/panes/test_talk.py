"""The Conversation pane and a sample's facts, used as a person does."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from textual.pilot import Pilot

from dumptui.core.files.step_files import StepKey
from dumptui.core.run.run import Run
from dumptui.tui.app.app import DumpTui
from dumptui.tui.presentation.conversation import ConversationViews
from dumptui.tui.screens.facts import FactsScreen
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.heatmap.heatmap import Heatmap
from tests.support.reading import read
from tests.support.screen import Terminal, foreign, press, run, tab, text, until, until_shown
from tests.support.writer import sample, write_step

Session: TypeAlias = tuple[DumpTui, Pilot[None]]


@asynccontextmanager
async def opened(root: Path, *, size: tuple[int, int] = (100, 40), **where: Any) -> AsyncIterator[Session]:
    app = DumpTui(Run.open(root), **where)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: not app.wait.waiting)
        yield app, pilot


async def go(app: DumpTui, pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await press(pilot, key)
        await until(pilot, lambda: not app.wait.waiting)


def talking(root: Path, *messages: dict[str, Any], **fields: Any) -> None:
    row = {"sample_index": 0, "status": "completed", "messages": messages}
    write_step(root, 0, [sample(0, **fields), sample(1)], trajectory=[row])


def said(text: str, role: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def current(app: DumpTui) -> int:
    return app.conversation.blocks.current


# Conversation -----------------------------------------------------------------------------------------------------


async def test_a_tab_keeps_step_and_sample_and_escape_goes_back(shared: Path) -> None:
    async with opened(shared / "runs/multiturn", size=(120, 40), key=StepKey(2), sample=(25, 1)) as (app, pilot):
        await go(app, pilot, tab("conversation"))
        await until_shown(
            pilot, "sample 25.1 · step 2 · group 6, 3 of 5", "matched by order", "5 messages · 1 tool call"
        )
        await until_shown(pilot, "▸ 0 system", "▾ 1 user", "thinking", "call lookup · result in 3", "▸ 3 tool · lookup")
        await go(app, pilot, tab("tokens"))
        await until_shown(pilot, "sample 25.1", "Δ against position")
        await go(app, pilot, tab("conversation"), "escape")
        assert app.pane == "rollout"


async def test_n_and_p_go_along_the_samples_and_N_and_P_along_the_group(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), sample=(92, 0), pane="conversation") as (app, pilot):
        await until_shown(pilot, "sample 92 · step 2 · group 23, 1 of 4")
        await go(app, pilot, "N", "N", "P")
        await until_shown(pilot, "sample 93 · step 2 · group 23, 2 of 4")
        before = app.rollout.current
        await go(app, pilot, "n", "p")
        assert app.rollout.current == before and app.pane == "conversation"
        await go(app, pilot, "P", "P")
        await until_shown(pilot, "no further sample in group 23")
        await go(app, pilot, "greater_than_sign")
        await until_shown(pilot, "step 3, 4 of 4", "sample 96")


async def test_between_a_message_and_its_tokens(shared: Path) -> None:
    async with opened(shared / "runs/multiturn", key=StepKey(2), sample=(25, 0), pane="conversation") as (app, pilot):
        await until_shown(pilot, "sample 25 ·")
        await go(app, pilot, "j", "j", "j", "j")
        where = app.conversation.shown.conversation.messages[4].where if app.conversation.shown else None
        assert where is not None
        await go(app, pilot, "t")
        heat = app.tokens.query_one(Heatmap)
        assert app.pane == "tokens" and heat.cursor == where.start
        await go(app, pilot, "g", "c")
        assert app.pane == "conversation" and current(app) == 0
        await go(app, pilot, "4", "3", "end", "c")
        assert current(app) == 8


async def test_what_has_no_place_among_the_tokens_says_so(tmp_path: Path) -> None:
    talking(tmp_path, said("go", "user"), said("one"), said("result", "tool"), said("two"))
    async with opened(tmp_path, pane="conversation") as (app, pilot):
        await until_shown(pilot, "▾ 3 assistant")
        await go(app, pilot, "end", "t")
        await until_shown(pilot, "the tokens of this message are unknown")
        assert app.pane == "conversation"
        await go(app, pilot, "home", "enter")
        await until_shown(pilot, "somewhere in the prompt")
        assert app.pane == "tokens"


async def test_percent_goes_from_a_call_to_its_result_and_back(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), sample=(95, 0), pane="conversation") as (app, pilot):
        await until_shown(pilot, "call stock · result in 3")
        places = []
        for key in ("percent_sign", "j", "j", "percent_sign", "percent_sign", "j", "percent_sign"):
            await go(app, pilot, key)
            places.append(current(app))
        assert places == [0, 1, 2, 3, 2, 3, 2]
        await until_shown(pilot, "this message has no matching")


async def test_long_parts_fold_and_markdown_is_drawn(tmp_path: Path) -> None:
    long = "\n".join(f"row {at}" for at in range(132))
    talking(tmp_path, said(long, "user"), said("# Head\n\n- *one* [x](http://e.org/\x1b)\n"), said("x", "tool"))
    async with opened(tmp_path, pane="conversation") as (app, pilot):
        await until_shown(pilot, "… 120 more lines", "# Head", "▸ 2 tool · no call")
        await go(app, pilot, "space")
        await until(pilot, lambda: "row 30" in text(app))
        await go(app, pilot, "space")
        await until_shown(pilot, "▸ 0 user  row 0")
        await go(app, pilot, "z")
        await until_shown(pilot, "row 30")
        await go(app, pilot, "z", "j", "M")
        await until(pilot, lambda: "# Head" not in text(app) and "Head" in text(app))
        await until_shown(pilot, "• one x (http://e.org/")
        await go(app, pilot, "M")
        await until_shown(pilot, "# Head")


async def test_a_sample_without_conversation_shows_its_turns(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), sample=(65, 0), pane="conversation") as (_, pilot):
        await until_shown(
            pilot,
            "the trajectory file has no conversation of",
            "▾ 0 user  <|im_start|>user⏎",
            "▾ 1 assistant",
            "thinking",
            "<|im_end|>",
        )


def span(version: str, start: int, stop: int) -> dict[str, Any]:
    return {"version": version, "abs_start": start, "abs_end": stop}


@pytest.mark.parametrize(
    ("versions", "shown"),
    [
        (["3", "4"], ["v3", "v4"]),
        (["3", "4", "5"], ["", ""]),
        ([{"spans": [span("9", 4, 5)]}, {"spans": [span("10", 5, 6)]}], ["v9–v10", ""]),
        ([[span("4", 4, 6)], [span("4", 7, 8)], [span("3", 8, 9)]], ["v4", "v3–v4"]),
        ([[span("b", 4, 6)], [span("a", 7, 8), span("c", 8, 9)]], ["vb", "va–vc"]),
    ],
    ids=["a call a message", "other calls", "a message of two calls", "three calls", "texts"],
)
def test_the_versions_of_a_message_are_those_of_its_tokens(tmp_path: Path, versions: Any, shown: list[str]) -> None:
    """A partial rollout writes one message in several calls, each with its weights."""
    messages = [said("go", "user"), said("one"), said("result", "tool"), said("two")]
    talking(tmp_path, *messages, response_len=5, loss_mask=[1, 1, 0, 1, 1], weight_versions=versions)
    step = read(tmp_path)
    asides = [one.aside for one in ConversationViews().open(step, 0, None).blocks]
    assert [aside.partition("tokens")[0].rstrip(" ·") for aside in (asides[1], asides[3])] == shown


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_a_broken_step_and_a_small_screen_are_survived(shared: Path, size: tuple[int, int]) -> None:
    async with opened(shared / "runs/broken", size=size, pane="conversation") as (app, pilot):
        for _ in range(5):
            await go(app, pilot, "less_than_sign", "j", "space", "z", "t", "c")
        assert app.is_running


async def test_hostile_text_stands_in_visibly(shared: Path) -> None:
    async with opened(shared / "runs/odd", key=StepKey(0), sample=(1, 0), pane="conversation") as (app, pilot):
        await until_shown(
            pilot, "[bold red]markup[/bold red] [/]", "call run[bold] · result in 2", "image_url", "4 no role"
        )
        await until_shown(pilot, "image/png, 3 B", "(empty)", r"\u001b[31mred")
        await go(app, pilot, "j", "j", "space")
        await until_shown(pilot, "tab⇥cr␍nl", "nul␀bel␇del␡ c1‹009b›31m line‹2028›sep")
        await go(app, pilot, "i")
        await until_shown(pilot, "sample 1: all dumped fields")
        shown = text(app)
        assert not any(one < " " and one != "\n" for one in shown) and "\x9b" not in shown


async def test_2000_messages_and_one_of_a_megabyte_make_nobody_wait(tmp_path: Path) -> None:
    """What the event loop spends on showing and on each key; the limits are four times what it takes alone."""
    many = []
    for at in range(700):
        call = {"id": f"c{at}", "function": {"name": "f", "arguments": json.dumps({"code": "x = 1\n" * 20})}}
        many.append(said("some words of it " * 40, reasoning_content="thoughts " * 60, tool_calls=[call]))
        many += [said("line of output\n" * 60, "tool", tool_call_id=f"c{at}"), said("继续 please " * 20, "user")]
    talking(tmp_path, *many, said("a line of many\n" * 40_000 + "word " * 100_000))
    async with opened(tmp_path) as (app, pilot):
        await go(app, pilot, tab("conversation"))
        assert app.conversation.shown is not None and len(app.conversation.shown.blocks) == 2101
        gc.collect()
        gc.freeze()  # else a pause of the collector, for torch's objects, counts as ours
        spent = {}
        for key in ("j", "pagedown", "end", "pageup", "home", "space", "z", "end", "l", "pagedown", "k"):
            start = time.thread_time()
            await press(pilot, key)
            spent[key] = time.thread_time() - start
        start = time.thread_time()
        app.conversation.blocks.show(app.conversation.shown.blocks)
        spent["show"] = time.thread_time() - start
        gc.unfreeze()
        assert max(spent.values()) < 0.4, spent


# Facts ------------------------------------------------------------------------------------------------------------


async def test_i_tells_everything_in_any_pane(tmp_path: Path) -> None:
    reward = {"score": 0.5, "parts": {"format": 1}}
    metadata = {"source": "hotpot", "lifecycle": [{"t0": 1.0, "t1": 3.5, "turn": 1}, {"t0": 4.0, "t1": 5.0, "turn": 2}]}
    more: dict[str, Any] = {"weight_versions": ["3", "4"], "non_generation_time": 0.5, "custom_key": {"a": [1, 2]}}
    write_step(tmp_path, 0, [sample(0, reward=reward, metadata=metadata, **more)])
    async with opened(tmp_path, size=(100, 60)) as (app, pilot):
        for name in ("rollout", "batch", "tokens", "conversation"):
            await go(app, pilot, tab(name), "i")
            await until_shown(pilot, "sample 0: all dumped fields")
            await go(app, pilot, "escape")
            assert app.pane == name
        await go(app, pilot, "i")
        await until(pilot, lambda: isinstance(app.screen, FactsScreen))
        await go(app, pilot, "z")
        await until_shown(pilot, '"score": 0.5')
        pages = text(app)
        for _ in range(4):
            await go(app, pilot, "pagedown")
            pages += text(app)
        for words in ("weights v3 · 2.500 s", "v4 · 1.000 s, 0.500 s after the previous call", "hotpot", "custom_key"):
            assert words in pages
        for words in ("train row", "loss_masks", "<int32[6]>", "a prompt", "a response"):
            assert words in pages
        assert app.screen.query_one(Blocks).has_focus


async def test_facts_of_one_sample_after_another(demo: Path) -> None:
    async with opened(demo, key=StepKey(2), size=(100, 40)) as (app, pilot):
        await go(app, pilot, "enter", "enter")
        await until_shown(pilot, "sample 64 · step 2")
        await go(app, pilot, "i", "j", "j", "n")
        await until_shown(pilot, "sample 65: all dumped fields")
        assert app.screen.query_one(Blocks).current == 2  # the same section
        await go(app, pilot, "N")
        await until_shown(pilot, "sample 66: all dumped fields")
        await go(app, pilot, "p", "p", "p", "P")
        await until_shown(pilot, "sample 64: all dumped fields", "no further sample in group 16")
        await go(app, pilot, "n", "escape")
        await until_shown(pilot, "sample 65 · step 2")
        assert app.pane == "tokens" and app.tokens.position == 1


def test_facts_are_printed(shared: Path) -> None:
    words = ["--print", "facts", "--step", "2", "--sample", "25.1", "--json"]
    document = json.loads(run(shared / "runs/multiturn", *words).stdout)
    facts = {(row["section"], row["name"]): row["value"] for row in document["rows"]}
    assert facts["trajectory file", "status"] == facts["sample", "status"]
    assert json.loads(facts["reward", "reward"]) == {"score": 0.0, "format": 1.0, "length_penalty": -0.125}
    assert facts["turns", "call 2"] == "weights v2 · tokens 167-239"
    assert facts["train row", "row"] == "3 of 7"
    assert run(shared / "runs/multiturn", "--print", "facts").returncode == 2


def test_in_a_terminal_nothing_of_a_dump_is_obeyed(shared: Path) -> None:
    with Terminal(shared / "runs/odd", "--step", "0", "--sample", "1", "--pane", "conversation") as terminal:
        terminal.until("call run[bold]")
        for key in ("z", "M", "j", "M", "j", "M", "n", "z", "i", "z", "end"):
            terminal.press(key)
            terminal.settle(0.1)
        terminal.press("escape")
        terminal.settle(0.3)  # or the terminal would take them for alt+q
        terminal.press("ctrl+c")
        assert terminal.end() == 0
        assert foreign(bytes(terminal.raw)) == []
        terminal.assert_clean()


async def test_a_late_answer_is_dropped(demo: Path) -> None:
    async with opened(demo, key=StepKey(2)) as (app, pilot):
        await press(pilot, "i")
        await press(pilot, "escape")
        await asyncio.sleep(0)
        await until(pilot, lambda: not app.wait.waiting)
        assert app.is_running and app.pane == "rollout"
