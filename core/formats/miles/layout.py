"""Where miles and slime write the files of a step, by their names."""

from __future__ import annotations

import re

from dumptui.core.files.step_files import FileRole, StepKey

RUN_FOLDERS = frozenset(("rollout_data", "train_data"))
"""A folder with one of these sub-folders is a run."""
WITHOUT_STEPS = "holds no dump: it has no rollout_data/N.pt and no train_data/N_RANK.pt"
LEFTOVER_PREFIX = ".trash_"
"""Of the folders that a new attempt moves its predecessor's files to."""

# One spelling per number, so that 07.pt is not a second file of step 7; 18 digits fit an int64.
_NUMBER_PATTERN = "(0|[1-9][0-9]{0,17})"
_ROLLOUT_NAME = re.compile(rf"(eval_)?{_NUMBER_PATTERN}\.pt")
_TRAIN_NAME = re.compile(rf"{_NUMBER_PATTERN}_{_NUMBER_PATTERN}\.pt")
_MIRROR_NAME = re.compile(rf"rollout_(eval_)?{_NUMBER_PATTERN}\.parquet")
_TRAJECTORY_NAME = re.compile(rf"(eval_)?{_NUMBER_PATTERN}\.jsonl")


def rollout_role(name: str) -> FileRole | None:
    match = _ROLLOUT_NAME.fullmatch(name)
    return FileRole("rollout", key_of(match)) if match else None


def train_role(name: str) -> FileRole | None:
    """Return the step and rank of a train file; N.pt holds all ranks."""
    if match := _TRAIN_NAME.fullmatch(name):
        return FileRole("shard", StepKey(int(match[1])), int(match[2]))
    match = _ROLLOUT_NAME.fullmatch(name)
    return FileRole("shard", key_of(match)) if match and not match[1] else None


def mirror_role(name: str) -> FileRole | None:
    match = _MIRROR_NAME.fullmatch(name)
    return FileRole("mirror", key_of(match)) if match else None


def trajectory_role(name: str) -> FileRole | None:
    match = _TRAJECTORY_NAME.fullmatch(name)
    return FileRole("trajectory", key_of(match)) if match else None


FOLDERS = {
    "rollout_data": rollout_role,
    "train_data": train_role,
    "dashboard_columns": mirror_role,
    "trajectory": trajectory_role,
}


def bare_role(name: str) -> FileRole | None:
    """Return what a file in a folder without sub-folders is: N.pt is a rollout file there."""
    return rollout_role(name) or train_role(name)


def is_stray(name: str) -> bool:
    """Whether an unrecognised file in a folder without sub-folders may have been meant for a dump."""
    return ".pt" in name


def key_of(match: re.Match[str]) -> StepKey:
    return StepKey(int(match[2]), match[1] is not None)
