"""The packing of a step in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dumptui.core.step.step import Step
from dumptui.core.tables import steps
from dumptui.core.tables.packing import LeftOut, Load, imbalance, worst_imbalance
from dumptui.core.text import plural, visible
from dumptui.core.types import Record

MAX_LISTED_SHARDS = 4  # shards whose tokens are listed one by one
MAX_NAMED_SAMPLES = 8  # samples that are listed by name


def shards_text(loads: Sequence[Load]) -> Text:
    """Return the tokens of the data-parallel shards, and the ratio of the largest to their mean."""
    text = Text().append("tokens", "bold")
    tokens = [load.tokens for load in loads]
    if not tokens:
        return text.append(" -: no train files")
    if len(tokens) <= MAX_LISTED_SHARDS:
        text.append("".join(f"  dp {shard} {number:,}" for shard, number in enumerate(tokens)))
    else:
        text.append(f" per DP shard {range_text(tokens)}")
    return text.append(f" · {max_over_mean(imbalance(tokens))}" if len(tokens) > 1 else "")


def micro_text(loads: Sequence[Load]) -> Text:
    """Return the micro-batches, or the reason why they are unknown."""
    reasons = list(dict.fromkeys(load.reason for load in loads if load.reason is not None))
    sizes = [size for load in loads for size in load.micro_batches or ()]
    if not sizes:
        return Text().append("micro-batches", "bold").append(f" -: {reasons[0] if reasons else 'no train files'}")
    counts = [len(load.micro_batches) for load in loads if load.micro_batches is not None]
    noun = "micro-batch" if max(counts) == 1 else "micro-batches"
    text = Text().append(f"{range_text(counts)} {noun}", "bold").append(" per DP shard")
    steps = {len(load.steps) for load in loads if load.steps is not None}
    if len(steps) == 1:
        text.append(f" in {plural(steps.pop(), 'optimizer step')}")
    text.append(f" · tokens {range_text(sizes)}")
    if len(sizes) > 1:
        text.append(f", {max_over_mean(imbalance(sizes))}")
    if any(load.steps is not None and len(load.steps) > 1 for load in loads):
        text.append(f" · worst step across DP shards {max_over_mean(worst_imbalance(loads))}")
    return text.append(f" · {reasons[0]}" if reasons else "", "bold")


def left_out_text(groups: Sequence[LeftOut], table: Sequence[Record]) -> Text:
    """Return the samples that were not trained, by reason; `table` has the rows of the samples table."""
    text = Text().append("not trained", "bold")
    if not groups:
        return text.append("  none")
    reasons = []
    for group in groups:
        names = [str(table[position]["label"]) for position in group.positions[:MAX_NAMED_SAMPLES]]
        more = " …" if len(group.positions) > MAX_NAMED_SAMPLES else ""
        reasons.append(f"{len(group.positions)} {group.fact}: {visible(' '.join(names))}{more}")
    return text.append("  " + " · ".join(reasons))


def range_text(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def max_over_mean(excess: float) -> str:
    return f"max/mean {1 + excess:.2f}"


def cp_text(row: Record) -> str:
    return "-" if row["cp_size"] is None else f"{row['cp_rank']} of {row['cp_size']}"


def summary(step: Step) -> Text:
    """Return what was trained, from how many files, in which layout."""
    text = Text().append(str(step.files.key), "bold")
    if step.files.key.evaluation:
        return text.append(" · evals have no train batch")
    text.append(
        f" · trained on {step.trained} of {len(step.samples)} samples · {plural(len(step.files.shards), 'file')}"
    )
    if groups := step.alignment.groups:
        sizes = sorted({group.cp_size for group in groups})
        formats = sorted({shard.qkv_format or "format not recorded" for shard in step.shards})
        known = "layout inferred" if any(group.inferred for group in groups) else "layout recorded"
        text.append(
            f": dp {len(groups)} x cp {'/'.join(map(str, sizes))} ({known}) · {', '.join(map(visible, formats))}"
        )
    if reason := steps.train_reason(step):
        text.append(f" · {visible(reason)}", "bold")
    if orphans := step.alignment.orphans:
        text.append(f" · {len(orphans)} train rows match no sample: {visible(orphans[0])}", "bold")
    return text
