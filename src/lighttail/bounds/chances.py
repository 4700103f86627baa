"""Bounds on the chance that one arm is pulled more than m times. The certificate is made of these bounds.

All of them use one inequality (Ville): a walk W of independent sub-Gaussian steps meets a line that starts at
c > 0 and climbs by a > 0 per step with probability at most exp(-2 a c / sigma^2). See docs/bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.bonuses import AnyTime, ArmOptimal, Bonus, Eqo, LightTailed, Standard
from lighttail.bounds.bound import is_gaussian, no_bound
from lighttail.outcomes.estimates import Floats
from lighttail.problems import Bandit

ArmChance = Callable[[float, Floats], Floats]  # (gap, m) -> a bound on P(the arm is pulled more than m times)
LOOKED_AT = 10**6  # pulls: the radius of a user's bonus is computed for every n up to this number
LARGE = 1e100  # in units of sigma: larger numbers are cut, which only makes a bound larger
CLIMBS = (Standard, LightTailed, ArmOptimal, Eqo)  # n radius(n) never falls, so it is smallest at n = 1


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

    def overtakes(gap: float, m: Floats) -> Floats:
        return overtaken(min(gap / sigma, LARGE), m, scale, _radii(bonus, params, m, sigma), gaussian)

    return Chances(overtakes, full, None)


def elimination_chances(policy: Any, problem: Bandit, horizon: int, sigma: float) -> Chances | None:
    """The bounds for elimination, if the radius ignores time; otherwise None."""
    bonus, params = policy.bonus, policy.params(horizon, problem.arms)
    if bonus.changes_with_time():
        return None
    gaussian, full = is_gaussian(problem), horizon - problem.arms + 1
    scale = min(least_scale(bonus, horizon, params) / sigma, LARGE)

    def survives(gap: float, m: Floats) -> Floats:
        return still_active(min(gap / sigma, LARGE), m, _radii(bonus, params, m, sigma), gaussian)

    return Chances(survives, min(full, (horizon - 1) // 2 + 1), 2.0 * scale / sigma)


def _radii(bonus: Bonus, params: tuple[float, ...], m: Floats, sigma: float) -> Floats:
    return _scaled([bonus.radius(n, 0.0, *params) for n in m.tolist()], sigma, 10.0 * LARGE)


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
            total += overtaken(min(gap / sigma, LARGE), m, _scaled(clocks, sigma, LARGE), radii, gaussian)
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
    return max(0.0, min(n * bonus.radius(float(n), 0.0, *params) for n in range(1, last + 1)))


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
