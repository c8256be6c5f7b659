"""A line says what there is room for, in whole facts."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.text import Text

from dumptui.tui.widgets.line import fitted


@pytest.mark.parametrize(
    ("text", "width", "height", "shown"),
    [
        ("one · two", 9, 1, "one · two"),
        ("step 23  train 16/32", 14, 1, "step 23 …"),  # "trai" says nothing
        ("step 23  every file is unreadable", 22, 1, "step 23  every file i…"),
        ("samples · groups · pass@1", 20, 2, "samples · groups\npass@1"),
        ("samples · groups pass · k", 9, 3, "samples\ngroups\npass · k"),
        ("#165  turn 1  cp 1 of 2  return +0.9", 20, 2, "#165  turn 1\ncp 1 of 2 …"),
        ("group 3  prompt how many chairs are there in all", 22, 2, "group 3  prompt how\nmany chairs are there…"),
        ("alone", 3, 1, "al…"),
        ("", 5, 1, ""),
        ("nothing", 0, 1, ""),
    ],
)
def test_a_line_ends_between_facts(text: str, width: int, height: int, shown: str) -> None:
    assert fitted(Text(text), width, height, Console()).plain == shown
