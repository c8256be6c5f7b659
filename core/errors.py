"""What can be wrong with a dump, said in one sentence."""

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
        """As it comes from another process: a subclass may be made of something else."""
        return rebuilt, (type(self), self.path, self.problem)

    @property
    def short(self) -> str:
        """The problem without the folder, which leaves no room for the reason on the screen."""
        return f"{os.path.basename(os.path.normpath(self.path))}: {self.problem}"


def rebuilt(kind: type[DumpError], path: str, problem: str) -> DumpError:
    error = kind.__new__(kind)
    DumpError.__init__(error, path, problem)
    return error


def unexpected(error: BaseException) -> str:
    """What ended something, where that is neither the file's fault nor expected."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


class NoDump(DumpError):
    """The file is whole and can be read, but holds something else than its name says."""


class NothingYet(DumpError):
    """A folder that is missing or holds no dump: a run that begins may change that."""


class BeingWritten(DumpError):
    """A young file that is not whole yet: worth another try in a moment."""

    state = "being written"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "still being written")


class NotHere(DumpError):
    """It can't be done with what this process may have, which says nothing about the file."""

    state = "not checked"

    def __init__(self, path: str | os.PathLike[str], lack: str) -> None:
        super().__init__(path, f"not checked here: {lack}")


class TooLittleMemory(MemoryError):
    """It is not the file that asks for too much: this process may have too little. `str()` is one sentence."""

    def __init__(self, path: str | os.PathLike[str] = "memory") -> None:
        super().__init__(f"{os.fspath(path)}: not read here: too little memory may be had (ulimit -v)")
