"""One step: its rollout samples, its train files, and every per-token field of them with its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import definition as field_definition
from dumptui.core.fields.registry import shown_name, train_column, with_derived
from dumptui.core.fields.token_field import TokenField, derive
from dumptui.core.formats.miles.train_file import Shard
from dumptui.core.formats.sample import Rollout, Sample
from dumptui.core.parallel.alignment import Alignment
from dumptui.core.parallel.assembly import fill_column
from dumptui.core.parallel.loss_masks import fill_masks
from dumptui.core.parallel.shard_group import ENGINE_COLUMN
from dumptui.core.run.run import StepFiles
from dumptui.core.step.log_probs import difference, engine_log_probs
from dumptui.core.step.sample_fields import fill_from_extra, sample_fields


@dataclass(frozen=True, eq=False)
class Step:
    """A step whose train rows are aligned with its samples; its per-token values are read from the files when asked.

    `broken` are the train files that can't be read, `rollout_problem` is why the rollout file can't. `alone` if this is
    one sample of the step, from its mirror: then what only the rollout file has is not known. `pause` is called some
    ten times a second while fields of a whole step are read; what it raises ends that.

    Nothing of a step is changed after it was loaded, so that any thread may read it.
    """

    files: StepFiles
    rollout: Rollout
    shards: tuple[Shard, ...]
    broken: tuple[DumpError, ...]
    alignment: Alignment
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
        names = {shown_name(name) for shard in self.shards for name in (*shard.per_token, *shard.malformed)}
        names |= self._sample_fields
        if any(sample.rollout_log_probs is not None for sample in self.samples):
            names.add(ENGINE_COLUMN)
        return with_derived(names)

    @cached_property
    def _sample_fields(self) -> frozenset[str]:
        return sample_fields(self.samples)

    def masks(self, positions: Ints | None = None) -> TokenField:
        """Return the loss masks of the samples at `positions`, all by default.

        A mask is the trainer's if there is a train row, else the sample's, else all ones. It is known if its length is
        the response's.
        """
        out = self.alignment.empty_field("loss_mask", self._all(positions), np.int8)
        fill_masks(self.alignment, out)
        return out

    def gather(self, name: str, positions: Ints | None = None) -> TokenField:
        """Return a field of the samples at `positions`, all by default, unmasked.

        Never raises for what a file holds: the states say it.
        """
        positions = self._all(positions)
        if name == ENGINE_COLUMN:
            return engine_log_probs(self.alignment, positions, self.pause)
        if name == "lp_diff":
            return self.difference(positions, self.masks(positions))
        definition = field_definition(name)
        if definition.derive is not None:
            return derive(definition, [self.gather(source, positions) for source in definition.inputs])
        out = self.alignment.empty_field(name, positions)
        fill_column(self.alignment, train_column(name), out, self.pause)
        if name in self._sample_fields:
            fill_from_extra(out, self.samples)
        return out

    def difference(self, positions: Ints, mask: TokenField) -> TokenField:
        """Return trainer - engine log-prob, where the loss `mask` of the same samples is 1 and both are known."""
        return difference(self.alignment, self.gather("train_log_probs", positions), mask, self.pause)

    def _all(self, positions: Ints | None) -> Ints:
        return np.arange(len(self.samples)) if positions is None else positions
