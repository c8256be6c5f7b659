"""What the reader shows of a step, as a user sees it, and holding it against the truth."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from dumptui.core.fields.registry import train_column
from dumptui.core.files.step_files import StepKey
from dumptui.core.parallel.slicing import AMBIGUOUS_COLUMNS
from dumptui.core.run.run import Run
from dumptui.core.step.load import load
from dumptui.core.step.step import Step
from dumptui.core.tables import steps, tokens
from tests.support.writer import Truth

Document = dict[str, Any]


def read(run: Path, step: int = 0, *, evaluation: bool = False) -> Step:
    return load(Run.open(run).steps[StepKey(step, evaluation)])


def documents(step: Step) -> list[Document]:
    """The tokens document of every sample."""
    return list(tokens.tokens(step, None, list(step.samples)))


def field(step: Step, name: str, position: int = 0) -> Document:
    found = next(iter(tokens.tokens(step, None, [step.samples[position]])))["fields"]
    assert isinstance(found, dict)
    document: Document = found[name]
    return document


def values(step: Step, name: str, position: int = 0) -> list[float | None] | None:
    found: list[float | None] | None = field(step, name, position)["values"]
    return None if found is None else [None if one is None else round(one, 6) for one in found]


def samples(step: Step, reward_key: str | None = None) -> list[Document]:
    return steps.samples(step, reward_key)


def groups(step: Step, reward_key: str | None = None) -> list[Document]:
    return steps.groups(samples(step, reward_key), evaluation=step.files.key.evaluation)


def step_row(step: Step, reward_key: str | None = None) -> Document:
    return steps.step_row(step, samples(step, reward_key))


def assert_true(step: Step, truth: Truth, lost: Mapping[str, set[tuple[int, int]]] | None = None) -> None:
    """Every value shown is the true one; null stands only where the mask is 0 or the slice is lost, which has a reason.

    `lost` has (position, response index) of what no file holds, by train column; other values have to be there.
    """
    lost = lost or {}
    trained = {position for shard in truth.shards for position in shard}
    for position, document in enumerate(documents(step)):
        mask = truth.masks[position]
        assert document["loss_mask"] == mask.tolist()
        for name, shown in document["fields"].items():
            column = train_column(name)
            if column not in truth.fields:
                continue
            full = truth.fields[column][position]
            where = f"{name} of sample {position}: {shown['state']}, {shown['reason']}"
            if full is None or (position not in trained and column != "rollout_log_probs"):
                assert shown["state"] == "not dumped" and shown["values"] is None, where
                continue
            if column in AMBIGUOUS_COLUMNS and "both fit its widths" in (shown["reason"] or ""):
                assert shown["state"] == "unreadable" and shown["values"] is None, where
                continue
            gone = {at for p, at in lost.get(column, ()) if p == position}
            expected = [None if not mask[at] or at in gone else value for at, value in enumerate(full.tolist())]
            if gone:
                assert shown["state"] in ("partial", "unreadable") and "missing" in shown["reason"], where
            else:
                assert shown["state"] == "ok", where
            assert same(shown["values"] or [None] * len(expected), expected), where


def same(shown: list[float | None], true: list[float | None]) -> bool:
    """Equal values, NaN included, and the same gaps."""
    if [one is None for one in shown] != [one is None for one in true]:
        return False
    there = [at for at, one in enumerate(shown) if one is not None]
    mine, theirs = (np.array([values[at] for at in there], np.float32) for values in (shown, true))
    return np.array_equal(mine, theirs, equal_nan=True)


class Elsewhere:
    """Classes of modules that are there while a test pickles objects of them, and not when they are read."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def make(self, module: str, name: str, /, **attributes: Any) -> Any:
        parts = module.split(".")
        for at in range(1, len(parts) + 1):
            self._home(".".join(parts[:at]))
        home = self._home(module)
        if not hasattr(home, name):
            setattr(home, name, type(name, (SimpleNamespace,), {"__module__": module}))
        return getattr(home, name)(**attributes)

    def _home(self, module: str) -> ModuleType:
        if module not in sys.modules:
            self.modules[module] = sys.modules[module] = ModuleType(module)
        return sys.modules[module]

    def forget(self) -> None:
        for module in self.modules:
            del sys.modules[module]
        self.modules.clear()


ELSEWHERE = Elsewhere()
elsewhere = ELSEWHERE.make
