"""Gaussian arms: the law as an integral over the level (docs/tails.md).

Everything is in units of the noise, and means are measured from the best mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lighttail.records import Floats
from lighttail.running.prepare import usable_processors
from lighttail.tails.groups import Groups
from lighttail.tails.sums import Sum

FARTHEST = 38.0  # standard deviations; a normal number is farther away with a chance of 1e-315
HOPELESS = 300.0  # standard deviations below all levels; a lower mean is raised to this distance
NEGLIGIBLE = 1e-17  # share of the largest bound below which a level does not matter
DROPPED = 1e-17  # share of the largest bound below which densities are dropped
ALL_DROPPED = 1e-8  # share of the answer that all dropped densities may have
IMPOSSIBLE = 1e-300  # chances below this are 0
TINIEST = 1e-290  # the least threshold for densities
MOST_INTERVALS = 32  # intervals of levels are not halved beyond this number, or below sigma / sqrt(T)
LIKELY = 4  # intervals with the largest bounds, whose middles are bounded, too
FEW_STEPS = 2000  # a bound of fewer steps takes less time than to hand it to a thread
PARTS = 3  # panels of a stretch of levels at first
TOLERANCE = 3e-8  # error of a panel, as a share of the whole integral
MOST_LEVELS = 20_000  # no panel is halved after this number of levels
STEEP, FINEST = 2.5, 12  # the grid is finer by the factor steepness / STEEP, and at most by FINEST

# Gauss and Kronrod on [-1, 1], from the middle out: a node, and its weight with 15 and with 7 nodes.
RULE = np.array(
    [
        (0.0, 0.2094821410847278, 0.4179591836734694),
        (0.2077849550078985, 0.2044329400752989, 0.0),
        (0.4058451513773972, 0.1903505780647854, 0.3818300505051189),
        (0.5860872354676911, 0.1690047266392679, 0.0),
        (0.7415311855993944, 0.1406532597159411, 0.2797053914892767),
        (0.8648644233597691, 0.1047900103222502, 0.0),
        (0.9491079123427585, 0.0630920926299786, 0.1294849661688697),
        (0.9914553711208126, 0.0229353220105292, 0.0),
    ]
)
NODES, FINE, ROUGH = np.concatenate([RULE[:0:-1] * (-1.0, 1.0, 1.0), RULE]).T.copy()


@dataclass(frozen=True)
class GaussianArms:
    """Groups of arms with equal means: how far each is below the best, and the radius."""

    groups: Groups
    offsets: Floats  # mean minus the best mean: 0 for the best group, then below 0
    radius: Floats  # after 1, 2, ... pulls

    @classmethod
    def of(cls, groups: Groups) -> GaussianArms:
        """The groups in units of the noise; a mean that is far below all levels may be raised."""
        radius = (groups.radius - groups.radius[-1]) / groups.sigma
        with np.errstate(over="ignore"):
            offsets = -groups.gaps / groups.sigma
        lowest = float(radius.min() - radius[0]) - HOPELESS
        return cls(groups, np.maximum(offsets, lowest), radius)

    @property
    def pulls(self) -> Floats:
        """The numbers of pulls that an arm can have: 1, 2, ..."""
        return np.arange(1.0, self.radius.size + 1.0)

    def at(self, level: float, least: float) -> tuple[Floats, Floats]:
        """q and f of one arm of each group: see lighttail.kernels.crossing."""
        from lighttail.kernels.crossing import SPACING, end_terms, walk

        q, f = np.zeros((2, self.offsets.size, self.groups.horizon + 1))
        bends = np.diff(self.pulls * self.radius)
        later = np.minimum.accumulate(bends[::-1])[::-1].copy()
        for group, offset in enumerate(self.offsets):
            drift = float(offset - level)
            spacing = SPACING / min(FINEST, max(1, math.ceil(self._steepness(drift, least) / STEEP)))
            into = q[group, : self.radius.size + 1], f[group, : self.radius.size + 1]
            walk(drift, float(self.radius[0]), bends, later, spacing, least, end_terms(spacing), *into)
        return q, f

    def _steepness(self, drift: float, least: float) -> float:
        """The largest rate at which the log density of the walk falls above a boundary that matters.

        If the boundary after n steps, b, is high, the density above it falls at the rate b / n. If the
        boundary is low, the density rises above it, which makes up for the steps that lead down, unless
        the radius grows. If the radius grows so much that no step leads down to the boundary, its growth
        does not count.
        """
        n = self.pulls
        away = -drift - self.radius  # the boundary over n
        reach = math.sqrt(-2.0 * math.log(least))
        matters = (np.sqrt(n) * away > -reach) & (np.maximum.accumulate(np.sqrt(n) * away) < reach)
        growth = np.append(n[1:] * np.diff(self.radius), 0.0)
        falls = growth - away
        growth = np.where(falls < reach, np.minimum(growth, falls), 0.0)
        return float(np.maximum(away, growth)[matters].max(initial=0.0))

    def bound(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Upper bounds on q and f at the levels from `low` to `high`, up to powers of the horizon.

        An arm has n pulls at a level only if its index is at most the level after n pulls and above before.
        """
        from scipy.special import ndtr

        q, f = np.zeros((2, self.offsets.size, self.groups.horizon + 1))
        roots, later = np.sqrt(self.pulls), slice(2, self.radius.size + 1)
        for group, offset in enumerate(self.offsets):
            reached = ndtr(roots * (high - offset - self.radius))
            above = np.minimum.accumulate(ndtr(-roots * (low - offset - self.radius)))
            q[group, 1] = reached[0]
            q[group, later] = np.minimum(reached[1:], above[:-1])
            f[group, later] = np.minimum(np.minimum(1.0, np.cumsum(reached[:-1])), above[:-1])
        return q, f

    def range(self) -> tuple[float, float]:
        """Levels outside which pull T is made with a chance of 1e-300 at most."""
        slack = FARTHEST / np.sqrt(self.pulls)
        # Some arm is above the level this often.
        often = max(1, -(-self.groups.horizon // self.groups.total_arms) - 1)
        return float((self.radius - slack).min()), float((self.radius + slack)[:often].min())


def integrate(arms: GaussianArms, sums: Sequence[Sum], target: Sum, least: float | None = None) -> Floats:
    """The integral of `target` over the level; `sums` are tails that show which levels matter."""
    stretches: list[tuple[float, float]] = []
    largest = 0.0
    for tail in sums:
        parts, bound = _relevant(arms, tail)
        stretches += parts
        largest = max(largest, bound)
    if not stretches:
        return np.zeros(target.size)
    cuts = sorted({end for part in stretches for end in part})
    panels = [(a, b) for a, b in pairwise(cuts) if any(c <= a and b <= d for c, d in stretches)]
    threshold = least or max(TINIEST, min(1.0, largest) * DROPPED)
    value = _adaptive(arms, target, panels, threshold)
    if least is None:
        enough = float(value[-1]) * ALL_DROPPED / arms.groups.horizon
        if threshold > max(TINIEST, enough):
            value = _adaptive(arms, target, panels, max(TINIEST, 0.01 * enough))
    return value


def _relevant(arms: GaussianArms, tail: Sum) -> tuple[list[tuple[float, float]], float]:
    """Stretches of levels that matter, and the largest bound; intervals with small bounds are dropped."""
    low, high = arms.range()
    if not low < high:
        return [], 0.0
    shortest = 1.0 / math.sqrt(arms.groups.horizon)
    intervals, largest = list(pairwise(np.linspace(low, high, 17).tolist())), 0.0

    def bound(a: float, b: float) -> float:
        return float(tail.of(*arms.bound(a, b), arms.groups.arms)[-1])

    with ThreadPoolExecutor(usable_processors()) as pool:
        each = pool.map if arms.radius.size > FEW_STEPS else map
        while True:
            bounds = list(each(lambda part: bound(*part), intervals))
            likely = sorted(zip(bounds, intervals, strict=True), reverse=True)[:LIKELY]
            middles = [0.5 * (a + b) for _, (a, b) in likely]
            largest = max(largest, *each(bound, middles, middles))
            floor = max(largest * NEGLIGIBLE, IMPOSSIBLE)
            intervals = [part for part, value in zip(intervals, bounds, strict=True) if value > floor]
            if not intervals:
                return [], 0.0
            width = intervals[0][1] - intervals[0][0]
            if width <= shortest or len(intervals) > MOST_INTERVALS:
                break
            intervals = [half for a, b in intervals for half in ((a, 0.5 * (a + b)), (0.5 * (a + b), b))]
    return _joined(intervals), largest


def _joined(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Neighbouring intervals joined into stretches, and each stretch cut into PARTS panels."""
    joined: list[list[float]] = []
    for a, b in sorted(intervals):
        if joined and a <= joined[-1][1] + 1e-9 * (b - a):
            joined[-1][1] = b
        else:
            joined.append([a, b])
    return [part for low, high in joined for part in pairwise(np.linspace(low, high, PARTS + 1).tolist())]


def _adaptive(arms: GaussianArms, target: Sum, panels: list[tuple[float, float]], least: float) -> Floats:
    """Gauss-Kronrod sums over panels that are halved until the error is small enough."""

    def at(level: float) -> Floats:
        return target.of(*arms.at(level, least), arms.groups.arms)

    done = np.zeros(target.size)
    levels = 0
    with ThreadPoolExecutor(usable_processors()) as pool:
        while panels:
            found = []
            for a, b in panels:
                part = np.array(list(pool.map(at, 0.5 * (a + b) + 0.5 * (b - a) * NODES)))
                fine, rough = 0.5 * (b - a) * (FINE @ part), 0.5 * (b - a) * (ROUGH @ part)
                found.append((fine, np.abs(target.tails(fine) - target.tails(rough))))
            levels += len(NODES) * len(panels)
            total = target.tails(done + np.sum([fine for fine, _ in found], axis=0))
            halves = []
            for (a, b), (fine, apart) in zip(panels, found, strict=True):
                magnitude = np.maximum(target.tails(fine), IMPOSSIBLE)
                error = (
                    magnitude * np.minimum(1.0, apart / magnitude) ** 1.5
                )  # the error of 15 nodes, not of 7
                if np.any(error > TOLERANCE * total) and levels < MOST_LEVELS:
                    halves += [(a, 0.5 * (a + b)), (0.5 * (a + b), b)]
                else:
                    done += fine
            panels = halves
    return done
