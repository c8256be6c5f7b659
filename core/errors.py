"""The problems of a dump, each as an exception whose message is one sentence."""

from __future__ import annotations

import os
from typing import Any


class DumpError(Exception):
    """A file or folder that can't be used; `str()` is one sentence that names it and says what is wrong."""

    state = "unreadable"

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {problem}")
        self.path = os.fspath(path)
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to rebuild it in another process: the arguments of a subclass may differ."""
        return rebuilt, (type(self), self.path, self.problem)

    @property
    def short(self) -> str:
        """The problem with the file's name only: a full path would leave no room for the reason on the screen."""
        return f"{os.path.basename(os.path.normpath(self.path))}: {self.problem}"


def rebuilt(kind: type[DumpError], path: str, problem: str) -> DumpError:
    error = kind.__new__(kind)
    DumpError.__init__(error, path, problem)
    return error


def unexpected(error: BaseException) -> str:
    """Return the text of an exception that is a defect of dumptui or a lack of memory, not a fault of the file."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class NoDump(DumpError):
    """A complete, readable file that holds something other than its name says."""


class NothingYet(DumpError):
    """A folder that is missing or holds no dump; a run that is starting may create it."""


class BeingWritten(DumpError):
    """A young file that is not complete yet; it is worth another try in a moment."""

    state = "being written"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "still being written")


class NotHere(DumpError):
    """A file that can't be checked with the resources of this process, which says nothing about the file."""

    state = "not checked"

    def __init__(self, path: str | os.PathLike[str], lack: str) -> None:
        super().__init__(path, f"not checked here: {lack}")


class TooLittleMemory(MemoryError):
    """A lack of memory that is due to the limits of this process, not to the file. `str()` is one sentence."""

    def __init__(self, path: str | os.PathLike[str] = "memory") -> None:
        super().__init__(f"{os.fspath(path)}: not read here: too little memory is allowed (ulimit -v)")
