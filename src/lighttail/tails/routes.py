"""Routes to a large loss: what the arms' rewards would have to be, and how likely such rewards are.

A cell of routes says for every arm and every number of pulls n which rewards the arm needs: their mean after
n pulls is at most one value, and their mean one pull earlier is at least another. Both conditions are
one-sided, so an arm whose true mean meets them costs nothing. In a cell, the arms choose their pulls
independently, with a price per pull and a premium per loss. docs/rare-events.md defines the words and
derives what is used here.
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

LUCK, MORE = 8, 1.12  # lucks that are tried, from 0 to MORE times the luck that is enough alone
NOTHING, MUCH = 1e-12, 4.0  # between which a multiplier is sought, in units of the largest cost
CHOICES = 12  # tilts of an arm in each direction at most
GRID = 50  # numbers of pulls from FEW on that are tried for an arm
FEW = 24  # smaller numbers of pulls are tried one by one
LEAST = 1e-6  # numbers of pulls below this share of the likeliest number are not offered as a choice


def lucks(task: Task) -> Floats:
    """The lucks that are tried: common tilts of all rewards, from 0 to more than is enough alone."""
    best = max(task.problem.means)
    enough = best - task.target / task.horizon
    if not task.luck_counts or enough >= best:
        return np.zeros(1)
    most = min(float(task.tilts.lam(best, enough)), 0.0)
    return most * np.linspace(0.0, MORE, LUCK)


def losses(task: Task, later: Floats) -> tuple[Floats, Floats]:
    """What a pull of each arm loses under the luck `later`, [cell, arm], and the credit of each cell.

    The credit is the least value of later * (sum of all rewards) on the event.
    """
    best = float(task.means.max())
    gaps = best - task.tilts.mean(task.means, later[:, None])
    credit = later * (best * task.horizon - task.target) if task.luck_counts else np.zeros(later.size)
    return gaps, credit


def pulls_tried(most: int) -> tuple[Floats, Floats]:
    """Numbers of pulls up to `most`, all small and some large ones, and how many numbers each stands for."""
    if most <= FEW + GRID:
        n = np.arange(1.0, most + 1.0)
    else:
        n = np.unique(np.round(np.append(np.arange(1.0, FEW), np.geomspace(FEW, most, GRID))))
    edges = np.append(np.append(0.5, 0.5 * (n[1:] + n[:-1])), most + 0.5)
    return n, np.diff(edges)


@dataclass(frozen=True)
class Table:
    """The cost of every arm's numbers of pulls, and the tilts that lead to them: [cell, arm, pulls].

    pulls, count: see `pulls_tried`. Two tilts meet the two conditions: one holds the mean down at the last
    pull, and one holds the mean up at the pull before; each is `later` if no tilt is needed. cost: the larger
    of their least log-likelihood ratios; infinite if no rewards meet both conditions. tilt: the one with the
    larger cost. until: how many rewards a tilt that holds the mean down tilts.
    """

    pulls: Floats
    count: Floats
    cost: Floats
    tilt: Floats
    later: Floats  # [cell]
    held: Any  # [cell, arm, pulls]: whether `tilt` holds the mean down
    until: float = math.inf

    @property
    def base(self) -> Floats:
        """Log weights of the numbers of pulls without price and premium."""
        return np.where(np.isfinite(self.cost), -self.cost, -math.inf) + np.log(self.count)

    @property
    def top(self) -> Floats:
        """A number above all finite costs of each cell."""
        finite = np.isfinite(self.cost)
        return np.max(np.abs(self.cost), where=finite, initial=0.0, axis=(1, 2)) + 10.0  # type: ignore[no-any-return]

    def chances(self, gaps: Floats, price: Floats, premium: Floats) -> Floats:
        """The chance of each number of pulls, given the cell and its multipliers (see `settled`)."""
        each = price[:, None] - premium[:, None] * gaps
        with np.errstate(invalid="ignore"):
            value = np.log(self.count) - self.cost - each[:, :, None] * self.pulls
            mass = np.exp(value - np.max(value, axis=2, keepdims=True))
            return mass / mass.sum(axis=2, keepdims=True)  # type: ignore[no-any-return]

    def weighed(self, each: Floats) -> tuple[Floats, Floats]:
        """(ln of the sum of weights, expected pulls) of every arm at a price `each` per pull: [cell, arm]."""
        value = self.base - each[:, :, None] * self.pulls
        high = np.max(value, axis=2, keepdims=True)
        high[~np.isfinite(high)] = 0.0
        mass = np.exp(value - high)
        total = mass.sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(total) + high[:, :, 0], (mass * self.pulls).sum(axis=2) / total


def rate(tilts: Tilts, mean: Any, lam: Any, later: Any, n: Any, bound: Any) -> Floats:
    """The least log-likelihood ratio of n rewards that are tilted by `lam`, if their mean is at the `bound`
    or beyond, without the part later * (sum of rewards), which the credit counts:

        (lam - later) n bound - n psi(lam).
    """
    return (lam - later) * n * bound - n * tilts.psi(mean, lam)  # type: ignore[no-any-return]


def table_of(
    tilts: Tilts, means: Floats, grid: tuple[Floats, Floats], below: Floats, above: Floats, later: Floats
) -> Table:
    """The table of cells. below, above: [cell, arm, pulls], the mean of n rewards is at most `below`, and the
    mean of n - 1 rewards is at least `above`.

    A bound of inf (-inf) is no condition. later: [cell], the tilt of all other rewards.
    """
    n, count = grid
    mean, nu = means[:, None], later[:, None, None]
    asked_low, asked_high = np.isfinite(below), np.isfinite(above) & (n > 1.0)
    at_most = tilts.at_most(n, np.where(asked_low, below, mean))
    at_least = tilts.at_least(np.maximum(n - 1.0, 1.0), np.where(asked_high, above, mean))
    low = np.where(asked_low, np.minimum(nu, tilts.lam(mean, np.where(asked_low, at_most, mean))), nu)
    high = np.where(asked_high, np.maximum(nu, tilts.lam(mean, np.where(asked_high, at_least, mean))), nu)
    idle = -tilts.psi(mean, nu)
    cost_low = np.where(low < nu, rate(tilts, mean, low, nu, n, np.where(low < nu, at_most, 0.0)), n * idle)
    raised = rate(tilts, mean, high, nu, n - 1.0, np.where(high > nu, at_least, 0.0)) + idle
    cost_high = np.where(high > nu, raised, n * idle)
    impossible = (asked_low & np.isneginf(at_most)) | (asked_high & np.isposinf(at_least))
    stuck = np.equal(tilts.mean(mean, np.ones(1)), mean)  # no tilt changes these rewards
    impossible |= stuck & ((asked_low & (at_most < mean)) | (asked_high & (at_least > mean)))
    cost = np.where(impossible, math.inf, np.maximum(cost_low, cost_high))
    held = cost_low >= cost_high
    return Table(n, count, cost, np.where(held, low, high), later, held)


def multipliers_of(
    table: Table, gaps: Floats, ends: tuple[Floats, Floats], horizon: float, loss: Floats, to_the_end: bool
) -> tuple[Floats, Floats]:
    """(price, premium) of each cell: see `lighttail.kernels.multipliers`. ends: of the premium, if not 0."""
    from lighttail.kernels.multipliers import multipliers

    found, prices = np.empty((loss.size, 2)), np.multiply.outer(table.top, (NOTHING, MUCH))
    cells = table.base, table.pulls, gaps
    multipliers(cells, float(horizon), to_the_end, loss, prices, np.stack(ends, axis=1), found)
    return found[:, 0], found[:, 1]


def settled(
    table: Table, gaps: Floats, horizon: float, loss: float, credit: Floats, to_the_end: bool
) -> tuple[Floats, Floats, Floats]:
    """The price, premium and log share of each cell, for sum n <= horizon and sum gap n >= loss.

    gaps: [cell, arm]; credit: [cell]. to_the_end: a path ends with the horizon, so that sum n = horizon.
    The price per pull and the premium per loss are the smallest with which the arms' expected pulls
    meet both constraints. The log share is

        sum_k ln sum_n exp(-cost - (price - premium gap_k) n) + price horizon - premium loss - credit,

    an upper bound for the logarithm of the chance of all routes of the cell (docs/rare-events.md).
    """
    top = table.top
    least_gap = np.min(np.where(gaps > 0.0, gaps, math.inf), axis=1)
    low, high = NOTHING * top / least_gap, MUCH * top / least_gap
    ends = np.where(np.isfinite(low), low, 1e-300), np.where(np.isfinite(high), high, 1.0)
    price, premium = multipliers_of(table, gaps, ends, horizon, np.full(top.size, loss), to_the_end)
    logs, expected = table.weighed(price[:, None] - premium[:, None] * gaps)
    share = logs.sum(axis=1) + price * horizon - premium * loss - credit
    half_a_pull = np.where(np.isfinite(least_gap), 0.5 * least_gap, 0.0)  # slack for the largest loss
    lost = (expected * gaps).sum(axis=1) >= loss - 1e-6 * np.abs(loss) - half_a_pull
    possible = (expected.sum(axis=1) <= horizon * (1.0 + 1e-6)) & lost & ~np.isnan(share)
    return price, premium, np.where(possible, share, -math.inf)


def routes_of(table: Table, gaps: Floats, price: Floats, premium: Floats, log_share: Floats) -> Routes:
    """The routes: the tilts that the arms of each cell choose among, and how often."""
    cells, arms, _ = table.cost.shape
    shape = (cells, arms, 2 * CHOICES + 1)
    lam, caps = np.zeros(shape), np.full(shape, math.inf)
    log_q = np.full(shape, -math.inf)
    chances = table.chances(gaps, price, premium)
    for c, k in np.ndindex(cells, arms):
        mass, tilt, held, nu = chances[c, k], table.tilt[c, k], table.held[c, k], table.later[c]
        idle = tilt == nu
        found = [(nu, math.inf, mass[idle].sum())]
        for part in _parts(held & ~idle, mass):
            found.append((tilt[part[part.size // 2]], table.until, mass[part].sum()))
        for part in _parts(~held & ~idle, mass):  # a tilt for few pulls serves more pulls, too
            found.append((tilt[part[0]], table.pulls[part[0]] - 1.0, mass[part].sum()))
        found = [one for one in found if one[2] > 0.0]
        lam[c, k, : len(found)], caps[c, k, : len(found)], shares = zip(*found, strict=True)
        log_q[c, k, : len(found)] = np.log(shares)
    log_q -= np.logaddexp.reduce(log_q, axis=2, keepdims=True)
    return Routes(log_share, lam, caps, log_q, np.repeat(table.later[:, None], arms, axis=1))


def _parts(kind: Any, mass: Floats) -> list[Any]:
    """The places of one kind in at most CHOICES runs of similar size, so that rare places have runs, too."""
    places = np.flatnonzero(kind & (mass > LEAST * mass.max()))
    if places.size <= CHOICES:
        return [np.array([place]) for place in places]
    weight = np.cumsum(mass[places] ** 0.25)
    bins = np.minimum(CHOICES - 1, (CHOICES * (weight - 0.5 * mass[places] ** 0.25) / weight[-1]).astype(int))
    return [places[bins == b] for b in range(CHOICES) if (bins == b).any()]
