"""Bernoulli arms: the law as a sum over the values that the index can have.

Arms whose indices are equal are pulled in random order (docs/tails.md): an arm that comes to the level waits
for an exponential time, and the arm whose time ends first is pulled first. A cell is a number of pulls and a
number of successes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.records import Floats
from lighttail.running.prepare import usable_processors
from lighttail.tails.groups import Groups
from lighttail.tails.sums import Sum

TOGETHER = 128  # values of the index in a batch at most
PANEL = 12  # nodes of Gauss and Legendre in a stretch of the waiting time
GROWTH = 1.4  # the length of a stretch over the length of the stretch before, at most
ENOUGH = 40.0  # a waiting time is longer with a chance of exp(-40)


@dataclass(frozen=True)
class _Cells:
    """The cells in falling order of the index, and where each value of the index begins."""

    pulls: Any
    successes: Any
    starts: Any
    times: Any  # how often an arm may come to each value

    @classmethod
    def of(cls, groups: Groups) -> _Cells:
        pulls = np.repeat(np.arange(1, groups.steps + 1), np.arange(2, groups.steps + 2))
        successes = np.concatenate([np.arange(n + 1) for n in range(1, groups.steps + 1)])
        # The simulation's arithmetic: indices that are equal there are equal here.
        index = successes / pulls.astype(float) + groups.radius[pulls - 1]
        order = np.lexsort((successes, pulls, -index))
        index, pulls, successes = index[order], pulls[order], successes[order]
        new_value = np.append(True, index[1:] != index[:-1])
        starts = np.append(np.flatnonzero(new_value), index.size)
        new_row = new_value | np.append(True, pulls[1:] != pulls[:-1])
        times = np.add.reduceat(new_row.astype(np.int64), starts[:-1])
        return cls(pulls, successes, starts, times)

    def batches(self) -> Iterator[tuple[int, int]]:
        """Batches of values that an arm comes to at most once, and single values for all others."""
        several = np.flatnonzero(self.times > 1)
        cuts = np.union1d(np.append(several, several + 1), np.arange(0, self.times.size, TOGETHER))
        cuts = np.unique(np.append(cuts, self.times.size))
        yield from zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)


class _Arm:
    """One arm of a group while the level falls."""

    def __init__(self, mean: float, steps: int, horizon: int) -> None:
        self.mean, self.horizon = mean, horizon
        self.arrived = np.zeros((steps + 1, steps + 1))
        self.arrived[1, :2] = 1.0 - mean, mean
        self.least = np.arange(1, steps + 2)

    def lower(self, cells: _Cells, first: int, last: int) -> tuple[Floats, Floats, Floats, Floats]:
        """below, waiting, gone and running at the values first to last: see lighttail.kernels.cells."""
        from lighttail.kernels.cells import lower

        times = cells.times[first:last]
        rounds = np.append(0, np.cumsum(times))
        below = np.zeros((last - first, self.horizon + 1))
        rows = [np.zeros((int(rounds[-1]), self.horizon + 1)) for _ in range(3)]
        starts = cells.starts[first : last + 1]
        some = slice(starts[0], starts[-1])
        at = (cells.pulls[some], cells.successes[some], starts - starts[0], rounds)
        lower(self.mean, *at, self.arrived, self.least, below, *rows)
        return below, rows[0], rows[1], rows[2]


def add_up(groups: Groups, target: Sum) -> Floats:
    """The sum of `target` over all values of the index."""
    cells = _Cells.of(groups)
    walks = [_Arm(mean, groups.steps, groups.horizon) for mean in groups.means]
    total = np.zeros(target.size)
    count = np.array(groups.arms)
    with ThreadPoolExecutor(usable_processors()) as pool:
        for first, last in cells.batches():
            ends = [cells] * len(walks), [first] * len(walks), [last] * len(walks)
            found = list(pool.map(_Arm.lower, walks, *ends))
            parts = tuple(np.array(part) for part in zip(*found, strict=True))
            at_values = _often if cells.times[first] > 1 else _once
            total += at_values(parts, count, target, pool)
            below, _, gone, _ = parts
            left = below[:, -1] + gone[:, -int(cells.times[last - 1]) :].sum(axis=1)
            if not left.any(axis=1).all():
                break  # some arm would have more pulls than the horizon allows
    return total


def _once(parts: tuple[Floats, ...], arms: Any, target: Sum, pool: ThreadPoolExecutor) -> Floats:
    """The sum over values that an arm comes to at most once. A uniform clock makes the integrand a
    polynomial, for which the nodes of Gauss and Legendre are exact."""
    from lighttail.kernels.merge import merge

    nodes, weights = np.polynomial.legendre.leggauss(-(-int(arms.sum()) // 2))
    clocks, weights = 0.5 * (nodes + 1.0), 0.5 * weights

    def some(levels: Any) -> Floats:
        out = np.zeros(target.size)
        chosen = (np.ascontiguousarray(part[:, levels]) for part in parts)
        merge(target.kind, *chosen, clocks, weights, arms, *target.settings(), out)
        return out

    shares = np.array_split(np.arange(parts[0].shape[1]), usable_processors())
    found: Floats = np.sum(list(pool.map(some, [share for share in shares if share.size])), axis=0)
    return found


def _often(parts: tuple[Floats, ...], arms: Any, target: Sum, pool: ThreadPoolExecutor) -> Floats:
    """The sum at a value that an arm may come to several times, with a new waiting time at every visit.

    After a time r at this value an arm has made j moves with Poisson's chance exp(-r) r^j / j!.
    """
    from scipy.special import gammainc, gammaln

    visits = np.arange(int(parts[1].any(axis=(0, 2)).sum()))
    if not visits.size:
        return np.zeros(target.size)
    below, waiting, gone, running = parts[0][:, 0], *(part[:, : visits.size] for part in parts[1:])

    def at(node: tuple[float, float]) -> Floats:
        time, weight = node
        moves = np.exp(visits * math.log(time) - time - gammaln(visits + 1.0))
        done = gammainc(visits + 1.0, time)
        q = below + np.einsum("j,gjn->gn", done, gone) + np.einsum("j,gjn->gn", moves, waiting)
        return target.of(q, np.einsum("j,gjn->gn", moves, running), arms, weight)

    found: Floats = np.sum(list(pool.map(at, _times(visits.size, int(arms.sum())))), axis=0)
    return found


def _times(visits: int, arms: int) -> list[tuple[float, float]]:
    """Nodes and weights of an integral over the time at a value, in stretches that grow."""
    nodes, weights = np.polynomial.legendre.leggauss(PANEL)
    start, width = 0.0, 1.0 / arms
    found: list[tuple[float, float]] = []
    while start < ENOUGH + visits + 8.0 * math.sqrt(visits):
        found += [
            (start + 0.5 * width * (x + 1.0), 0.5 * width * w)
            for x, w in zip(nodes.tolist(), weights.tolist(), strict=True)
        ]
        start, width = start + width, min(width * GROWTH, 2.0 + math.sqrt(start))
    return found
