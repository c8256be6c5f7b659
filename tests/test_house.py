"""The arrows between the rooms: core stands alone, and brings nothing that a login node has to wait for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dumptui.core

ALL = f"""
import importlib, sys
for name in {sorted(path.stem for path in Path(dumptui.core.__path__[0]).glob("*.py"))}:
    importlib.import_module("dumptui.core." + name if name != "__init__" else "dumptui.core")
print(*sys.modules)
"""


def test_core_imports_neither_the_screen_nor_torch() -> None:
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, check=True)
    assert not {"textual", "rich", "torch", "dumptui.tui"} & set(done.stdout.split())
