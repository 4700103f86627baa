"""The end of a path in a kernel: what the path earned, and how often it pulled each arm.

A reward is the sum of the arms' sums in the order of the arms, in every kernel and in the oracle of the
tests: another order would round differently.
"""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable


@register_jitable(forceinline=True)
def sum_of(sums: Any) -> Any:
    """The sums of all arms, added in the order of the arms."""
    total = 0.0
    for arm in range(sums.size):
        total += sums[arm]
    return total


@register_jitable(forceinline=True)
def close_path(path: Any, sums: Any, counts: Any, rewards: Any, pulls: Any) -> None:
    """Fill in the path's reward and pulls; counts: the arms' pulls as floats."""
    for arm in range(sums.size):
        pulls[path, arm] = int(counts[arm])
    rewards[path] = sum_of(sums)
