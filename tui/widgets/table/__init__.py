"""A table of a million rows."""
