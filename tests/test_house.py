"""The house: core stands alone, the wings import downwards only, and private Textual API stays in one folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import walk_packages

import dumptui.core

ROOT = Path(__file__).parents[1]
CORE_MODULES = sorted(module.name for module in walk_packages(dumptui.core.__path__, "dumptui.core."))


def imported_by(code: str) -> set[str]:
    """Return the names of all modules that a fresh process holds after some code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def private_names(path: Path) -> Iterator[str]:
    """Yield what a module imports from Textual although its name begins with an underscore."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "textual":
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (name for name in names if name.startswith("_"))


def test_core_imports_neither_the_screen_nor_torch() -> None:
    loaded = imported_by(
        f"import importlib, sys\nfor name in {CORE_MODULES}: importlib.import_module(name)\nprint(*sys.modules)"
    )
    assert len(CORE_MODULES) > 100
    assert not {"textual", "rich", "torch", "dumptui.tui"} & loaded


def test_private_textual_api_is_used_in_the_terminal_wing_alone() -> None:
    users = {path.relative_to(ROOT) for path in (ROOT / "tui").rglob("*.py") if [*private_names(path)]}
    assert {path.parts[:2] for path in users} == {("tui", "terminal")}


def test_wings_import_downwards_only() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
