"""The rows of the tables: also for what only shows them, which must not wait for numpy to be imported."""

from __future__ import annotations

from typing import TypeAlias

Record: TypeAlias = dict[str, object]
"""A row by its columns; None where a column has no value."""
