from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from dumptui.core.defect import Defect
from dumptui.core.demo.write_demo import write_demo
from dumptui.tui.terminal.defects import DefectApp

# On a shared machine a slow example is no fault; what lands is decided by the same examples every time.
settings.register_profile("dumptui", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("dumptui")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in tests/e2e: `pytest -m "not e2e"` leaves the slow half out."""
    for item in items:
        if "e2e" in item.path.parts:
            item.add_marker("e2e")


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test chooses, and what the person who runs it chose, stay apart."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg" / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg" / "config"))


@pytest.fixture(autouse=True)
def defects(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """What the screen survived: any of it fails the test, unless that takes it out of the list."""
    found: list[BaseException] = []
    seen = DefectApp._seen

    def keep(app: DefectApp, error: BaseException) -> Defect:
        found.append(error)
        return seen(app, error)

    monkeypatch.setattr(DefectApp, "_seen", keep)
    yield found
    if found:
        raise AssertionError("a defect that the screen survived") from found[0]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded runs beside the repository; CI must have it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "runs").is_dir():
        if os.environ.get("CI"):
            pytest.fail("the recorded runs are not there")
        pytest.skip("the recorded runs are not there")
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated run of four steps, the same whenever it is written."""
    root = tmp_path_factory.mktemp("runs") / "demo-grpo-8gpu"
    write_demo(root, steps=4, now=1_790_000_000)
    return root
