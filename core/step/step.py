"""One step: its rollout samples, its train files, and every per-token field of them with its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.token_field import TokenField, ratio
from dumptui.core.formats.miles.train_file import Shard
from dumptui.core.formats.sample import Rollout, Sample
from dumptui.core.parallel.alignment import Alignment, Selection
from dumptui.core.parallel.assembly import train_field
from dumptui.core.parallel.loss_masks import loss_masks
from dumptui.core.parallel.shard_group import ENGINE_COLUMN
from dumptui.core.run.run import StepFiles
from dumptui.core.step.log_probs import difference, engine_log_probs
from dumptui.core.step.sample_fields import fill_from_extra

# The name on screen of each per-token column of a train file; any other column keeps its own.
SHOWN_NAMES = {"log_probs": "train_log_probs"}
DUMPED_NAMES = {shown: dumped for dumped, shown in SHOWN_NAMES.items()}
FIELD_ORDER = [
    "train_log_probs",
    "rollout_log_probs",
    "ref_log_probs",
    "teacher_log_probs",
    "lp_diff",
    "imp_ratio",
    "entropy",
    "ref_entropy",
    "teacher_entropy",
    "opd_reverse_kl",
    "advantages",
    "returns",
    "values",
]


@dataclass(frozen=True, eq=False)
class Step:
    """A step whose train rows are aligned with its samples; its per-token values are read from the files when asked.

    `broken` are the train files that can't be read, `rollout_problem` is why the rollout file can't. `sample_fields`
    are the per-token fields that the samples hold themselves. `alone` if this is one sample of the step, from its
    mirror: then what only the rollout file has is not known. `pause` is called some ten times a second while fields of
    a whole step are read; what it raises ends that.

    Nothing of a step is changed after it was loaded, so that any thread may read it.
    """

    files: StepFiles
    rollout: Rollout
    shards: tuple[Shard, ...]
    broken: tuple[DumpError, ...]
    alignment: Alignment
    sample_fields: frozenset[str]
    rollout_problem: DumpError | None = None
    alone: bool = False
    pause: Callable[[], object] = field(default=lambda: None)

    @property
    def samples(self) -> tuple[Sample, ...]:
        return self.rollout.samples

    @property
    def trained(self) -> int:
        return self.alignment.trained

    @property
    def notes(self) -> list[str]:
        """What is odd about the files, each note with its file."""
        return [*self.rollout.notes, *(f"{shard.path.name}: {note}" for shard in self.shards for note in shard.notes)]

    @property
    def fields(self) -> list[str]:
        """Every per-token field that this step's files hold, in the order they are shown."""
        names = {SHOWN_NAMES.get(name, name) for shard in self.shards for name in (*shard.per_token, *shard.malformed)}
        names |= self.sample_fields
        if any(sample.rollout_log_probs is not None for sample in self.samples):
            names.add(ENGINE_COLUMN)
        if {"train_log_probs", ENGINE_COLUMN} <= names:
            names.update(("lp_diff", "imp_ratio"))
        return [name for name in FIELD_ORDER if name in names] + sorted(names.difference(FIELD_ORDER))

    def masks(self, positions: Ints | None = None) -> TokenField:
        """Return the loss masks of the samples at `positions`, all by default.

        A mask is the trainer's if there is a train row, else the sample's, else all ones. It is known if its length is
        the response's.
        """
        return loss_masks(self._select(positions))

    def gather(self, name: str, positions: Ints | None = None) -> TokenField:
        """Return a field of the samples at `positions`, all by default, unmasked.

        Never raises for what a file holds: the states say it.
        """
        selection = self._select(positions)
        if name == ENGINE_COLUMN:
            return engine_log_probs(selection, self.pause)
        if name in ("lp_diff", "imp_ratio"):
            trainer = self.gather("train_log_probs", selection.positions)
            diff = difference(selection, trainer, loss_masks(selection), self.pause)
            return diff if name == "lp_diff" else ratio(diff)
        out = train_field(selection, name, DUMPED_NAMES.get(name, name), self.pause)
        if name in self.sample_fields:
            fill_from_extra(out, self.samples)
        return out

    def gather_all(self, positions: Ints) -> dict[str, TokenField]:
        """Return every field of the samples at `positions`; the ratio is made of the difference, which takes long."""
        found = {name: self.gather(name, positions) for name in self.fields if name != "imp_ratio"}
        return {name: ratio(found["lp_diff"]) if name == "imp_ratio" else found[name] for name in self.fields}

    def difference(self, positions: Ints, mask: TokenField) -> TokenField:
        """Return trainer - engine log-prob, where the loss `mask` of the same samples is 1 and both are known."""
        return difference(self._select(positions), self.gather("train_log_probs", positions), mask, self.pause)

    def _select(self, positions: Ints | None) -> Selection:
        return self.alignment.select(np.arange(len(self.samples)) if positions is None else positions)
