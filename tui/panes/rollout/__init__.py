"""The Rollout pane: the steps with a trend, and the samples of the chosen step."""
