"""A generated run."""
