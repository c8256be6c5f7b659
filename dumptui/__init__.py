"""dumptui: a terminal viewer for the debug dumps of reinforcement-learning runs of language models."""

__version__ = "0.1.0"
