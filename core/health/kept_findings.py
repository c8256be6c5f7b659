"""The rows of Health that are kept between starts: those of steps whose files can't change what they say any more."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Protocol

from dumptui.core.files.step_files import Entry, StepFiles
from dumptui.core.health.run_health import NOT_COMPLETED, StepRow
from dumptui.core.step.ranks import Ranks

DOCUMENT = "health"
STEPS_BETWEEN_WRITES = 64


class Documents(Protocol):
    """What keeps documents by name, such as the cache of the summaries."""

    def load(self, name: str) -> dict[str, Any]: ...

    def store(self, name: str, document: dict[str, Any]) -> None: ...


class Fingerprint(Protocol):
    """Returns a text that changes with the files and `more`."""

    def __call__(self, entries: Iterable[Entry], *more: object) -> str: ...


class KeptFindings:
    """The rows of steps by what they depend on: the files, the ranks that are missing, and what can read a mirror."""

    def __init__(self, documents: Documents, fingerprint: Fingerprint, *, fresh: bool = False) -> None:
        """With `fresh`, nothing that was kept before is used."""
        self._documents = documents
        self._fingerprint = fingerprint
        self._steps: dict[str, Any] = {} if fresh else documents.load(DOCUMENT)
        self._reads_mirrors = find_spec("polars") is not None
        self._unwritten = 0

    def rows(self, files: StepFiles, missing: Ranks) -> list[StepRow] | None:
        """Return the rows of a step; None where they have to be found."""
        kept = self._steps.get(str(files.key))
        if kept is None or kept["stamp"] != self._stamp(files, missing):
            return None
        return [(row, frozenset(once)) for row, once in kept["rows"]]

    def keep(self, files: StepFiles, missing: Ranks, rows: list[StepRow]) -> None:
        """Keep the rows of a step that has no young file, unless its check was not completed."""
        if any(str(row["problem"]).startswith(NOT_COMPLETED) for row, _ in rows):
            return
        plain = [[row, sorted(once)] for row, once in rows]
        self._steps[str(files.key)] = {"stamp": self._stamp(files, missing), "rows": plain}
        self._unwritten += 1
        if self._unwritten >= STEPS_BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        if self._unwritten:
            self._documents.store(DOCUMENT, self._steps)
            self._unwritten = 0

    def _stamp(self, files: StepFiles, missing: Ranks) -> str:
        return self._fingerprint(files.entries(), "health", sorted(missing), self._reads_mirrors)
