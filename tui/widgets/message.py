"""Messages that nobody can change once they are posted."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

from textual.message import Message
from typing_extensions import dataclass_transform


@dataclass_transform(frozen_default=True)
class FrozenMessage(Message):
    """A message whose subclasses are dataclasses with fields that are set once.

    A frozen dataclass can't be a message: Textual sets attributes of its own, such as the sender.
    """

    def __init_subclass__(cls, bubble: bool = True) -> None:
        super().__init_subclass__(bubble=bubble)
        dataclass(cls)

    def __setattr__(self, name: str, value: object) -> None:
        if name in vars(self) and name in getattr(self, "__dataclass_fields__", ()):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super().__setattr__(name, value)


class Answer(FrozenMessage):
    """What the reader thread answers: whole when it is posted."""
