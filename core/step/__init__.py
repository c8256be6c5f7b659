"""One step: its samples joined to its train rows, and its per-token fields."""
