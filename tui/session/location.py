"""A place in a run: what was on screen, and can be opened again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dumptui.core.files.step_files import StepKey
from dumptui.core.text import sample_label


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a run: `sample` is Sample.index and the occurrence; `token` counts from the start of the prompt."""

    key: StepKey
    pane: str = "rollout"
    sample: tuple[int | None, int] | None = None
    token: int | None = None

    def __str__(self) -> str:
        words = [str(self.key)]
        if self.sample is not None:
            words.append(f"sample {sample_label(*self.sample)}")
        if self.token is not None:
            words.append(f"token {self.token}")
        return f"{', '.join(words)} ({self.pane})"

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.key.step,
            "evaluation": self.key.evaluation,
            "pane": self.pane,
            "sample": None if self.sample is None else list(self.sample),
            "token": self.token,
        }

    @classmethod
    def from_json(cls, value: object) -> Location | None:
        """Return a place, or None if the value, which comes from a file, is not one."""
        match value:
            case {"step": int(step), "evaluation": bool(on_eval), "pane": str(pane), "sample": sample, "token": token}:
                number = token if isinstance(token, int) else None
                return cls(StepKey(step, on_eval), pane, sample_key(sample), number)
        return None


def sample_key(value: object) -> tuple[int | None, int] | None:
    match value:
        case [int() | None as index, int(occurrence)]:
            return index, occurrence
    return None
