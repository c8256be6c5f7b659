"""The signs before numbers: a number that covers only a part is never shown as one of the whole."""

from __future__ import annotations

from pathlib import Path

from dumptui.core.files.step_files import StepKey
from tests.support.screen import until_shown
from tests.support.session import opened


async def test_a_partial_number_has_its_sign_however_large_it_is(shared: Path) -> None:
    """It costs the number its decimals: without the sign it would count for the whole step."""
    async with opened(shared / "runs" / "odd", key=StepKey(1), size=(120, 40), scanned=True) as (_, pilot):
        await until_shown(pilot, "!1    10  ~0.625  ~12.868")
