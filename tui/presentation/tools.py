"""The tools of a step and the lifecycles of its samples as sentences and lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from dumptui.core.files.step_files import StepKey
from dumptui.core.telemetry.lifecycle import ATTEMPT, Lifecycle
from dumptui.core.text import plural, visible
from dumptui.core.types import Record
from dumptui.tui.presentation import columns
from dumptui.tui.presentation.signs import PARTIAL_SIGN
from dumptui.tui.presentation.timeline import WAITING_WORD, lane_row, sign

Ends = tuple[float, float]


def tool_cells(row: Record) -> list[str]:
    """Return the cells of a row of the tools table: rewards that some samples lack have the sign of a part."""
    found = columns.cells(columns.TOOLS, row)
    if row["rewarded"] == row["samples"]:
        return found
    is_reward = [
        field.key.startswith("reward") and cell != "-" for field, cell in zip(columns.TOOLS, found, strict=True)
    ]
    return [PARTIAL_SIGN + cell if part else cell for part, cell in zip(is_reward, found, strict=True)]


def tools_title(key: StepKey, rows: Sequence[Record]) -> Text:
    """Return the calls of a step and their failures in a line."""
    text = Text().append(str(key), "bold")
    total = next((row for row in rows if row["scope"] == "any"), None)
    if total is None:
        return text.append(" · no tool call is recorded")
    calls, failed = int(str(total["calls"])), int(str(total["failed"]))
    text.append(f" · {plural(calls, 'tool call')} in {plural(int(str(total['samples'])), 'sample')}")
    return text.append(f" · {failed} failed ({failed / calls:.0%})", "bold" if failed else "")


def timeline_title(rows: Sequence[Record], lives: Mapping[int, Lifecycle], scope: str) -> Text:
    """Return which samples are listed, in which order, and what the signs of the lanes mean."""
    text = Text().append(plural(len(rows), "sample"), "bold").append(f" {visible(scope)}" if scope else "")
    found = [lives[at] for row in rows if isinstance(at := row["position"], int) and at in lives]
    if not found:
        return text.append(" · no lifecycle is recorded; most seconds in the environment first")
    begun, ended = axis(lives.values())
    kinds = dict.fromkeys(span.kind for life in found for span in life.inner)
    signs = [f"{sign(kind)} {visible(kind)}" for kind in kinds] + [f"{sign(ATTEMPT)} {WAITING_WORD}"]
    text.append(f" · last to end first · 0 to {ended - begun:.1f} s · {'  '.join(signs)}")
    shared = sum(bool(row["shared"]) for row in rows)
    return text.append(f" · {shared} share a lifecycle with another sample of their index" if shared else "")


def axis(lives: Iterable[Lifecycle]) -> Ends:
    """Return when the first lifecycle began and the last one ended."""
    known = list(lives)
    return min(life.t0 for life in known), max(life.t1 for life in known)


def lane_text(life: Lifecycle | None, width: int, ends: Ends) -> str:
    return "" if life is None or width < 1 else lane_row(life, width, ends)


def timeline_record(row: Record) -> Record:
    occurrence, index = row["occurrence"], row["sample_index"]
    return {**row, "label": "-" if index is None else f"{index}.{occurrence}" if occurrence else str(index)}


def is_in_scope(sample: Record, tool: Record) -> bool:
    """Whether a sample is one of those that a row of the tools table is about."""
    called = sample["tools"]
    if not isinstance(called, list):
        return tool["scope"] == "unknown"
    match tool["scope"]:
        case "tool":
            return tool["tool"] in called
        case "any":
            return bool(called)
        case scope:
            return scope == "none" and not called


def scope_words(tool: Record) -> str:
    """Return which samples a row of the tools table is about, to stand behind their number."""
    words = {"any": "with tool calls", "none": "without tool calls", "unknown": "without recorded messages"}
    return words.get(str(tool["scope"]), f"that called {tool['tool']}")
