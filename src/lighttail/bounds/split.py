"""Splitting a regret over the arms so that the sum of the arms' chances is as small as possible.

If no arm k is pulled more than m_k times and sum gap_k m_k < x, the pseudo regret is below x. So every such
choice of m gives a valid bound, sum_k chance_k(m_k). Only the sharpness of the bound depends on the search.

As m grows, a chance falls faster and faster in its first part, and then slower and slower in its second part.
docs/bounds.md ("Many arms") says what a price is and which choices the search tries: every price on a fixed
grid, every number of arms that are paid in full, and every free arm. The sum of each choice never rises with
x, so the smallest sum never rises with x.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lighttail.outcomes.estimates import Floats

EVERY, POINTS = 4096, 12_000  # the grid has every number of pulls up to EVERY, then POINTS in equal ratios
PRICE_RATIO = 1.08  # the ratio of neighbouring prices; the loss of sharpness is of second order in ln(ratio)


class Arm:
    """The chance of one arm on a grid of pulls, where it never rises, and the arm's response to a price."""

    def __init__(self, gap: float, chance: Callable[[float, Floats], Floats], end: int, horizon: int) -> None:
        self.gap, self.end, self.full = gap, end, horizon
        self._chance = chance
        self.pulls = grid(end)
        self.values: Floats = np.minimum.accumulate(chance(gap, self.pulls))
        self._hull()

    def _hull(self) -> None:
        """Compute the corners of the lower convex hull of the second part, after the steepest fall."""
        regret, value = self.gap * self.pulls, self.values
        fall = -np.diff(value) / np.diff(regret)
        first = int(np.argmax(fall)) if fall.size else 0
        corners, falls = [first], [np.inf]
        for i in range(first + 1, value.size):
            while True:
                last = corners[-1]
                slope = (value[last] - value[i]) / (regret[i] - regret[last])
                if slope < falls[-1]:
                    break
                corners.pop()
                falls.pop()
            corners.append(i)
            falls.append(slope)
        self.corners, self.falls = np.array(corners), np.array(falls)

    def at_price(self, prices: Floats) -> tuple[Floats, Floats]:
        """The regret that is spent on this arm, and the arm's chance, at each price.

        More regret is spent as long as the chance falls by more than the price per unit of regret.
        """
        chosen = self.corners[np.searchsorted(-self.falls, -prices, side="right") - 1]
        return self.gap * self.pulls[chosen], self.values[chosen]

    def with_budget(self, budget: Floats) -> Floats:
        """The chance if the regret `budget` may be spent on this arm; 1 if not even one pull fits."""
        m = np.floor(budget / self.gap)
        out = np.where(m >= self.end, 0.0, 1.0)
        inside = (m >= 1.0) & (m < self.end)
        if inside.any():
            known = self.values[np.searchsorted(self.pulls, m[inside], side="right") - 1]
            out[inside] = np.minimum(known, self._chance(self.gap, m[inside]))
        return out

    def mean_pulls(self) -> float:
        """A bound on the mean number of pulls: 1 + the sum of the chance over m, from values at left ends."""
        return 1.0 + float(np.sum(self.values * np.diff(np.append(self.pulls, self.end))))


class Split:
    """The smallest sum of the arms' chances for a given regret.

    extra[e]: the number that is added to the sum if the e arms with the smallest gaps are paid in full.
    """

    def __init__(self, arms: list[Arm], extra: list[float]) -> None:
        self.arms, self.extra = sorted(arms, key=lambda arm: arm.gap), extra
        falls = np.concatenate([arm.falls[1:] for arm in self.arms])
        falls = falls[falls > 1e-300]
        self.prices: Floats = np.array([1.0])
        if falls.size:
            steps = np.ceil(np.log(falls.max() / falls.min()) / np.log(PRICE_RATIO)) + 1.0
            self.prices = falls.max() * PRICE_RATIO ** -np.arange(steps)
        responses = [arm.at_price(self.prices) for arm in self.arms]
        self.spent = np.array([spent for spent, _ in responses])
        self.value = np.array([value for _, value in responses])

    def least(self, regret: float) -> float:
        """The bound on P(pseudo regret >= regret)."""
        # A number of pulls whose regret equals `regret` up to rounding must count as reaching `regret`.
        budget = regret * (1.0 - 1e-12) - 1e-9 * self.arms[0].gap
        best = 1.0
        for paid in range(len(self.arms) + 1):
            left = budget - sum(arm.gap * arm.full for arm in self.arms[:paid])
            if left <= 0.0 or self.extra[paid] >= best:
                continue
            if paid == len(self.arms):
                best = min(best, self.extra[paid])
            for free in range(paid, len(self.arms)):
                rest = [k for k in range(paid, len(self.arms)) if k != free]
                end = None if rest else 1  # without another arm the price does not matter
                others = self.value[rest, :end].sum(axis=0) + self.extra[paid]
                over = left - self.spent[rest, :end].sum(axis=0)
                kept = (others < best) & (over >= self.arms[free].gap)
                if kept.any():
                    sums = others[kept] + self.arms[free].with_budget(over[kept])
                    best = min(best, float(sums.min()))
        return best


def grid(end: int) -> Floats:
    """Numbers of pulls from 1 to end - 1: every number up to EVERY, then POINTS numbers in equal ratios."""
    if end - 1 <= EVERY + POINTS:
        return np.arange(1.0, max(2, end))
    far = np.floor(np.geomspace(EVERY, end - 1, POINTS))
    return np.unique(np.concatenate([np.arange(1.0, EVERY), far]))
