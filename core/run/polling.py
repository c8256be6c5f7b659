"""Folders that are polled cheaply: every poll sees new names and changes of the files that changed recently.

Listing a run of 5,000 steps with the size and time of its 15,000 files takes 0.1 s, a twentieth of a core if done every
2 s; a poll takes 4 ms. An old file that is rewritten in place, as by a resumed run, is seen in its turn: at once in a
folder of up to FILES_PER_POLL files, in a larger one after at most files / FILES_PER_POLL polls.
"""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from dumptui.core.errors import DumpError
from dumptui.core.files.listing import entry_of, past_stale
from dumptui.core.files.step_files import Entry

RECENT_FILES = 128  # the files that changed last, checked at each poll, 4 µs each
FILES_PER_POLL = 128  # files that are checked in turn at each poll
SETTLED_SECONDS = 10.0  # two changes this far apart give a folder different times on any file system
LISTING_COST_FACTOR = 1000  # an unchanged folder is listed again after this many times the seconds that listing it took


class Folder:
    """The plain files of a folder by name. If it can't be listed, `problem` says why and `entries` stay."""

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.problem: DumpError | None = None
        self._now = now
        self._known: dict[str, Entry] = {}
        self._lately: OrderedDict[str, None] = OrderedDict()  # the last one changed last
        self._stamp: tuple[int, int] | None = None
        self._moved_at = 0.0
        self._due = 0.0
        self._turn = 0

    def look(self) -> bool:
        """Poll the folder; return whether anything changed since the previous poll. Never raises."""
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
        """List the names unless the folder's time is unchanged; return whether any was added or removed."""
        began = self._now()
        try:
            status = past_stale(lambda: os.stat(self.path))
            stamp = status.st_ino, status.st_mtime_ns
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
        for index in range(self._turn, self._turn + min(FILES_PER_POLL, count)):
            yield self.entries[index % count].name
        self._turn = (self._turn + FILES_PER_POLL) % max(count, 1)

    def _examine(self, name: str) -> bool:
        """Update the entry of a file; return whether it is new, changed or gone."""
        before = self._known.get(name)
        try:
            status = past_stale(lambda: os.stat(f"{self.path}/{name}"))
        except FileNotFoundError:  # or a link to nothing
            self._forget(name)
            return before is not None
        if not stat.S_ISREG(status.st_mode):
            self._forget(name)
            return before is not None
        entry = entry_of(self.path, name, status)
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
    """The polled folders of a run."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._folders: dict[Path, Folder] = {}

    def look(self) -> bool:
        """Poll all listed folders; return whether anything changed."""
        return sum(folder.look() for folder in self._folders.values()) > 0

    def list(self, path: Path) -> list[Entry]:
        """Return the files of a folder at its last poll."""
        if path not in self._folders:
            self._folders[path] = Folder(path, self._now)
            self._folders[path].look()
        return self._folders[path].entries

    @property
    def problem(self) -> DumpError | None:
        return next(self.problems(), None)

    def problems(self) -> Iterator[DumpError]:
        return (folder.problem for folder in self._folders.values() if folder.problem)
