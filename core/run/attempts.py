"""The steps of a run that an earlier attempt left behind: a restarted run overwrites steps with the same numbers.

Only the times of the files show this, so no step is reported where they look like those of a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from dumptui.core.files.step_files import CLOCK_TOLERANCE_SECONDS, StepFiles, StepKey

Dated: TypeAlias = tuple[float, StepKey]


def earlier_steps(steps: Mapping[StepKey, StepFiles]) -> frozenset[StepKey]:
    """Return the steps after the one that was written last, if they are older than it."""
    dated = [(files.begun, key) for key, files in steps.items() if files.begun is not None]
    trained = [(time, key) for time, key in dated if not key.evaluation] or dated
    if not trained:
        return frozenset()
    newest, last = max(trained)
    old = [key for time, key in dated if key.step > last.step and time < newest - CLOCK_TOLERANCE_SECONDS]
    return frozenset(() if not old or is_copied(trained, last) else old)


def is_copied(dated: Sequence[Dated], last: StepKey) -> bool:
    """Whether the times may be those of a copy: in the order of names, newest first, or in no order at all.

    Up to the step written last, each attempt continued where the one before it ended, so the times rise. After it, the
    times of each earlier attempt rise.
    """
    by_time = [key for _, key in sorted(dated, key=lambda step: (step[0], str(step[1])))]
    if by_time == sorted(by_time, key=str) != sorted(by_time):
        return True
    in_order = sorted(dated, key=lambda step: step[1])
    before = [time for time, key in in_order if key <= last]
    beyond = [time for time, key in in_order if key > last]
    return falls(before) > 0 or 2 * falls(beyond) > max(len(beyond) - 1, 1)


def falls(times: Iterable[float]) -> int:
    return sum(after < before - CLOCK_TOLERANCE_SECONDS for before, after in pairwise(times))
