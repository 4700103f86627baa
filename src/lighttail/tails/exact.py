"""The exact law of the pseudo regret: two arms, Gaussian noise, UCB with a bonus that ignores time.

The merge lemma (docs/tails.md): with I_k(n) the index of arm k after n pulls and J_k(n) the least of
I_k(1), ..., I_k(n), pulls after the first of each arm happen in falling order of J. So the bad arm is
pulled at least m + 1 times in T rounds exactly when J_bad(m) > J_opt(T - m - 1): two independent
random walks, each against a boundary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.bonuses import Bonus
from lighttail.policies import UCB, Policy
from lighttail.problems import Bandit, Gaussian
from lighttail.simulate import usable_processors
from lighttail.statistics import Floats
from lighttail.validation import number, refuse, whole

COARSE, FINE, LAW, DENSE = 49, 161, 25, 4001  # points in the level u
LEAST = 1e-100  # smaller probabilities are given as 0


@dataclass(frozen=True, eq=False)
class ExactLaw:
    """The law of the pseudo regret: survival[n] = P(bad arm pulled n times or more), n = 0..horizon."""

    survival: Floats
    gap: float
    horizon: int

    def tail(self, regret: float) -> float:
        """P(pseudo regret >= regret)."""
        pulls = _least_pulls(number("regret", regret), self.gap)
        return float(self.survival[pulls]) if pulls <= self.horizon else 0.0


def exact_tail(policy: Policy, problem: Bandit, horizon: int, regret: float) -> float:
    """P(pseudo regret >= regret), exact to a few parts in 100,000 of itself; below 1e-100 it is 0.

    policy: UCB with a bonus that ignores time (Standard, LightTailed, ArmOptimal, or one's own).
    problem: two arms with Gaussian noise.

    >>> import lighttail as lt
    >>> problem = lt.Bandit([0.2, 0.8])
    >>> f"{lt.exact_tail(lt.UCB(lt.LightTailed(0.2)), problem, horizon=500, regret=100.1):.4e}"
    '1.0574e-05'
    """
    arms = _Arms.of(policy, problem, horizon)
    pulls = _least_pulls(number("regret", regret), arms.gap)
    if pulls <= 1:
        return 1.0  # every arm is pulled once
    if pulls >= horizon or math.isinf(arms.gap):
        return 0.0
    m, rest = pulls - 1, horizon - pulls
    levels = arms.levels(m, rest, COARSE)
    above, crossed = arms.bad_above(levels, m)[:, -1], arms.best_crossed(levels, rest)[:, -1]
    kept = _where_it_matters(above, crossed)
    levels = _between(levels, max(0, kept[0] - 1), min(levels.size - 1, kept[-1] + 1), FINE)
    above, crossed = arms.bad_above(levels, m)[:, -1], arms.best_crossed(levels, rest)[:, -1]
    return _integrate(levels, above, crossed)


def exact_law(policy: Policy, problem: Bandit, horizon: int) -> ExactLaw:
    """The whole law of the pseudo regret: one propagation gives every number of pulls."""
    arms = _Arms.of(policy, problem, horizon)
    survival = np.zeros(horizon + 1)
    survival[:2] = 1.0
    last = horizon - 2  # pulls after the first of each arm
    if math.isinf(arms.gap):
        return ExactLaw(survival, arms.gap, horizon)
    some = sorted(
        {min(last, 2**k) for k in range(last.bit_length() + 1)} | {last - last // 2**k for k in range(2, 9)}
    )
    grids = [arms.levels(m, horizon - m - 1, LAW) for m in some if m >= 1]
    levels: Floats = np.unique(np.round(np.concatenate(grids), 5)).astype(np.float64)
    above, crossed = arms.bad_above(levels, last), arms.best_crossed(levels, last)
    for m in range(1, last + 1):  # P(n_bad >= m + 1)
        inside = _where_it_matters(above[:, m - 1], crossed[:, last - m])
        part = slice(max(0, inside[0] - 3), inside[-1] + 4)
        survival[m + 1] = _integrate(levels[part], above[part, m - 1], crossed[part, last - m])
    # A survival function never rises; what rounding makes of one that is all but level may.
    return ExactLaw(np.minimum.accumulate(survival), arms.gap, horizon)


@dataclass(frozen=True)
class _Arms:
    """The two arms in units of the noise, and the radius of every number of pulls."""

    bad: float
    best: float
    gap: float  # in units of reward; infinite if the arms are equal
    sigma: float
    radius: Floats  # after 1, 2, ... pulls

    @classmethod
    def of(cls, policy: Any, problem: Any, horizon: int) -> _Arms:
        if not isinstance(problem, Bandit) or problem.arms != 2 or not isinstance(problem.noise, Gaussian):
            raise refuse("problem", problem, "a Bandit with two arms and Gaussian noise")
        if not isinstance(policy, UCB) or policy.bonus.changes_with_time():
            raise refuse("policy", policy, "UCB with a bonus that does not change with time")
        whole("horizon", horizon, 2, ", one pull for each of the 2 arms")
        policy.check(horizon, 2)
        sigma = problem.noise.sigma
        if sigma == 0.0:
            raise refuse("sigma", sigma, "above 0: without noise there is nothing to compute")
        bad, best = sorted(problem.means)
        gap = best - bad if best > bad else math.inf
        return cls(bad / sigma, best / sigma, gap, sigma, _radii(policy.bonus, horizon) / sigma)

    def levels(self, m: int, rest: int, points: int) -> Floats:
        """Levels u between which J_bad(m) > u > J_opt(rest) can happen.

        Dense around the arms' last indices; ever sparser below, where an arm's first draws were low.
        """
        ends = (self.bad + self.radius[m - 1], self.best + self.radius[rest - 1])
        slack = 12.0 / math.sqrt(max(1, min(m, rest)))
        low, high = min(*ends, self.bad) - slack, max(*ends, self.best) + slack
        below = low - np.geomspace(slack / 10.0, 12.0, points // 2)[::-1]
        return np.concatenate([below, np.linspace(low, high, points)])

    def bad_above(self, levels: Floats, steps: int) -> Floats:
        """P(J_bad(j) > u) for each level u and j = 1..steps."""
        return self._walks(self.bad, levels, steps)[0]

    def best_crossed(self, levels: Floats, steps: int) -> Floats:
        """P(J_opt(j) < u) for each level u and j = 1..steps."""
        return self._walks(self.best, levels, steps)[1]

    def _walks(self, mean: float, levels: Floats, steps: int) -> tuple[Floats, Floats]:
        from lighttail.kernels.crossing import REACH, SPACING, end_weights, walk

        n = np.arange(1.0, steps + 1.0)
        above, crossed = np.empty((levels.size, steps)), np.empty((levels.size, steps))
        ends = end_weights()
        reach = REACH + 2.0 * (self.best - self.bad)  # a rare walk makes up for the gap at every step

        def one(place: int) -> None:
            boundary = n * (levels[place] - mean - self.radius[:steps])
            falls = boundary - np.append(boundary[1:], 2.0 * boundary[-1] - boundary[-2:][0])
            least = np.minimum.accumulate(falls[::-1])[::-1].copy()
            walk(boundary, least, reach, SPACING, ends, above[place], crossed[place])

        one(0)  # compiles before the threads start
        with ThreadPoolExecutor(usable_processors()) as pool:
            list(pool.map(one, range(1, levels.size)))
        return above, crossed


def _radii(bonus: Bonus, horizon: int) -> Floats:
    params = bonus.params(horizon, 2)
    return np.array([bonus.radius(float(n), 0.0, *params) for n in range(1, horizon + 1)])


def _least_pulls(regret: float, gap: float) -> int:
    """The least number of bad pulls whose regret reaches that much."""
    if regret <= 0.0:
        return 0
    return math.ceil(regret / gap - 1e-9) if math.isfinite(gap) else 2**62


def _where_it_matters(above: Floats, crossed: Floats) -> Sequence[int]:
    """Places of the levels between which the integrand is not negligible."""
    density = crossed * np.abs(np.gradient(above))
    return np.flatnonzero(density >= 1e-13 * density.max())  # type: ignore[return-value]


def _between(levels: Floats, first: int, last: int, points: int) -> Floats:
    """More levels between two places, spaced like those that are there."""
    places = np.linspace(first, last, points)
    return np.interp(places, np.arange(levels.size), levels)


def _integrate(levels: Floats, above: Floats, crossed: Floats) -> float:
    """Integral of crossed d(-above) over the levels, from splines of the logarithms."""
    from scipy.interpolate import CubicSpline

    kept = (above > 1e-290) & (crossed > 1e-290)
    if np.count_nonzero(kept) < 4:
        return 0.0
    levels, above, crossed = levels[kept], above[kept], crossed[kept]
    dense = _between(levels, 0, levels.size - 1, DENSE)
    log_above, log_crossed = CubicSpline(levels, np.log(above)), CubicSpline(levels, np.log(crossed))
    density = -log_above(dense, 1) * np.exp(log_above(dense) + log_crossed(dense))
    value = float(np.trapezoid(density, dense))
    return min(1.0, value) if value >= LEAST else 0.0


def why_not_exact(policy, problem, horizon):
    try:
        _Arms.of(policy, problem, horizon)
    except ValueError as e:
        return str(e)
    return None


def exact_seconds(policy, problem, horizon, regret=None):
    return 5e-6 * horizon**2
