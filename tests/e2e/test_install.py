"""An install holds every file, whether the links of the repository came out as links or as text."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.screen import ROOT

setuptools = pytest.importorskip("setuptools", minversion="77")
KEPT = {".py", ".tcss", ".typed"}


def files(folder: Path) -> set[str]:
    found = (Path(top) / name for top, _, names in os.walk(folder, followlinks=True) for name in names)
    return {str(path.relative_to(folder)) for path in found if path.suffix in KEPT}


@pytest.mark.parametrize("links", [True, False], ids=["links", "text files"])
def test_an_install_is_never_empty(tmp_path: Path, links: bool) -> None:
    """A zip of the repository has no links: the install succeeded, and nothing was in it."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    for name in ("core", "tui", "dumptui"):
        shutil.copytree(ROOT / name, clone / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in () if links else ("core", "tui"):
        (clone / "dumptui" / name).unlink()
        (clone / "dumptui" / name).write_text(f"../{name}")  # as git writes it with core.symlinks=false
    build = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(tmp_path / "built")]
    subprocess.run(build, cwd=clone, capture_output=True, check=True)
    assert files(tmp_path / "built" / "dumptui") == files(ROOT / "dumptui")
    version = [sys.executable, "-c", "import dumptui.tui.cli.main as cli; cli.main(['--version'])"]
    env = os.environ | {"PYTHONPATH": str(tmp_path / "built")}
    done = subprocess.run(version, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("dumptui ")
