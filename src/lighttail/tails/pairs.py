"""Two arms: one route for each number of pulls of the best arm, and a bound on every weight.

The bad arm is chosen an (m + 1)-th time only if a_2 S_2 - a_1 S_1 >= b, where S are the sums of rewards and
a_1, a_2 and b depend on the numbers of pulls. docs/rare-events.md derives what is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.noises.tilts import Tilts
from lighttail.records import Floats
from lighttail.tails.mixture import Routes
from lighttail.tails.task import Task

PRUNED = 1e-12  # share of the bound that all routes that are left out may have together


@dataclass(frozen=True)
class Ways:
    """Pulls of the best and of the bad arm, and the constraint on their sums; one entry per way."""

    n: Floats
    m: Floats
    best: Floats  # a_1
    bad: Floats  # a_2
    least: Floats  # b


def ways(policy: Any, horizon: int, m: int) -> Ways:
    """The ways in which the bad arm of two can be chosen an (m + 1)-th time within the horizon."""
    bonus, params = policy.bonus, policy.params(horizon, 2)

    def radius(n: float, t: float) -> float:
        found: float = bonus.finite_radius(n, bonus.clock(t, *params), params)
        return found

    if policy.plays_by == "radius":  # the bad arm's index is at least the best arm's
        n = np.arange(1.0, horizon - m)
        least = np.array([radius(k, k + m + 1.0) - radius(float(m), k + m + 1.0) for k in n])
        return Ways(n, np.full(n.size, float(m)), 1.0 / n, np.full(n.size, 1.0 / m), least)
    # The best arm is dropped after phase n, or both arms are active after phase m.
    dropped = np.arange(1.0, min(m, horizon - m - 1) + 1.0)
    phases = np.append(dropped, float(m)) if 2 * m < horizon else dropped
    least = np.array([2.0 * radius(k, 2.0 * k) for k in phases])
    least[dropped.size :] *= -1.0
    return Ways(phases, phases, 1.0 / phases, 1.0 / phases, least)


def pair_tilts(where: Ways, means: tuple[float, float], tilts: Tilts) -> tuple[Floats, Floats]:
    """(nu, cost) of every way. Where the constraint holds, the tilts lam_1 = -nu a_1 and lam_2 = nu a_2 have
    a log-likelihood ratio of at least

        cost(nu) = nu b - n psi_1(-nu a_1) - m psi_2(nu a_2),

    a concave function whose highest point is found by bisection of its slope. A way that no rewards
    allow has an infinite cost.
    """

    def slope(nu: Floats) -> Floats:
        low, high = tilts.mean(means[0], -nu * where.best), tilts.mean(means[1], nu * where.bad)
        return where.least + where.n * where.best * low - where.m * where.bad * high

    low, high = np.zeros(where.n.size), np.full(where.n.size, 1e-30 / tilts.unit)
    for _ in range(50):  # until the slope is negative
        rising = slope(high) > 0.0
        low, high = np.where(rising, high, low), np.where(rising, 16.0 * high, high)
    impossible = slope(high) > 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        rising = slope(middle) > 0.0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    nu = np.where(slope(np.zeros(where.n.size)) <= 0.0, 0.0, low)
    cost = nu * where.least - where.n * tilts.psi(means[0], -nu * where.best)
    cost -= where.m * tilts.psi(means[1], nu * where.bad)
    return nu, np.where(impossible, math.inf, np.maximum(cost, 0.0))


def pair_routes(task: Task) -> Routes | None:
    """The routes to a pseudo regret of two arms; None if no rewards lead to this regret."""
    problem = task.problem
    bad, best = np.argsort(problem.means, kind="stable")
    m = max(1, math.ceil(task.target / problem.gaps[bad] - 1e-9) - 1)
    where = ways(task.policy, task.horizon, m)
    nu, cost = pair_tilts(where, (problem.means[best], problem.means[bad]), task.tilts)
    if not np.isfinite(cost).any():
        return None
    likely = np.flatnonzero(np.isfinite(cost) & (cost <= cost.min() - math.log(PRUNED / cost.size)))
    lam = np.zeros((likely.size, 2, 1))
    lam[:, best, 0], lam[:, bad, 0] = -nu[likely] * where.best[likely], nu[likely] * where.bad[likely]
    caps = np.full(lam.shape, math.inf)
    if task.policy.plays_by == "phases":  # the tilt ends with the phase
        caps[:, :, 0] = where.n[likely, None]
    log_bound = float(np.logaddexp.reduce(-cost))
    return Routes(-cost[likely], lam, caps, np.zeros(lam.shape), np.zeros((likely.size, 2)), log_bound)
