"""Data, context, tensor and pipeline parallelism: which file holds which part of which sample."""
