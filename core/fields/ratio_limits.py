"""How far a ratio of probabilities is followed, in statistics and on screen."""

from __future__ import annotations

import math

LARGEST_LOG_RATIO = 20.0
"""Where the field's own metrics clamp a difference of log-probs before they exponentiate it."""

LARGEST_RATIO = math.exp(LARGEST_LOG_RATIO)
