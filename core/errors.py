"""What can be wrong with a dump, said in one sentence."""

from __future__ import annotations

import os


class DumpError(Exception):
    """A file or folder that can't be used; `str()` is one sentence that names it and says what is wrong."""

    state = "unreadable"

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {problem}")
        self.path = os.fspath(path)
        self.problem = problem

    @property
    def short(self) -> str:
        """Without the folder, which leaves no room for the reason on the screen."""
        return f"{os.path.basename(os.path.normpath(self.path))}: {self.problem}"


def unexpected(error: BaseException) -> str:
    """What ended something, where that is neither the file's fault nor expected."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class NoDump(DumpError):
    """The file is whole and can be read, but holds something else than its name says."""


class BeingWritten(DumpError):
    """A young file that is not whole yet: worth another try in a moment."""

    state = "being written"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "still being written")
