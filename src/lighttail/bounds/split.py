"""Splitting a regret over the arms so that the sum of their chances is least.

If no arm k is pulled more than m_k times and sum gap_k m_k < x, the pseudo regret is below x. So every
such choice of m gives a bound, sum_k chance_k(m_k), and only its sharpness depends on the search.

The search: a chance first falls ever faster with m and then ever slower. Where the sum is least, at most
one arm is in the first part; the others, in the second, have one price, the fall of the chance for a
unit of regret; and some, of small gap, may be paid in full, that is, allowed every pull there is. So: for
every price on a fixed grid, every number of arms paid in full and every choice of one free arm, which gets
what the others leave, take the sum; the least is the answer. For each choice it falls with x, so the
least does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
EVERY, POINTS = 4096, 12_000  # numbers of pulls looked at: all up to EVERY, then so many in ratio
PRICE_RATIO = 1.08  # neighbouring prices; what is lost is of second order in it


class Arm:
    """One arm's chance on a grid of pulls, never rising, and its responses to a price."""

    def __init__(self, gap: float, chance: Callable[[float, Floats], Floats], end: int, horizon: int) -> None:
        self.gap, self.end, self.full = gap, end, horizon
        self._chance = chance
        self.pulls = grid(end)
        self.values: Floats = np.minimum.accumulate(chance(gap, self.pulls))
        self._hull()

    def _hull(self) -> None:
        """The corners of the lower convex hull from the steepest fall on: the second part."""
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
        """The regret spent, and the chance, where one more unit of regret is no longer worth the price."""
        chosen = self.corners[np.searchsorted(-self.falls, -prices, side="right") - 1]
        return self.gap * self.pulls[chosen], self.values[chosen]

    def with_budget(self, budget: Floats) -> Floats:
        """The chance when that much regret may be spent on this arm; 1 where not even one pull fits."""
        m = np.floor(budget / self.gap)
        out = np.where(m >= self.end, 0.0, 1.0)
        inside = (m >= 1.0) & (m < self.end)
        if inside.any():
            known = self.values[np.searchsorted(self.pulls, m[inside], side="right") - 1]
            out[inside] = np.minimum(known, self._chance(self.gap, m[inside]))
        return out

    def mean_pulls(self) -> float:
        """A bound on the mean number of pulls: 1 + sum over m of the chance, taken from the left."""
        return 1.0 + float(np.sum(self.values * np.diff(np.append(self.pulls, self.end))))


class Split:
    """The least sum of the arms' chances for any regret.

    extra[e]: what is added when the e arms of smallest gap are paid in full.
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
        # So a number of pulls that reaches the regret exactly, up to rounding, counts as reaching it.
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
                end = None if rest else 1  # without another arm all prices are one
                others = self.value[rest, :end].sum(axis=0) + self.extra[paid]
                over = left - self.spent[rest, :end].sum(axis=0)
                kept = (others < best) & (over >= self.arms[free].gap)
                if kept.any():
                    sums = others[kept] + self.arms[free].with_budget(over[kept])
                    best = min(best, float(sums.min()))
        return best


def grid(end: int) -> Floats:
    """Numbers of pulls from 1 to end - 1: every one as far as EVERY, then POINTS in equal ratios."""
    if end - 1 <= EVERY + POINTS:
        return np.arange(1.0, max(2, end))
    far = np.floor(np.geomspace(EVERY, end - 1, POINTS))
    return np.unique(np.concatenate([np.arange(1.0, EVERY), far]))
