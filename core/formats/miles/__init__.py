"""The files of miles and slime: rollout and train dumps, the parquet mirror, the trajectory file."""
