"""The files of a run on disk: what was listed of them, and reading them while they may change."""
