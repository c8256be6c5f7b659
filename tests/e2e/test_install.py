"""An install holds every file, whether the links of the repository came out as links or as text."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.screen import ROOT
from tests.support.writer import sample, write_step

KEPT = {".py", ".tcss", ".typed"}


def files(folder: Path) -> set[str]:
    found = (Path(top) / name for top, _, names in os.walk(folder, followlinks=True) for name in names)
    return {str(path.relative_to(folder)) for path in found if path.suffix in KEPT}


def clone(folder: Path, *, links: bool) -> Path:
    """A copy of the repository's sources; without links as git writes them with core.symlinks=false."""
    folder.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("core", "tui", "dumptui"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in () if links else ("core", "tui"):
        (folder / "dumptui" / name).unlink()
        (folder / "dumptui" / name).write_text(f"../{name}")
    return folder


@pytest.mark.parametrize("links", [True, False], ids=["links", "text files"])
def test_a_clone_runs_without_an_install(tmp_path: Path, links: bool) -> None:
    folder = clone(tmp_path / "clone", links=links)
    write_step(tmp_path / "run", 0, [sample(at) for at in range(2)])
    (tmp_path / "run" / "rollout_data" / "0.pt").unlink()  # so that the process that reads mirrors is started, too
    command = [sys.executable, "-m", "dumptui", str(tmp_path / "run"), "--print", "samples", "--no-cache"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 3 and done.stderr == ""


@pytest.mark.parametrize("links", [True, False], ids=["links", "text files"])
def test_an_install_is_never_empty(tmp_path: Path, links: bool) -> None:
    """A zip of the repository has no links: the install succeeded, and nothing was in it."""
    pytest.importorskip("setuptools", minversion="77")
    folder = clone(tmp_path / "clone", links=links)
    build = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(tmp_path / "built")]
    subprocess.run(build, cwd=folder, capture_output=True, check=True)
    assert files(tmp_path / "built" / "dumptui") == files(ROOT / "dumptui")
    version = [sys.executable, "-c", "import dumptui.tui.cli.main as cli; cli.main(['--version'])"]
    env = os.environ | {"PYTHONPATH": str(tmp_path / "built")}
    done = subprocess.run(version, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("dumptui ")
