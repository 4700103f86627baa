"""Counting a block's paths, compiled. Sums run in the order of the paths: the same bits on every machine."""

from __future__ import annotations

from typing import Any

from lighttail.kernels.build import Formula, compiler, prepare


def value_counter(place: Formula) -> Any:
    """count(values, unit, counts, low, high, bar, above): one quantity of a block's paths.

    Adds one to each value's bin, of which `low` and `high` keep the smallest and the largest value; puts the
    values above the bar into `above`; returns how many those are, a middle (the mean but for rounding), and
    the sums of all values' distances from it and of the squares of these.
    """
    place = prepare(place)

    @compiler(place)
    def count(values: Any, unit: Any, counts: Any, low: Any, high: Any, bar: Any, above: Any) -> Any:
        total, rest, squares = 0.0, 0.0, 0.0
        found = 0
        for path in range(values.size):
            x = values[path]
            home = place(x, unit)
            counts[home] += 1
            low[home] = min(low[home], x)
            high[home] = max(high[home], x)
            total += x
            if x > bar:
                above[found] = x
                found += 1
        middle = total / values.size
        for path in range(values.size):
            distance = values[path] - middle
            rest += distance
            squares += distance * distance
        return found, middle, rest, squares

    return count


def pull_counter() -> Any:
    """count(pulls, width, counts, factors, lattice, gaps, lost): the pulls of a block's paths.

    Adds one to the bin of each arm's pulls and, where there are factors, to the place of the pseudo regret,
    sum of pulls * factor; fills in the pseudo regret itself, sum of pulls * gap.
    """

    @compiler()
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
