"""What can be wrong with a dump, said in one sentence."""

from __future__ import annotations

import os


class DumpError(Exception):
    """A file or folder that can't be used; `str()` is one sentence that names it and says what is wrong."""

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        super().__init__(f"{os.fspath(path)}: {problem}")
        self.path = os.fspath(path)
        self.problem = problem
