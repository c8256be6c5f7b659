"""The columns of the tables on screen: their order and widths, and how a value is written.

What the columns of the steps and samples are, is said in core/tables/columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from dumptui.core.tables.columns import (
    ENTRY_PREFIX,
    SAMPLE_COLUMNS,
    STEP_COLUMNS,
    ColumnDefinition,
    Format,
    entry_column,
    is_of_difference,
)
from dumptui.core.tables.view_columns import (
    DISTRIBUTION_COLUMNS,
    FINDING_COLUMNS,
    GROUP_COLUMNS,
    PROMPT_COLUMNS,
    TIMELINE_COLUMNS,
    TOOL_COLUMNS,
    TRAIN_FILE_COLUMNS,
)
from dumptui.core.text import cell_width, visible
from dumptui.core.types import Record
from dumptui.tui.cell_formats.tables import number
from dumptui.tui.widgets.table.layout import Column

Write = Callable[[object], str]
LEFT_KINDS = ("text", "list")
MIN_ENTRY_CELLS, MAX_ENTRY_CELLS = 6, 14
MIN_CELLS = 4  # cells of a number without its decimals


@dataclass(frozen=True, slots=True)
class Field:
    """A column of records: `key` names the entry, `default` whether it is shown before all are asked for."""

    key: str
    label: str
    width: int
    write: Write
    tip: str
    default: bool = True
    right: bool = True
    exact: bool = False

    @property
    def column(self) -> Column:
        return Column(self.key, self.label, self.width, self.right, self.tip, self.exact)


def fixed(decimals: int, sign: str = "") -> Write:
    """`decimals` places, so that a column lines up; an exponent where that would show nothing of the number."""

    def write(value: object) -> str:
        if value is None:
            return "-"
        if not isinstance(value, (int, float)):
            return str(value)
        if not math.isfinite(value) or abs(value) >= 1e5 or 0 < abs(value) < 0.5 * 10**-decimals:
            return number(float(value)) if value == 0 or not math.isfinite(value) else f"{value:.0e}"
        return f"{value:{sign}.{decimals}f}"

    return write


def significant(value: object) -> str:
    """Four decimals, of large and of small numbers four digits."""
    if not isinstance(value, (int, float)):
        return "-" if value is None else str(value)
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.3g}"


def spread(value: object) -> str:
    """A standard deviation: of equal float32 values it is the residue of rounding, and reads 0."""
    return fixed(3)(0.0 if isinstance(value, float) and value < 1e-6 else value)


def whole(value: object) -> str:
    return "-" if value is None else str(value)


def percent(value: object) -> str:
    return "-" if value is None else f"{float(value):.0%}" if isinstance(value, (int, float)) else str(value)


def odd_count(value: object) -> str:
    """How many values are NaN or infinite: nothing for none, so that others catch the eye."""
    return "-" if value is None else str(value) if value else ""


def yes(value: object) -> str:
    return "-" if value is None else "yes" if value else ""


def size(value: object) -> str:
    if not isinstance(value, (int, float)):
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def listed(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else whole(value)


def reward(value: object) -> str:
    """A reward as a number, or the keys of a dict from which none is chosen."""
    if isinstance(value, Mapping):
        return "{" + visible(",".join(map(str, value))) + "}"
    return fixed(2)(value)


def reward_in_full(value: object) -> str:
    """A reward as a number, or the entries of a dict with their values."""
    if not isinstance(value, Mapping):
        return reward(value)
    return "{" + visible(", ".join(f"{name} {fixed(2)(one)}" for name, one in value.items())) + "}"


WRITERS: dict[str, Callable[[Format], Write]] = {
    "whole": lambda _: whole,
    "text": lambda _: whole,
    "fixed": lambda how: fixed(how.decimals, "+" if how.signed else ""),
    "spread": lambda _: spread,
    "percent": lambda _: percent,
    "flag": lambda _: yes,
    "odd count": lambda _: odd_count,
    "reward": lambda _: reward,
    "significant": lambda _: significant,
    "size": lambda _: size,
    "list": lambda _: listed,
}


def field_of(column: ColumnDefinition, width: int | None) -> Field:
    """Return a column as it is drawn; without a `width`, in the cells that its label and its numbers need."""
    cells = width or max(cell_width(column.label), MIN_CELLS + column.format.decimals)
    write = WRITERS[column.format.kind](column.format)
    at_first = column.shown == "at first"
    is_name = column.format.kind == "whole" and not column.unit
    right = column.format.kind not in LEFT_KINDS
    return Field(column.name, column.label, cells, write, column.tip, at_first, right, is_name)


def fields_of(columns: Sequence[ColumnDefinition], widths: Mapping[str, int]) -> tuple[Field, ...]:
    """Return the columns that a table on screen can show: in the order of `widths`, then those without a width."""
    place = {name: number for number, name in enumerate(widths)}
    drawn = sorted(columns, key=lambda column: place.get(column.name, len(place)))
    return tuple(field_of(column, widths.get(column.name)) for column in drawn if column.shown != "never")


STEPS = fields_of(
    STEP_COLUMNS,
    {
        "label": 7,
        "samples": 4,
        "reward_mean": 6,
        "mean_abs_lp_diff": 7,
        "response_length_mean": 5,
        "truncated_frac": 5,
        "mean_entropy": 5,
        "zero_std_frac": 5,
        "staleness_mean": 5,
        "reward_episode_mean": 7,
        "max_abs_lp_diff": 8,
        "mixed_version_frac": 5,
        "train_samples": 5,
        "not_finite": 7,
        "state": 10,
    },
)

SAMPLES = fields_of(
    SAMPLE_COLUMNS,
    {
        "label": 6,
        "group_index": 5,
        "shown_reward": 6,
        "response_length": 5,
        "flags": 8,
        "mean_abs_lp_diff": 6,
        "max_abs_lp_diff": 7,
        "mean_imp_ratio": 6,
        "mean_entropy": 5,
        "adv_mean": 6,
        "turns": 5,
        "staleness": 5,
        "tool_calls": 5,
        "non_generation_time": 6,
        "raw_reward": 7,
        "reward_entry": 8,
        "truncated": 5,
        "not_finite": 7,
        "versions": 9,
        "status": 10,
        "dataset": 3,
        "remove_sample": 7,
        "total_length": 6,
        "effective_length": 7,
        "normalized_reward": 7,
        "weight_version": 7,
        "weight_version_min": 6,
        "prefill_weight_version_min": 6,
        "prefill_lag": 8,
        "mixed_version": 5,
        "spec_accept_rate": 6,
        "prefix_cache_hit_rate": 6,
        "max_entropy": 7,
        "ref_entropy_mean": 6,
        "adv_std": 7,
        "return_mean": 7,
        "dumped_rank": 5,
        "micro_batch": 3,
        "optimizer_step": 3,
    },
)


def chosen(*keys: str) -> tuple[Field, ...]:
    """Columns of the samples table, in this order."""
    by_key = {field.key: field for field in SAMPLES}
    return tuple(by_key[key] for key in keys)


GROUPS = fields_of(
    GROUP_COLUMNS,
    {
        "label": 5,
        "strip": 16,
        "spread": 11,
        "n": 2,
        "reward_mean": 6,
        "reward_std": 6,
        "pass_at_1": 6,
        "pass_at_k": 6,
        "response_length_mean": 5,
        "truncated_frac": 5,
        "mean_abs_lp_diff": 7,
        "not_finite": 7,
        "dataset": 3,
    },
)

MEMBERS = (
    *chosen("label"),
    Field(
        "compared_reward",
        "reward",
        6,
        reward,
        "the trainer's raw reward if dumped, else Sample.reward; of dicts the chosen entry",
    ),
    *chosen("response_length", "flags"),
    Field("expected", "label", 10, whole, "Sample.label, such as the expected answer", right=False),
    Field("tail", "end of the response", 40, whole, "the end of the response, where an answer stands", right=False),
    *chosen("mean_abs_lp_diff", "max_abs_lp_diff", "adv_mean", "turns"),
)

BATCH_FILES = fields_of(
    TRAIN_FILE_COLUMNS,
    {
        "file": 12,
        "rank": 5,
        "dp_shard": 3,
        "cp": 6,
        "rows": 5,
        "tokens": 9,
        "bytes": 9,
        "status": 12,
        "fields": 60,
    },
)

BATCH_COLUMNS = fields_of(
    DISTRIBUTION_COLUMNS,
    {
        "name": 17,
        "mean": 9,
        "std": 9,
        "low": 9,
        "median": 9,
        "p99": 9,
        "high": 9,
        "count": 9,
        "samples": 7,
        "not_finite": 7,
        "reason": 30,
    },
)

BATCH_SAMPLES = chosen(
    "label",
    "group_index",
    "raw_reward",
    "flags",
    "dumped_rank",
    "micro_batch",
    "optimizer_step",
    "normalized_reward",
    "effective_length",
    "mean_abs_lp_diff",
    "max_abs_lp_diff",
    "mean_imp_ratio",
    "mean_entropy",
    "max_entropy",
    "ref_entropy_mean",
    "adv_mean",
    "adv_std",
    "return_mean",
)


TOOLS = fields_of(
    TOOL_COLUMNS,
    {
        "tool": 16,
        "calls": 5,
        "failed": 6,
        "samples": 7,
        "reward_mean": 6,
        "reward_failed": 9,
        "reward_ok": 6,
        "samples_failed": 8,
        "samples_ok": 5,
        "no_result": 9,
    },
)

PROMPTS = fields_of(
    PROMPT_COLUMNS,
    {"change": 16, "rates": 15, "last_label": 7, "solved": 6, "rewarded": 4, "prompt": 80, "steps": 5},
)

TIMELINE = fields_of(
    TIMELINE_COLUMNS,
    {"label": 6, "reward": 6, "status": 9, "tool_calls": 5, "failed": 6, "ended": 6, "lane": 20, "span_calls": 6},
)

HEALTH = fields_of(FINDING_COLUMNS, {"label": 9, "level": 7, "file": 22, "problem": 70})


def used_entries(rows: Sequence[Record]) -> set[str]:
    """Return the entries of dicts that the rewards of samples are."""
    return {str(entry) for row in rows if (entry := row.get("reward_entry")) is not None}


def entry_fields(rows: Sequence[Record]) -> list[Field]:
    """Return the columns of the entries of rewards that are dicts, but for the one that is used as the reward."""
    used = set(map(entry_column, used_entries(rows)))
    names = [name for name in (rows[0] if rows else ()) if name.startswith(ENTRY_PREFIX) and name not in used]
    return [entry_field(name) for name in names]


def entry_field(name: str) -> Field:
    label = visible(name.removeprefix(ENTRY_PREFIX))
    width = max(MIN_ENTRY_CELLS, min(cell_width(label), MAX_ENTRY_CELLS))
    return Field(name, label, width, fixed(2), f"the entry {label} of the reward; in filters {visible(name)}")


def cells(fields: Sequence[Field], record: Record) -> list[str]:
    return [field.write(record.get(field.key)) for field in fields]


Shown: TypeAlias = list[str] | str
"""Which columns of a table are shown: "default", "all" or a list of keys."""


def chosen_fields(fields: Sequence[Field], shown: Shown) -> list[Field]:
    """The first field, which names the row, is always there."""
    if isinstance(shown, list):
        return [field for at, field in enumerate(fields) if not at or field.key in shown]
    return [field for field in fields if field.default or shown == "all"]


DIVERGENCE = frozenset(column.name for column in SAMPLE_COLUMNS if is_of_difference(column))
"""What is made of the difference between trainer and engine."""

Sort: TypeAlias = tuple[tuple[str, bool], ...]
"""Columns to sort by, the most important first, each with whether it descends."""


def order(records: Sequence[Record], sort: Sort) -> list[int]:
    """Row numbers in the order of `sort`; rows that are equal in all of it stay in file order."""
    found = list(range(len(records)))
    for key, descending in reversed(sort):
        found = order_by(found, [sort_value(records[at], key) for at in found], descending)
    return found


def sort_value(record: Record, key: str) -> object:
    """A divergence that is NaN or infinite at some token is larger than any other."""
    return math.inf if key in DIVERGENCE and record.get("diff_not_finite") else record.get(key)


def order_by(rows: Sequence[int], values: Sequence[object], descending: bool) -> list[int]:
    """Numbers, then texts, blanks and NaN last in both directions; rows with equal values stay as they are."""
    numbers: list[tuple[float, int]] = []
    texts: list[tuple[str, int]] = []
    blank: list[int] = []
    for row, value in zip(rows, values, strict=True):
        if isinstance(value, (bool, int, float)) and value == value:
            numbers.append((value, row))
        elif value is None or value == "" or value != value:
            blank.append(row)
        else:
            texts.append((str(value), row))
    numbers.sort(key=itemgetter(0), reverse=descending)
    texts.sort(key=itemgetter(0), reverse=descending)
    return [row for _, row in numbers] + [row for _, row in texts] + blank
