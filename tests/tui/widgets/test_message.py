"""Messages that nobody can change once they are posted."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.tui.panes.requests import StepChosen
from dumptui.tui.session.keymap import import_all
from dumptui.tui.widgets.message import FrozenMessage


def messages(root: type[FrozenMessage] = FrozenMessage) -> list[type[FrozenMessage]]:
    return [kind for child in root.__subclasses__() for kind in (child, *messages(child))]


def test_a_field_is_set_once() -> None:
    message = StepChosen(StepKey(1))
    with pytest.raises(FrozenInstanceError):
        message.key = StepKey(2)  # type: ignore[misc]
    assert message.key == StepKey(1)
    message.stop()  # what Textual keeps in it can change


def test_all_messages_with_fields_are_frozen() -> None:
    import_all()
    assert len(messages()) > 30
    for kind in messages():
        values: list[Any] = [None for _ in fields(kind)]  # type: ignore[arg-type]
        message = kind(*values)
        for field in fields(kind):  # type: ignore[arg-type]
            with pytest.raises(FrozenInstanceError):
                setattr(message, field.name, 1)
