"""The largest ratio of probabilities that statistics and the screen use."""

from __future__ import annotations

import math

LARGEST_LOG_RATIO = 20.0
"""The difference of log-probs at which the trainer's metrics clamp it before they exponentiate it."""

LARGEST_RATIO = math.exp(LARGEST_LOG_RATIO)
