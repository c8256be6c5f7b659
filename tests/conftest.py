from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded runs beside the repository; CI must have it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "runs").is_dir():
        if os.environ.get("CI"):
            pytest.fail("the recorded runs are not there")
        pytest.skip("the recorded runs are not there")
    return folder
