"""The steps that were opened last."""

from __future__ import annotations

from collections import OrderedDict

from dumptui.core.files.step_files import StepFiles, StepKey
from dumptui.core.tables.step_summary import is_whole
from dumptui.tui.reading.messages import StepLoaded


class Recent:
    """The steps opened last, by how much memory they hold: going back and forth between them reads nothing."""

    def __init__(self, limit: int = 256 << 20) -> None:
        self._limit = limit
        self._kept: OrderedDict[StepKey, StepLoaded] = OrderedDict()

    def get(self, files: StepFiles) -> StepLoaded | None:
        """The step as it was read, if its files are still the same ones."""
        kept = self._kept.get(files.key)
        if kept is None or list(kept.step.files.entries()) != list(files.entries()):
            return None
        self._kept.move_to_end(files.key)
        return kept

    def clear(self) -> None:
        self._kept.clear()

    def keep(self, loaded: StepLoaded) -> None:
        if not is_whole(loaded.step):
            return
        self._kept[loaded.key] = loaded
        self._kept.move_to_end(loaded.key)
        while len(self._kept) > 1 and sum(map(held, self._kept.values())) > self._limit:
            self._kept.popitem(last=False)


def held(loaded: StepLoaded) -> int:
    """Bytes that a loaded step keeps, near enough: the arrays and texts of its samples, and 500 a dumped tensor."""
    arrays = sum(
        sample.tokens.nbytes + sample.response_length * 5 + len(sample.response) for sample in loaded.step.samples
    )
    return arrays + sum(500 * shard.rows * len(shard.columns) for shard in loaded.step.shards)
