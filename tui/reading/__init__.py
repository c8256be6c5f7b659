"""The reader thread, and what it answers."""
