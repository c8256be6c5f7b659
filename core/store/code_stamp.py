"""A stamp of the code: what was worked out and kept by other code, or of other columns, is worked out again."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dumptui.core.fields.registry import FIELDS
from dumptui.core.tables.columns import SAMPLE_COLUMNS, STEP_COLUMNS

CORE_FOLDER = Path(__file__).parent.parent


@cache
def code_stamp() -> str:
    """Return a digest of the columns and of the source files of core, by size and time as Python itself compares them.

    130 files take 1 ms; their contents would take 6.
    """
    columns = [(column.name, column.statistic, column.reduction) for column in (*SAMPLE_COLUMNS, *STEP_COLUMNS)]
    fields = [(field.name, field.inputs, field.largest_input) for field in FIELDS]
    text = f"{columns} {fields} {sorted(sources(os.fspath(CORE_FOLDER)))}"
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def sources(folder: str, path: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield the path, size and time of each module in a folder and below; nothing where the code is no folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from sources(entry.path, f"{path}{entry.name}/")
            elif entry.name.endswith((".py", ".pyc", ".so")):
                stat = entry.stat()
                yield f"{path}{entry.name}", stat.st_size, stat.st_mtime_ns
