"""The prompts of each step of a run, computed once for files that do not change."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dumptui.core.files.step_files import StepKey
from dumptui.core.ptfile.file import OnRead
from dumptui.core.run.run import Run
from dumptui.core.store.cache import Cache, fingerprint
from dumptui.core.tables.prompts import ENTRY, MAX_TEXTS, StepPrompts, summarise_prompts

if TYPE_CHECKING:
    from dumptui.core.process.workers import Workers

BLOCK_STEPS = 64
"""Steps in a file of the cache: 512 prompts each take 1.2 MB together."""
TEXTS_NAME = "prompt-texts"


class PromptSummaries:
    """The prompts of a run's steps. Those of a step are cached only if all its files are complete."""

    def __init__(self, run: Run, cache: Cache, reward_key: str | None) -> None:
        self._run = run
        self._cache = cache
        self._reward_key = reward_key
        self._blocks: dict[str, dict[str, Any]] = {}
        self._changed: set[str] = set()
        self._texts: dict[str, str] = cache.load(TEXTS_NAME)

    def known(self, key: StepKey) -> StepPrompts | None:
        """Return the cached prompts of a step; None when they have to be computed."""
        cached = self._block(key).get(str(key))
        if cached is None or cached["stamp"] != self.stamp(key):
            return None
        entries = np.frombuffer(base64.b64decode(cached["entries"]), ENTRY)
        names = ((int(prompt), f"{int(prompt):016x}") for prompt in entries["prompt"].tolist())
        return StepPrompts(entries, {prompt: self._texts[name] for prompt, name in names if name in self._texts})

    def all(self, keys: Iterable[StepKey], workers: Workers | None = None) -> Iterator[tuple[StepKey, StepPrompts]]:
        """Yield the prompts of steps, the cached ones first."""
        unknown = []
        for key in keys:
            if (prompts := self.known(key)) is not None:
                yield key, prompts
            else:
                unknown.append(key)
        work = partial(summarise_prompts, reward_key=self._reward_key)
        files = [self._run.steps[key] for key in unknown]
        computed = map(work, files) if workers is None else workers.map(work, files)
        for key, (prompts, whole) in zip(unknown, computed, strict=True):
            if whole:
                self.keep(key, prompts)
            yield key, prompts
        self.save()

    def read(self, key: StepKey, on_read: OnRead) -> StepPrompts:
        """Return the prompts of a step, from the cache or computed."""
        if (prompts := self.known(key)) is not None:
            return prompts
        prompts, whole = summarise_prompts(self._run.steps[key], self._reward_key, on_read)
        if whole:
            self.keep(key, prompts)
        return prompts

    def keep(self, key: StepKey, prompts: StepPrompts) -> None:
        entries = base64.b64encode(prompts.entries.tobytes()).decode()
        self._block(key)[str(key)] = {"stamp": self.stamp(key), "entries": entries}
        self._changed.add(block_name(key))
        for prompt, text in prompts.texts.items():
            if len(self._texts) < MAX_TEXTS:
                self._texts[f"{prompt:016x}"] = text

    def save(self) -> None:
        for name in self._changed:
            self._cache.store(name, self._blocks[name])
        if self._changed:
            self._cache.store(TEXTS_NAME, self._texts)
        self._changed.clear()

    def _block(self, key: StepKey) -> dict[str, Any]:
        name = block_name(key)
        if name not in self._blocks:
            self._blocks[name] = self._cache.load(name)
        return self._blocks[name]

    def stamp(self, key: StepKey) -> str:
        return fingerprint(self._run.steps[key].entries(), self._reward_key)


def block_name(key: StepKey) -> str:
    return f"prompts-{key.step // BLOCK_STEPS}"
