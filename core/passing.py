"""pass@k: how likely one of k responses to a prompt succeeds, from the rewards of its group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

# Rewards that say no more than right or wrong.
BINARY = (frozenset((0.0, 1.0)), frozenset((-1.0, 1.0)))


def is_binary(rewards: Iterable[float | None]) -> bool:
    """Whether the rewards of a step only tell success, which is a reward above 0, from failure.

    Asked of a whole step: a group whose members all succeeded can't tell.
    """
    found = {reward for reward in rewards if reward is not None}
    return bool(found) and any(found <= values for values in BINARY)


def pass_at(k: int, n: int, successes: int) -> float:
    """The unbiased estimate of pass@k from n >= k responses: 1 - C(n - successes, k) / C(n, k).

    Chen et al., "Evaluating Large Language Models Trained on Code" (2021), section 2.1.
    """
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_rates(rewards: Sequence[float | None]) -> dict[int, float]:
    """pass@k by k of a group with binary rewards: for the powers of two up to its size, and its size itself.

    A member without a reward is left out.
    """
    known = [reward for reward in rewards if reward is not None]
    successes = sum(reward > 0 for reward in known)
    sizes = [1 << power for power in range(len(known).bit_length())]
    return {k: pass_at(k, len(known), successes) for k in dict.fromkeys([*sizes, len(known)]) if k}
