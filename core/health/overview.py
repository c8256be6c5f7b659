"""The overview of a run: what is wrong with it, the worst first, each with the place to look at.

It is made of the rows of the steps table and of Health, as far as both are known. What Health says of a step replaces
what the row of the step says of its files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dumptui.core.files.step_files import StepKey
from dumptui.core.tables.alarms import alarms, is_partial
from dumptui.core.tables.columns import STEP_COLUMNS, ColumnDefinition, Severity
from dumptui.core.text import plural, sample_label
from dumptui.core.types import Record

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
LEVEL_SEVERITIES: dict[str, Severity] = {"error": "error", "warning": "warning", "info": "note"}

MOST_ALIKE = 3
"""Steps that have a row each for the same reason; of more, the worst has one and the others share one."""
ONE_TOKEN_SHARE = 0.25
"""From this share of the sum of |Δ| on, the overview says that one token carries it."""
SHORT_STEPS = 14
"""Characters of a list of steps above which their number is given instead."""

DIVERGENCE = next(column for column in STEP_COLUMNS if column.name == "mean_abs_lp_diff")
LAYOUT = "layout: "
"""How a row of Health begins that says how the run was laid out, which is no problem."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One row of the overview. Its first step, with a sample and a token of it, is where to look.

    `finding` is the row of Health that says it, None for what the steps table says. `magnitude` orders issues of one
    severity and reason.
    """

    severity: Severity
    keys: tuple[StepKey, ...]
    reason: str
    sample: tuple[int | None, int] | None = None
    token: int | None = None
    finding: Record | None = None
    magnitude: float = 0.0

    @property
    def where(self) -> str:
        return steps_in_words(self.keys)


def overview(rows: Mapping[StepKey, Record], findings: Sequence[Record] = (), *, complete: bool = False) -> list[Issue]:
    """Return the issues of a run, the worst first. `complete`: the findings are all that Health has."""
    covered = covered_steps(findings, complete)
    issues = [
        *alarm_issues(rows, covered),
        *(issue for key, row in rows.items() if key not in covered for issue in state_issues(key, row)),
        *finding_issues(findings),
        *eval_issues(rows),
    ]
    return sorted(issues, key=lambda issue: SEVERITIES.index(issue.severity))


def covered_steps(findings: Sequence[Record], complete: bool) -> set[StepKey]:
    """Return the steps of which Health has said what is wrong; once it is `complete`, all that it names."""
    said = [row for row in findings if complete or row["level"] != "info"]
    return {key for row in said if (key := key_of(row)) is not None and not str(row["problem"]).startswith(LAYOUT)}


def key_of(row: Record) -> StepKey | None:
    step = row["step"]
    return StepKey(step, bool(row["evaluation"])) if isinstance(step, int) else None


# Numbers beyond their limits ----------------------------------------------------------------------------------------


def alarm_issues(rows: Mapping[StepKey, Record], covered: set[StepKey]) -> Iterator[Issue]:
    """Yield an issue for each step, or for many of one kind, with a number beyond its limit: divergence first."""
    yield from divergence_issues(rows)
    for column in STEP_COLUMNS:
        if not column.alarm_sentence or column is DIVERGENCE:
            continue
        for evaluation in (False, True):
            known = {key: row for key, row in rows.items() if key.evaluation == evaluation}
            if column.name == "not_finite":
                known = {key: row for key, row in known.items() if key not in covered}
            yield from column_issues(column, known)


def column_issues(column: ColumnDefinition, rows: Mapping[StepKey, Record]) -> Iterator[Issue]:
    """Yield the steps with an alarm of a column, as one issue that goes to the worst of them."""
    found = sorted((key for key, row in rows.items() if column.name in alarms(row)), key=worst_first(column, rows))
    if not found:
        return
    worst = rows[found[0]]
    severity = column.severity(worst[column.name])
    assert severity is not None
    value = written(column, worst[column.name])
    reason = column.alarm_sentence.format(value)
    if len(found) > 1:
        reason = f"up to {reason}, the most at {found[0]}"
    if column.name != "not_finite":
        reason += f" ({limit_words(column)})"
    sample, token = place_in(worst, column.name) if column.name == "not_finite" else (None, None)
    if sample is not None:
        reason += f"; the first in sample {sample_label(*sample)}" + ("" if token is None else f" at #{token}")
    yield Issue(severity, tuple(found), reason, sample, token, magnitude=magnitude(worst[column.name]))


def divergence_issues(rows: Mapping[StepKey, Record]) -> Iterator[Issue]:
    """Yield the steps with the largest |Δ|; where no step is beyond the limit, the largest as a note."""
    known = {key: row for key, row in rows.items() if isinstance(row.get(DIVERGENCE.name), (int, float))}
    ordered = sorted(known, key=worst_first(DIVERGENCE, known))
    beyond = [key for key in ordered if DIVERGENCE.alarms(known[key][DIVERGENCE.name])]
    if not beyond:
        yield from (divergence_issue("note", key, known[key], "largest ") for key in ordered[: len(known) > 1])
        return
    single = beyond if len(beyond) <= MOST_ALIKE else beyond[:1]
    for key in single:
        severity = DIVERGENCE.severity(known[key][DIVERGENCE.name])
        assert severity is not None
        yield divergence_issue(severity, key, known[key])
    yield from other_divergences(beyond[len(single) :], known)


def divergence_issue(severity: Severity, key: StepKey, row: Record, before: str = "") -> Issue:
    value = row[DIVERGENCE.name]
    part = "~" if is_partial(DIVERGENCE, row) else ""
    reason = f"{before}|Δ| {part}{written(DIVERGENCE, value)}"
    share, over_tokens = row.get("worst_token_share"), row.get("token_mean_abs_lp_diff")
    if isinstance(share, float) and share >= ONE_TOKEN_SHARE:
        reason += f": one token carries {share:.0%} of the divergence"
    facts = [limit_words(DIVERGENCE)]
    if isinstance(over_tokens, float):
        facts.append(f"mean over tokens {written(DIVERGENCE, over_tokens)}")
    sample, token = place_in(row, "worst")
    return Issue(severity, (key,), f"{reason} ({', '.join(facts)})", sample, token, magnitude=magnitude(value))


def other_divergences(keys: Sequence[StepKey], rows: Mapping[StepKey, Record]) -> Iterator[Issue]:
    """Yield one issue for the steps behind the worst, by the worst of them."""
    if not keys:
        return
    value = rows[keys[0]][DIVERGENCE.name]
    severity = DIVERGENCE.severity(value)
    assert severity is not None
    reason = f"|Δ| up to {written(DIVERGENCE, value)} in {len(keys)} more, at {keys[0]} ({limit_words(DIVERGENCE)})"
    sample, token = place_in(rows[keys[0]], "worst")
    yield Issue(severity, tuple(keys), reason, sample, token, magnitude=magnitude(value))


def worst_first(column: ColumnDefinition, rows: Mapping[StepKey, Record]) -> Callable[[StepKey], tuple[float, StepKey]]:
    """Return a key to sort steps by: the largest value first, of equal ones the earliest step."""
    return lambda key: (-magnitude(rows[key][column.name]), key)


def magnitude(value: object) -> float:
    return number_of(value) or 0.0


def number_of(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def place_in(row: Record, name: str) -> tuple[tuple[int | None, int] | None, int | None]:
    """Return the sample that a row of the steps table names, by index and occurrence, and the token."""
    return place(*(row.get(f"{name}_{part}") for part in ("sample", "occurrence", "token")))


def place(index: object, occurrence: object, token: object) -> tuple[tuple[int | None, int] | None, int | None]:
    if not isinstance(occurrence, int):
        return None, None
    return (index if isinstance(index, int) else None, occurrence), token if isinstance(token, int) else None


def limit_words(column: ColumnDefinition) -> str:
    limit = column.alarm_limit
    return f"limit {limit:.0%}" if column.format.kind == "percent" else f"limit {limit:g}"


def written(column: ColumnDefinition, value: object) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:.0%}" if column.format.kind == "percent" else f"{value:.{column.format.decimals or 0}f}"


# Evals ---------------------------------------------------------------------------------------------------------------


def eval_issues(rows: Mapping[StepKey, Record]) -> Iterator[Issue]:
    """Yield what of the newest eval has a lower reward than in the eval before, the largest fall first."""
    evals = sorted(key for key in rows if key.evaluation and rows[key]["samples"])
    if len(evals) < 2:
        return
    before, newest = evals[-2:]
    earlier, found = rewards_of(rows[before]), []
    for name, part in rewards_of(rows[newest]).items():
        was, now = number_of(earlier.get(name, {}).get("reward_mean")), number_of(part["reward_mean"])
        if was is not None and (now is None or now < was):
            reward = "no reward" if now is None else f"reward {now:.3f} of {plural(part['rewarded'], 'sample')}"
            reason = f"{name}{reward}, was {was:.3f} at {before}"
            found.append(Issue("note", (newest,), reason, magnitude=was - (now or 0.0)))
    yield from sorted(found, key=lambda issue: -issue.magnitude)


def rewards_of(row: Record) -> dict[str, Record]:
    """Return the aggregates of each dataset of an eval by its name, or those of an eval with a single one."""
    datasets = row.get("datasets")
    if not isinstance(datasets, list):
        return {"": row}
    return {f"dataset {part['dataset']}: ": part for part in datasets}


# What the steps table says of the files -----------------------------------------------------------------------------


def state_issues(key: StepKey, row: Record) -> Iterator[Issue]:
    """Yield why a step is not whole, until Health says it."""
    if row["state"] == "ok" or not row["reason"]:
        return
    severity: Severity = "error" if row["samples"] is None and row["state"] == "unreadable" else "warning"
    yield Issue(severity, (key,), str(row["reason"]))


# What Health found --------------------------------------------------------------------------------------------------


def finding_issues(findings: Iterable[Record]) -> Iterator[Issue]:
    """Yield the findings of Health, one for the same problem in several steps or files."""
    alike: dict[tuple[object, ...], list[Record]] = {}
    for row in findings:
        if not str(row["problem"]).startswith(LAYOUT):
            alike.setdefault((row["level"], row["evaluation"], without_numbers(row)), []).append(row)
    yield from shorten([finding_issue(rows) for rows in alike.values()])


def without_numbers(row: Record) -> str:
    return re.sub(r"\d+", "", f"{row['file'] or ''} {row['problem']}")


def finding_issue(rows: Sequence[Record]) -> Issue:
    first = rows[0]
    keys = tuple(dict.fromkeys(key for row in rows if (key := key_of(row)) is not None))
    reason = f"{first['file']}: {first['problem']}" if first["file"] else str(first["problem"])
    if len(rows) > 1:
        reason += f" ({len(rows) - 1} more such)"
    sample, token = place_of(first)
    return Issue(LEVEL_SEVERITIES[str(first["level"])], keys, reason, sample, token, first)


def place_of(finding: Record) -> tuple[tuple[int | None, int] | None, int | None]:
    """Return the sample that a finding names, by index and occurrence, and the token."""
    return place(*(finding.get(name) for name in ("sample_index", "occurrence", "token")))


def shorten(issues: Sequence[Issue]) -> Iterator[Issue]:
    """Yield one issue in place of many that Health has of the same steps, with how many more it has."""
    same: dict[tuple[Severity, tuple[StepKey, ...]], list[Issue]] = {}
    for issue in issues:
        same.setdefault((issue.severity, issue.keys), []).append(issue)
    for (severity, keys), found in same.items():
        if keys and len(found) > 1:
            yield replace(found[0], reason=f"{found[0].reason}; {plural(len(found) - 1, f'more {severity}')} in Health")
        else:
            yield from found


# In words -----------------------------------------------------------------------------------------------------------


def steps_in_words(keys: Sequence[StepKey]) -> str:
    """Return such as "run", "step 2", "evals 0, 2" or "steps 3-40"; of a long list the number of steps."""
    if not keys:
        return "run"
    noun = "eval" if keys[0].evaluation else "step"
    if len(keys) == 1:
        return f"{noun} {keys[0].step}"
    ranges = ranges_of(sorted(key.step for key in keys))
    text = f"{noun}s {', '.join(ranges)}"
    return text if len(text) <= SHORT_STEPS else plural(len(keys), noun)


def ranges_of(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers 1, 2, 3 and 7 as "1-3" and "7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]


def record_of(issue: Issue) -> Record:
    """Return an issue as `--print overview` has it: `steps` are all it is about, `step` is the one to look at."""
    key = issue.keys[0] if issue.keys else None
    index, occurrence = issue.sample or (None, None)
    return {
        "severity": issue.severity,
        "steps": ", ".join(ranges_of(sorted(key.step for key in issue.keys))) or None,
        "step": None if key is None else key.step,
        "evaluation": None if key is None else key.evaluation,
        "sample_index": index,
        "occurrence": occurrence,
        "token": issue.token,
        "reason": issue.reason,
    }
