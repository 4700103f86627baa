"""The certificate's parts: bounds on the chance that one arm is pulled more than m times, and the split of a
regret over the arms for which the sum of these chances is as small as possible.

All chances use one inequality (Ville): a walk W of independent sub-Gaussian steps meets a line that starts at
c > 0 and climbs by a > 0 per step with probability at most exp(-2 a c / sigma^2). See docs/bounds.md.

If no arm k is pulled more than m_k times and sum gap_k m_k < x, the pseudo regret is below x. So every such
choice of m gives a valid bound, sum_k chance_k(m_k). Only the sharpness of the bound depends on the search.

As m grows, a chance falls faster and faster in its first part, and then slower and slower in its second part.
docs/bounds.md ("Many arms") says what a price is and which choices the search tries: every price on a fixed
grid, every number of arms that are paid in full, and every free arm. The sum of each choice never rises with
x, so the smallest sum never rises with x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.bonuses import AnyTime, ArmOptimal, Bonus, Eqo, LightTailed, Standard
from lighttail.bounds.bound import is_gaussian, no_bound
from lighttail.problems import Bandit
from lighttail.records import Floats

# (gap in units of sigma, m) -> a bound on P(the arm is pulled more than m times)
ArmChance = Callable[[float, Floats], Floats]
LOOKED_AT = 10**6  # pulls: the radius of a user's bonus is computed for every n up to this number
LARGE = 1e100  # in units of sigma: larger numbers are cut, which only makes a bound larger
CLIMBS = (Standard, LightTailed, ArmOptimal, Eqo)  # n radius(n) never falls, so it is smallest at n = 1
EVERY, POINTS = 4096, 12_000  # the grid has every number of pulls up to EVERY, then POINTS in equal ratios
PRICE_RATIO = 1.08  # the ratio of neighbouring prices; the loss of sharpness is of second order in ln(ratio)


@dataclass(frozen=True)
class Chances:
    """Bounds for each arm alone.

    of: a bound on P(an arm with this gap is pulled more than m times, and the best arm is never dropped).
    end: the number of pulls m from which `of` is 0.
    drop: 2 c / sigma^2 if the best arm can be dropped (elimination), otherwise None.
    """

    of: ArmChance
    end: int
    drop: float | None


def index_chances(policy: Any, problem: Bandit, horizon: int, sigma: float) -> Chances | None:
    """The bounds for UCB, if the radius ignores time or is that of AnyTime; otherwise None."""
    bonus, params = policy.bonus, policy.params(horizon, problem.arms)
    gaussian, full = is_gaussian(problem), horizon - problem.arms + 1
    if type(bonus) is AnyTime:
        return Chances(_any_time(bonus, params, horizon, problem.arms, sigma, gaussian), full, None)
    if bonus.changes_with_time():
        return None
    scale = min(least_scale(bonus, horizon, params) / sigma, LARGE)
    return Chances(
        lambda gap, m: overtaken(gap, m, scale, _radii(bonus, params, m, sigma), gaussian), full, None
    )


def elimination_chances(policy: Any, problem: Bandit, horizon: int, sigma: float) -> Chances | None:
    """The bounds for elimination, if the radius ignores time; otherwise None."""
    bonus, params = policy.bonus, policy.params(horizon, problem.arms)
    if bonus.changes_with_time():
        return None
    gaussian, full = is_gaussian(problem), horizon - problem.arms + 1
    scale = min(least_scale(bonus, horizon, params) / sigma, LARGE)
    end, drop = min(full, (horizon - 1) // 2 + 1), 2.0 * scale / sigma
    return Chances(lambda gap, m: still_active(gap, m, _radii(bonus, params, m, sigma), gaussian), end, drop)


def _radii(bonus: Bonus, params: tuple[float, ...], m: Floats, sigma: float) -> Floats:
    return _scaled([bonus.finite_radius(n, 0.0, params) for n in m.tolist()], sigma, 10.0 * LARGE)


def _any_time(
    bonus: AnyTime, params: tuple[float, ...], horizon: int, arms: int, sigma: float, gaussian: bool
) -> ArmChance:
    """The bound for radius_t(n) = c_t / n with c_t = clock(t): the bound for the smallest c_t plus the bound
    for the largest c_t."""

    def chance(gap: float, m: Floats) -> Floats:
        total = np.zeros(m.size)
        for times in (m + arms, np.full(m.size, float(horizon))):
            clocks = [bonus.clock(t, *params) for t in times.tolist()]
            radii = _scaled([c / n for c, n in zip(clocks, m.tolist(), strict=True)], sigma, 10.0 * LARGE)
            total += overtaken(gap, m, _scaled(clocks, sigma, LARGE), radii, gaussian)
        return np.minimum(1.0, total)

    return chance


def _scaled(values: list[float], sigma: float, most: float) -> Floats:
    return np.array([min(value / sigma, most) for value in values])


def least_scale(bonus: Bonus, horizon: int, params: tuple[float, ...]) -> float:
    """The largest c with radius(n) >= c / n for n = 1, ..., T; 0 if no positive c has this property."""
    last = 1 if type(bonus) in CLIMBS else horizon
    if last > LOOKED_AT:
        why = f"the radius of {bonus} would have to be computed for each of more than {LOOKED_AT:,} pulls"
        raise no_bound("horizon", horizon, f"at most {LOOKED_AT} with a bonus of your own", why)
    return max(0.0, min(n * bonus.finite_radius(float(n), 0.0, params) for n in range(1, last + 1)))


def overtaken(gap: float, m: Floats, scale: Any, radius: Any, gaussian: bool) -> Floats:
    """For UCB: a bound on P(arm k is pulled more than m times). gap, scale and radius are in units of sigma.

    The bound is E min(1, exp(-lam (g - X))), where X is the mean noise of m rewards of arm k,
    g = gap - radius and lam = 2 scale. With s = 1 / sqrt(m) it is
    Phi(-g/s) + exp(-lam g + lam^2 s^2 / 2) Phi(g/s - lam s) for Gaussian noise. Otherwise it is at most the
    minimum of exp(-t g + t^2 s^2 / 2) over 0 <= t <= lam.

    >>> [f"{overtaken(0.6, np.array([50.0]), 11.15, 11.15 / 50, form)[0]:.3g}" for form in (True, False)]
    ['0.0139', '0.0286']
    """
    from scipy.special import log_ndtr

    g, lam, s = gap - radius, 2.0 * scale, 1.0 / np.sqrt(m)
    if gaussian:
        crossing = -lam * g + 0.5 * (lam * s) ** 2 + log_ndtr(g / s - lam * s)
        return np.asarray(np.minimum(1.0, np.exp(log_ndtr(-g / s)) + np.exp(np.minimum(crossing, 0.0))))
    t = np.clip(g / s**2, 0.0, lam)
    return np.asarray(np.exp(np.minimum(0.0, -t * g + 0.5 * (t * s) ** 2)))


def still_active(gap: float, m: Floats, radius: Any, gaussian: bool) -> Floats:
    """For elimination: a bound on P(neither the best arm nor arm k is dropped by phase m).

    gap and radius are in units of sigma. If neither arm is dropped, the mean of arm k is at most 2 radius
    below the mean of the best arm. With g = gap - 2 radius the bound is Phi(-g sqrt(m / 2)) for Gaussian
    noise, and exp(-g_+^2 m / 4) otherwise.

    >>> [f"{still_active(0.6, np.array([100.0]), 0.111, form)[0]:.3g}" for form in (True, False)]
    ['0.00376', '0.0281']
    """
    from scipy.special import ndtr

    g = gap - 2.0 * radius
    if gaussian:
        return np.asarray(ndtr(-g * np.sqrt(m / 2.0)))
    return np.asarray(np.exp(-(np.maximum(g, 0.0) ** 2) * m / 4.0))


def best_arm_dropped(drop: float, gaps: list[float], paid: int) -> float:
    """A bound on P(the best arm is dropped, and an arm with gap gaps[k], k >= paid, is pulled after that).

    gaps: the gaps of all arms but one best arm. Let W be the sums of the arms' noise. If arm j drops the best
    arm in phase n while arm k stays active, then Wj - W1 >= 2c + n gap_j and Wk - W1 >= n gap_k. The sum of
    these inequalities with weights 1 and r is a walk that meets a line, with probability at most
    exp(-drop (gap_j + r gap_k) / (1 + r + r^2)) for every r >= 0, where drop = 2 c / sigma^2. For k = j, r is
    0. For each j the result is the smaller of the sum over all k and the bound with r = 0.

    >>> f"{best_arm_dropped(2 * 5.574, [0.6], 0):.3g}"
    '0.00124'
    """
    total = 0.0
    for j, own in enumerate(gaps):
        others = (_least(drop, own, gaps[k]) for k in range(paid, len(gaps)) if k != j)
        itself = math.exp(-drop * own)
        total += min(itself, sum(others) + (itself if j >= paid else 0.0))
    return total if paid < len(gaps) else 0.0


def _least(drop: float, own: float, other: float) -> float:
    """The minimum of exp(-drop (own + r other) / (1 + r + r^2)) over r >= 0."""
    r = (math.sqrt(own * own - own * other + other * other) - own) / other if other > own else 0.0
    return math.exp(-drop * (own + r * other) / (1.0 + r + r * r))


class Arm:
    """The chance of one arm on a grid of pulls, where it never rises, and the arm's response to a price."""

    def __init__(self, gap: float, chance: Callable[[Floats], Floats], end: int, full: int) -> None:
        self.gap, self.end, self.full = gap, end, full
        self._chance = chance
        self.pulls = grid(end)
        self.values: Floats = np.minimum.accumulate(chance(self.pulls))
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
            out[inside] = np.minimum(known, self._chance(m[inside]))
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
                better = (others < best) & (over >= self.arms[free].gap)
                if better.any():
                    sums = others[better] + self.arms[free].with_budget(over[better])
                    best = min(best, float(sums.min()))
        return best


def grid(end: int) -> Floats:
    """Numbers of pulls from 1 to end - 1: every number up to EVERY, then POINTS numbers in equal ratios."""
    if end - 1 <= EVERY + POINTS:
        return np.arange(1.0, max(2, end))
    far = np.floor(np.geomspace(EVERY, end - 1, POINTS))
    return np.unique(np.concatenate([np.arange(1.0, EVERY), far]))
