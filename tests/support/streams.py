"""Telemetry streams, written record by record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dumptui.core.telemetry.jsonl_tail import Record

MIDNIGHT = 1767225600.0


HOURS = ["20251231_22", "20251231_23", "20260101_00", "20260101_01"]


def logged(ts: float, step: int | None, step_key: str | None = "rollout/step", **metrics: Any) -> Record:
    named = {name.replace("_", "/", 1): value for name, value in metrics.items()}
    return {"ts": ts, "step_key": step_key, "step": step, "metrics": named}


def append(root: Path, name: str, *records: Record) -> Path:
    path = root / "dashboard" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    return path


def document(root: Path, name: str, value: Any) -> Path:
    path = root / "dashboard" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path
