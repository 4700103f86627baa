"""Compiled loops that count the paths of a block.

Sums are added in the order of the paths, so that they have the same bits on every machine.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lighttail.kernels.build import Formula, kernel_maker


@cache
@kernel_maker
def value_counter(bin_of: Formula) -> Any:
    """count(values, unit, counts, low, high, bar, above): counts one quantity of the paths of a block.

    It adds one to the bin of each value, whose smallest and largest value are in `low` and `high`, and writes
    the values above the bar into `above`. It returns the number of these values, a middle (the mean up to
    rounding), the sum of the distances of all values from the middle, and the sum of the squared distances.
    """

    def count(values: Any, unit: Any, counts: Any, low: Any, high: Any, bar: Any, above: Any) -> Any:
        total, rest, squares = 0.0, 0.0, 0.0
        reached = 0
        for path in range(values.size):
            x = values[path]
            home = bin_of(x, unit)
            counts[home] += 1
            low[home] = min(low[home], x)
            high[home] = max(high[home], x)
            total += x
            if x > bar:
                above[reached] = x
                reached += 1
        middle = total / values.size
        for path in range(values.size):
            distance = values[path] - middle
            rest += distance
            squares += distance * distance
        return reached, middle, rest, squares

    return count


@cache
@kernel_maker
def pull_counter() -> Any:
    """count(pulls, width, counts, factors, lattice, gaps, lost): counts the pulls of the paths of a block.

    It adds one to the bin of each arm's pulls and, if there are factors, to the lattice at the sum of pulls *
    factor. It writes the pseudo regret of each path, the sum of pulls * gap, into `lost`.
    """

    def count(pulls: Any, width: Any, counts: Any, factors: Any, lattice: Any, gaps: Any, lost: Any) -> None:
        arms = pulls.shape[1]
        for path in range(lost.size):
            total = 0.0
            for arm in range(arms):
                n = pulls[path, arm]
                counts[arm, n if width == 1 else n // width] += 1
                total += n * gaps[arm]
            lost[path] = total
        if factors.size > 0:
            for path in range(lost.size):
                step = 0
                for arm in range(arms):
                    step += pulls[path, arm] * factors[arm]
                lattice[step] += 1

    return count
