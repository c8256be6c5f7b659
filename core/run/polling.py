"""Folders that are looked at again and again, cheaply: new names are seen at every look, and so is what changed lately.

Listing a run of 5,000 steps with the size and time of its 15,000 files takes 0.1 s: every 2 s that is a twentieth of a
core; a look at it here takes 4 ms. A file that rested for long and is rewritten in place, as by a resumed run, is seen
when its turn comes: at once in a folder of up to TURN files, in a larger one within files / TURN looks.
"""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.run.run import Entry, past_stale

RECENT_FILES = 128  # files that changed last, looked at again at each look, 4 µs each
FILES_PER_POLL = 128  # of the other files, as many at each look
SETTLED_SECONDS = 10.0  # seconds after which a second change would give a folder another time than the first, anywhere
LISTING_COST_FACTOR = (
    1000  # a folder whose time stands still is listed again after this many times what listing it took
)


class Folder:
    """The plain files of a folder by name. Where it can't be listed, `problem` says why and `entries` stay."""

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.problem: DumpError | None = None
        self._now = now
        self._known: dict[str, Entry] = {}
        self._lately: OrderedDict[str, None] = OrderedDict()  # the one that changed last at the end
        self._stamp: tuple[int, int] | None = None
        self._moved_at = 0.0
        self._due = 0.0
        self._turn = 0

    def look(self) -> bool:
        """Whether anything is other than at the look before. Raises nothing."""
        before = self.problem
        try:
            changed = self._look()
        except OSError as error:
            self.problem = DumpError(self.path, f"can't be listed: {error.strerror or error}")
            self._due = 0.0
            return before is None or before.problem != self.problem.problem
        self.problem = None
        if changed:
            self.entries = [self._known[name] for name in sorted(self._known)]
        return changed or before is not None

    def _look(self) -> bool:
        first = self._stamp is None
        changed = self._list()
        if first:
            newest = sorted(self._known.values(), key=lambda entry: entry.mtime)[-RECENT_FILES:]
            self._lately = OrderedDict.fromkeys(entry.name for entry in newest)
            return changed
        again = {*self._lately, *self._next_turn()}
        return sum(map(self._examine, again)) > 0 or changed

    def _list(self) -> bool:
        """Take in the names, unless the folder tells that they are the same; whether any came or went."""
        began = self._now()
        try:
            found = past_stale(lambda: os.stat(self.path))
            stamp = found.st_ino, found.st_mtime_ns
            if stamp != self._stamp:
                self._stamp, self._moved_at = stamp, began
            elif began < self._due and began - self._moved_at > SETTLED_SECONDS:
                return False
            names = set(past_stale(lambda: os.listdir(self.path)))
        except FileNotFoundError:
            self._stamp, names = None, set()
        self._due = self._now() + LISTING_COST_FACTOR * (self._now() - began)
        gone = self._known.keys() - names
        for name in gone:
            self._forget(name)
        return sum(map(self._examine, names - self._known.keys())) > 0 or bool(gone)

    def _next_turn(self) -> Iterator[str]:
        count = len(self.entries)
        for at in range(self._turn, self._turn + min(FILES_PER_POLL, count)):
            yield self.entries[at % count].name
        self._turn = (self._turn + FILES_PER_POLL) % max(count, 1)

    def _examine(self, name: str) -> bool:
        """Whether a file is new, other than it was, or gone."""
        before = self._known.get(name)
        try:
            found = past_stale(lambda: os.stat(f"{self.path}/{name}"))
        except FileNotFoundError:  # or a link to nothing
            self._forget(name)
            return before is not None
        if not stat.S_ISREG(found.st_mode):
            self._forget(name)
            return before is not None
        entry = Entry(self.path, name, found.st_size, found.st_mtime, found.st_ino)
        if entry == before:
            return False
        self._known[name] = entry
        self._lately[name] = None
        self._lately.move_to_end(name)
        if len(self._lately) > RECENT_FILES:
            self._lately.popitem(last=False)
        return True

    def _forget(self, name: str) -> None:
        self._known.pop(name, None)
        self._lately.pop(name, None)


class Folders:
    """The folders of a run."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._folders: dict[Path, Folder] = {}

    def look(self) -> bool:
        """Whether anything changed in any folder that was asked for."""
        return sum(folder.look() for folder in self._folders.values()) > 0

    def list(self, path: Path) -> list[Entry]:
        """The files as they were at the last look."""
        if path not in self._folders:
            self._folders[path] = Folder(path, self._now)
            self._folders[path].look()
        return self._folders[path].entries

    @property
    def problem(self) -> DumpError | None:
        return next(self.problems(), None)

    def problems(self) -> Iterator[DumpError]:
        return (folder.problem for folder in self._folders.values() if folder.problem)
