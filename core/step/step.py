"""One step: its rollout samples, its train files, and every per-token field of them with its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dumptui.core.arrays import Ints
from dumptui.core.errors import DumpError
from dumptui.core.fields.registry import definition as field_definition
from dumptui.core.fields.registry import shown_name, train_column, with_derived
from dumptui.core.fields.token_field import TokenField, derive
from dumptui.core.files.step_files import StepFiles
from dumptui.core.formats.sample import Rollout, Sample
from dumptui.core.formats.shard import Shard
from dumptui.core.parallel.alignment import Alignment, Selection
from dumptui.core.parallel.assembly import train_field
from dumptui.core.parallel.loss_masks import loss_masks
from dumptui.core.parallel.shard_group import ENGINE_COLUMN
from dumptui.core.step.log_probs import difference, engine_log_probs
from dumptui.core.step.sample_fields import fill_from_extra


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
        names = {shown_name(name) for shard in self.shards for name in (*shard.per_token, *shard.malformed)}
        names |= self.sample_fields
        if any(sample.rollout_log_probs is not None for sample in self.samples):
            names.add(ENGINE_COLUMN)
        return with_derived(names)

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
        if name == "lp_diff":
            return self.difference(selection.positions, loss_masks(selection))
        definition = field_definition(name)
        if definition.derive is not None:
            return derive(definition, [self.gather(source, selection.positions) for source in definition.inputs])
        out = train_field(selection, name, train_column(name), self.pause)
        if name in self.sample_fields:
            fill_from_extra(out, self.samples)
        return out

    def gather_all(self, positions: Ints) -> dict[str, TokenField]:
        """Return every field of the samples at `positions`; a derived one is made of those gathered before it."""
        gathered: dict[str, TokenField] = {}
        for name in self.fields:
            definition = field_definition(name)
            if definition.derive is None:
                gathered[name] = self.gather(name, positions)
            else:
                gathered[name] = derive(definition, [gathered[source] for source in definition.inputs])
        return gathered

    def difference(self, positions: Ints, mask: TokenField) -> TokenField:
        """Return trainer - engine log-prob, where the loss `mask` of the same samples is 1 and both are known."""
        return difference(self._select(positions), self.gather("train_log_probs", positions), mask, self.pause)

    def _select(self, positions: Ints | None) -> Selection:
        return self.alignment.select(np.arange(len(self.samples)) if positions is None else positions)
