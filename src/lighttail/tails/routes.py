"""Routes to a large loss: how the arms' means would have to look, and what that costs.

A route tilts every arm until the loss is reached. Its cost is the relative entropy of the tilted
path, so exp(-cost) is about how likely the route is. docs/rare-events.md derives what is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.policies import UCB, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.problems import Bandit
from lighttail.statistics import Floats
from lighttail.tails.tilts import Family, divergence

PRUNED = 1e-12  # share of the bound that routes left out may have together
LEVELS, GRID = 41, 240  # levels, and numbers of pulls that are tried for an arm
NOTHING, HALVINGS = 1e-12, 22  # multipliers from next to nothing, halved so often on a log scale
AROUND = 12.0  # levels that cost so much more than the cheapest do not matter
CHOICES, NEAR, SHARP = 12, 5.0, 2.0  # tilts of an arm, for pulls that cost at most so much more
REACHES = (0.3, 0.6, 0.9)  # posterior draws that a path may meet, in units of sqrt(2 ln T) deviations
PHASES = 80  # phases after which the good arms may be dropped


@dataclass(frozen=True)
class Routes:
    """One entry a route; an arm chooses among its tilts with probabilities exp(log_q).

    log_bound: on the event no weight exceeds its exponential, if p is proportional to exp(-cost);
    nan where no such bound is known. watch, caps: as the kernel takes them.
    """

    cost: Floats  # [route]
    lam: Floats  # [route, arm, choice]
    log_q: Floats  # [route, arm, choice]
    pulls: Floats  # [route, arm], about how many the route takes
    log_bound: float
    watch: Any
    caps: Floats


def routes(policy: Policy, problem: Bandit, family: Family, horizon: int, loss: float) -> Routes | None:
    """The routes to a loss, or None for a policy for which none are known."""
    if problem.arms == 2 and isinstance(policy, (UCB, SuccessiveElimination)):
        return _pair_routes(policy, problem, family, horizon, loss)
    if isinstance(policy, SuccessiveElimination):
        return _elimination_routes(policy, problem, family, horizon, loss)
    if isinstance(policy, UCB):
        return _level_routes(policy, problem, family, horizon, loss, 1.0)
    if isinstance(policy, ThompsonSampling):
        return together([_level_routes(policy, problem, family, horizon, loss, reach) for reach in REACHES])
    return None


def together(parts: list[Routes]) -> Routes:
    """All routes in one; those with one choice get as many as the others. The last names the rest."""
    choices = max(part.lam.shape[2] for part in parts)

    def widened(values: Floats, log: bool) -> Floats:
        if values.shape[2] == choices:
            return values
        return np.repeat(values, choices, axis=2) - (math.log(choices) if log else 0.0)

    return Routes(
        np.concatenate([part.cost for part in parts]),
        np.concatenate([widened(part.lam, False) for part in parts]),
        np.concatenate([widened(part.log_q, True) for part in parts]),
        np.concatenate([part.pulls for part in parts]),
        parts[-1].log_bound,
        parts[-1].watch,
        parts[-1].caps,
    )


# Two arms: one route for each number n of pulls of the best arm. To choose the bad arm an (m+1)-th
# time takes a_2 S_2 - a_1 S_1 >= b, with S the sums of rewards and a_1, a_2, b known for n and m.


@dataclass(frozen=True)
class Ways:
    """Pulls of the best and of the bad arm, and the constraint on their sums; one entry a way."""

    n: Floats
    m: Floats
    best: Floats  # a_1
    bad: Floats  # a_2
    least: Floats  # b


def ways(policy: UCB | SuccessiveElimination, horizon: int, m: int) -> Ways:
    """How the bad arm of two can be chosen an (m + 1)-th time in so many rounds."""
    bonus, params = policy.bonus, policy.params(horizon, 2)

    def radius(n: float, t: float) -> float:
        return bonus.radius(n, bonus.clock(t, *params), *params)

    if isinstance(policy, UCB):  # its index is at least the best arm's
        n = np.arange(1.0, horizon - m)
        least = np.array([radius(k, k + m + 1.0) - radius(float(m), k + m + 1.0) for k in n])
        return Ways(n, np.full(n.size, float(m)), 1.0 / n, np.full(n.size, 1.0 / m), least)
    # It drops the best arm after phase n, or both are active after phase m.
    dropped = np.arange(1.0, min(m, horizon - m - 1) + 1.0)
    phases = np.append(dropped, float(m)) if 2 * m < horizon else dropped
    least = np.array([2.0 * radius(k, 2.0 * k) for k in phases])
    least[dropped.size :] *= -1.0
    return Ways(phases, phases, 1.0 / phases, 1.0 / phases, least)


def pair_tilts(where: Ways, means: tuple[float, float], family: Family) -> tuple[Floats, Floats]:
    """(nu, cost) of every way: lam_1 = -nu a_1 and lam_2 = nu a_2 have, where the constraint holds, a
    log-likelihood ratio of at least

        cost(nu) = nu b - n psi_1(-nu a_1) - m psi_2(nu a_2),

    a concave function whose highest point is found by bisection of its slope. A way that no rewards
    allow costs infinitely much.
    """

    def slope(nu: Floats) -> Floats:
        low, high = family.mean(means[0], -nu * where.best), family.mean(means[1], nu * where.bad)
        return where.least + where.n * where.best * low - where.m * where.bad * high

    low, high = np.zeros(where.n.size), np.full(where.n.size, 1e-30)
    for _ in range(50):  # until the slope is negative
        rising = slope(high) > 0.0
        low, high = np.where(rising, high, low), np.where(rising, 16.0 * high, high)
    impossible = slope(high) > 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        rising = slope(middle) > 0.0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    nu = np.where(slope(np.zeros(where.n.size)) <= 0.0, 0.0, low)
    cost = nu * where.least - where.n * family.psi(means[0], -nu * where.best)
    cost -= where.m * family.psi(means[1], nu * where.bad)
    return nu, np.where(impossible, math.inf, np.maximum(cost, 0.0))


def _pair_routes(policy: Any, problem: Bandit, family: Family, horizon: int, loss: float) -> Routes:
    bad, best = np.argsort(problem.means, kind="stable")
    m = max(1, math.ceil(loss / problem.gaps[bad] - 1e-9) - 1)
    where = ways(policy, horizon, m)
    nu, cost = pair_tilts(where, (problem.means[best], problem.means[bad]), family)
    kept = np.flatnonzero(np.isfinite(cost) & (cost <= cost.min() - math.log(PRUNED / cost.size)))
    lam, pulls = np.zeros((kept.size, 2, 1)), np.empty((kept.size, 2))
    lam[:, best, 0], lam[:, bad, 0] = -nu[kept] * where.best[kept], nu[kept] * where.bad[kept]
    pulls[:, best], pulls[:, bad] = where.n[kept], where.m[kept]
    elimination = isinstance(policy, SuccessiveElimination)
    return Routes(
        cost=cost[kept],
        lam=lam,
        log_q=np.zeros(lam.shape),
        pulls=pulls,
        log_bound=float(np.logaddexp.reduce(-cost)),
        watch=np.array([best] if elimination else [], dtype=np.int64),
        caps=np.full(2, float(m) if elimination else math.inf),
    )


# More arms: a rare path ends with all indices near one level l, arm k after n_k pulls. To put its
# index there the arm's mean reward must be mean_at(l, n_k), which costs n_k KL(that, true mean).


def mean_at(policy: Policy, horizon: int, arms: int, level: Any, n: Floats, reach: float) -> Floats:
    """The mean reward after n pulls that puts an arm's index at the level in the last round.

    The index of Thompson sampling is its posterior mean and `reach` times sqrt(2 ln T) deviations: to
    be passed over in T rounds takes about that.
    """
    params = policy.params(horizon, arms)

    def each(formula: Any) -> Floats:
        return np.array([formula(float(k)) for k in n.ravel()]).reshape(n.shape)

    if isinstance(policy, UCB):
        bonus, clock = policy.bonus, policy.bonus.clock(float(horizon), *params)
        return level - each(lambda k: bonus.radius(k, clock, *params))  # type: ignore[no-any-return]
    assert isinstance(policy, ThompsonSampling)
    reach *= math.sqrt(2.0 * math.log(horizon))
    empty = each(lambda k: policy.posterior_mean(k, 0.0, *params))
    unit = each(lambda k: policy.posterior_mean(k, 1.0, *params)) - empty
    spread = each(lambda k: policy.posterior_sd(k, *params))
    return (level - reach * spread - empty) / (unit * n)  # type: ignore[no-any-return]


def cheapest(cost: Floats, pulls: Floats, gaps: Floats, horizon: int, loss: float) -> tuple[Any, Floats]:
    """For each level the places in `pulls` with the least cost: sum n <= T, sum gap n >= loss.

    cost: [level, arm, place]. Bisection in two multipliers, a price of a pull and a reward for its
    gap, under which the arms decide on their own. Also returns how far above the least the cost of
    every other place is at these multipliers.
    """
    levels = cost.shape[0]
    top = float(np.max(cost, where=np.isfinite(cost), initial=0.0)) + 1.0

    def net(price: Floats, reward: Floats) -> Floats:
        each = price[:, None] - reward[:, None] * gaps[None, :]
        return cost + each[:, :, None] * pulls

    def count(price: Floats, reward: Floats) -> Any:
        return np.argmin(net(price, reward), axis=2)

    def priced(reward: Floats) -> Floats:
        low, high = np.full(levels, NOTHING * top), np.full(levels, top)
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            many = pulls[count(middle, reward)].sum(axis=1) > horizon
            low, high = np.where(many, middle, low), np.where(many, high, middle)
        return high

    most = top / gaps[gaps > 0.0].min()
    low, high = np.full(levels, NOTHING * most), np.full(levels, most)
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        enough = (pulls[count(priced(middle), middle)] * gaps).sum(axis=1) >= loss
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    value = net(priced(high), high)
    place = np.argmin(value, axis=2)
    least = np.take_along_axis(value, place[:, :, None], axis=2)
    return place, value - np.where(np.isfinite(least), least, 0.0)


def _choices(above: Floats, pulls: Floats) -> tuple[Floats, Floats]:
    """Numbers of pulls for which each arm is tilted, and the logs of their shares."""
    near = above <= NEAR
    first = pulls[np.argmax(near, axis=2)]
    last = pulls[pulls.size - 1 - np.argmax(near[:, :, ::-1], axis=2)]
    n = first[:, :, None] * (last / first)[:, :, None] ** np.linspace(0.0, 1.0, CHOICES)
    log_q = np.empty_like(n)
    for level, arm in np.ndindex(*first.shape):
        log_q[level, arm] = -SHARP * np.interp(
            np.log(n[level, arm]), np.log(pulls), np.minimum(above[level, arm], 1e3)
        )
    return n, log_q - np.logaddexp.reduce(log_q, axis=2)[:, :, None]


def _level_routes(
    policy: Policy, problem: Bandit, family: Family, horizon: int, loss: float, reach: float
) -> Routes:
    means, gaps = np.array(problem.means), np.array(problem.gaps)
    pulls = np.unique(np.round(np.geomspace(1.0, horizon, GRID)))
    zero, one = (mean_at(policy, horizon, problem.arms, level, pulls, reach) for level in (0.0, 1.0))

    def at(levels: Floats) -> tuple[Floats, Any, Floats]:
        cost = pulls * divergence(family, means[:, None], zero + (one - zero) * levels[:, None, None])
        place, above = cheapest(cost, pulls, gaps, horizon, loss)
        return np.take_along_axis(cost, place[:, :, None], axis=2)[:, :, 0].sum(axis=1), place, above

    # A level is a mean and a radius; wider if the cheapest is at the window's end, then closer.
    margin = 0.5 * float(np.ptp(means)) + float(abs(np.interp(horizon / problem.arms / 2.0, pulls, zero)))
    levels = np.linspace(means.min() - margin, means.max() + margin, LEVELS)
    for _ in range(12):
        total, place, above = at(levels)
        inside = np.flatnonzero(total <= total.min() + AROUND)
        ends = levels[max(0, inside[0] - 1)], levels[min(LEVELS - 1, inside[-1] + 1)]
        if inside[0] == 0 or inside[-1] == LEVELS - 1:
            if not np.isfinite(total).any() or inside.size > LEVELS // 2:
                break
            reach = levels[-1] - levels[0]
            levels = np.linspace(levels[0] - reach, levels[-1] + reach, LEVELS)
        elif inside.size >= LEVELS // 2:
            break
        else:
            levels = np.linspace(*ends, LEVELS)
    n, log_q = _choices(above, pulls)
    moved = mean_at(policy, horizon, problem.arms, levels[:, None, None], n, reach)
    lam = family.lam(means[:, None], moved)
    kept = np.flatnonzero(np.isfinite(total))
    total = total[kept]
    if isinstance(policy, ThompsonSampling) and kept.size:
        total = total - total.min()  # its index is made up: only its own levels are compared
    return _unbounded(total, lam[kept], log_q[kept], pulls[place[kept]])


def _elimination_routes(
    policy: SuccessiveElimination, problem: Bandit, family: Family, horizon: int, loss: float
) -> Routes:
    """Either the good arms are all dropped after some phase, or bad arms stay for long.

    Good arms are those with which the loss is not reached even if they are pulled to the end.
    """
    means, gaps = np.array(problem.means), np.array(problem.gaps)
    arms, params = problem.arms, policy.params(horizon, problem.arms)
    good = gaps * horizon < loss
    width = max(float(np.ptp(means)), 1e-12)
    found: list[tuple[float, Floats, Floats]] = []

    def add(phase: float, moved: Floats) -> None:
        """The cheapest of the arms' means in `moved`, one row a centre."""
        cost = phase * divergence(family, means, moved).sum(axis=1)
        row = int(np.argmin(cost))
        found.append((float(cost[row]), family.lam(means, moved[row]), np.full(arms, phase)))

    def radius(phase: float) -> float:
        return policy.bonus.radius(phase, policy.bonus.clock(arms * phase, *params), *params)

    def centres_at(phase: float) -> Floats:
        reach = width + 2.0 * radius(phase)
        return np.linspace(means.min() - reach, means.max() + reach, 401)[:, None]

    for phase in np.unique(np.round(np.geomspace(1.0, max(1.0, horizon / arms), PHASES))):
        centres = centres_at(phase)
        lost = phase * gaps.sum() + gaps * (horizon - phase * arms)
        for winner in np.flatnonzero(~good & (lost >= loss)):
            below = np.where(good, np.minimum(means, centres - 2.0 * radius(phase)), means)
            below[:, winner] = centres[:, 0]
            add(phase, below)
    falling = np.argsort(-gaps, kind="stable")[: np.count_nonzero(gaps)]
    for order in (falling, falling[::-1]):
        for count in range(1, order.size + 1):
            stay = np.isin(np.arange(arms), order[:count])
            phase = loss / gaps[stay].sum()
            if phase * (1.0 + count) > horizon:
                continue
            centres = centres_at(phase)
            moved = np.where(stay, np.maximum(means, centres - 2.0 * radius(phase)), means)
            moved = np.where(gaps == 0.0, np.minimum(means, centres), moved)
            add(phase, moved)
    cost, lam, pulls = (np.array(part) for part in zip(*found, strict=True))
    kept = np.flatnonzero(cost <= cost.min() - math.log(PRUNED))
    lam = lam[kept][:, :, None]
    return _unbounded(cost[kept], lam, np.zeros(lam.shape), pulls[kept], watch=np.flatnonzero(good))


def _unbounded(cost: Floats, lam: Floats, log_q: Floats, pulls: Floats, watch: Any = ()) -> Routes:
    watched = np.array(watch, dtype=np.int64)
    return Routes(cost, lam, log_q, pulls, math.nan, watched, np.full(lam.shape[1], math.inf))
