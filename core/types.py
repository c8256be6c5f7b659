"""The type of a table's rows, in a module of its own: the first screen uses it and must not import numpy."""

from __future__ import annotations

from typing import TypeAlias

Record: TypeAlias = dict[str, object]
"""The values of a row by column name; None where a column has no value."""
