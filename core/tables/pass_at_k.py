"""pass@k: the probability that one of k responses to a prompt succeeds, from the rewards of its group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

# Rewards that mean wrong or right, nothing else.
BINARY_REWARDS = (frozenset((0.0, 1.0)), frozenset((-1.0, 1.0)))


def is_binary(rewards: Iterable[float | None]) -> bool:
    """Whether each reward of a step is one of two values: failure, or success above 0.

    Pass the rewards of a whole step: those of a group may all be equal.
    """
    values = {reward for reward in rewards if reward is not None}
    return bool(values) and any(values <= pair for pair in BINARY_REWARDS)


def pass_at(k: int, n: int, successes: int) -> float:
    """Return the unbiased estimate of pass@k from n >= k responses: 1 - C(n - successes, k) / C(n, k).

    Chen et al., "Evaluating Large Language Models Trained on Code" (2021), section 2.1.
    """
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_rates(rewards: Sequence[float | None]) -> dict[int, float]:
    """Return pass@k by k for a group with binary rewards; k is each power of two up to its size, and its size.

    Samples without a reward are left out.
    """
    known = [reward for reward in rewards if reward is not None]
    successes = sum(reward > 0 for reward in known)
    sizes = [1 << power for power in range(len(known).bit_length())]
    return {k: pass_at(k, len(known), successes) for k in dict.fromkeys([*sizes, len(known)]) if k}
