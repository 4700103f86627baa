"""A law that is tallied on the device, so that no single path has to be copied to the host.

Two kernels read the rewards and pulls of a launch, in double precision: one counts, the other adds up. Counts
are whole numbers, and the ends of a bin are its smallest and its largest value, so that the order of the
threads does not matter. `PARTS` threads add up the sums of a launch, each in the order of its paths.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import config, cuda

from lighttail.gpu.run import launch
from lighttail.outcomes.law import Law, Layout
from lighttail.outcomes.tally import Tally, bin_of

PARTS = 1 << 14  # threads that add up a launch
THREADS = 128


class DeviceTally:
    """The arrays of one `Tally` on the device; its sums and its largest values are on the host."""

    def __init__(self, unit: float, most: int) -> None:
        self.tally = Tally(unit)
        self.counts, self.low, self.high = map(cuda.to_device, self._bins)
        self.above = cuda.device_array(most)  # values above the bar
        self.reached = cuda.to_device(np.zeros(1, np.int64))

    @property
    def _bins(self) -> tuple[Any, ...]:
        return self.tally.counts, self.tally.low, self.tally.high

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The argument `tally` of `keep`."""
        bins = self.counts, self.low, self.high
        return self.tally.unit, *bins, self.tally.bar, self.above, self.reached

    def take(self, paths: int, middle: float, rest: Any, squares: Any) -> None:
        """Add the sums of a launch and the values above the bar, which may raise the bar."""
        reached = int(self.reached.copy_to_host()[0])
        above = self.above[:reached].copy_to_host() if reached else np.zeros(0)
        self.tally.take(paths, middle, float(np.sum(rest)), float(np.sum(squares)), above)
        self.tally.settle()
        self.reached.copy_to_device(np.zeros(1, np.int64))

    def whole(self) -> Tally:
        """The whole tally, on the host."""
        for mine, theirs in zip(self._bins, (self.counts, self.low, self.high), strict=True):
            theirs.copy_to_host(mine)
        return self.tally


class DeviceLaw:
    """A `Law` on the device, to which launches of up to `most` paths are added."""

    def __init__(self, layout: Layout, most: int) -> None:
        self.layout = layout
        self.law = Law.empty(layout)
        self.pulls = cuda.to_device(self.law.pulls)
        self.lattice = cuda.to_device(np.zeros(max(1, self.law.lattice.size), np.int64))
        self.factors = cuda.to_device(np.array(layout.factors or [0] * len(layout.gaps), dtype=np.int64))
        self.gaps = cuda.to_device(np.array(layout.gaps))
        self.regret = DeviceTally(layout.unit, most)
        self.lost = None if layout.factors else DeviceTally(layout.small, most)
        self.parts = cuda.device_array((6, PARTS))
        self.middles: Any = None  # of regret and pseudo regret, from which distances are measured

    def add(self, rewards: Any, pulls: Any) -> None:
        """Add the paths of a launch."""
        count, total = _kernels(bool(self.layout.factors))
        paths = rewards, pulls, self.layout.best, self.gaps
        bins = self.layout.width, self.pulls, self.factors, self.lattice
        launch(
            count, rewards.size, THREADS, *paths, *bins, self.regret.arrays, (self.lost or self.regret).arrays
        )
        if self.middles is None:  # the means of the first launch serve for all launches
            launch(total, PARTS, THREADS, *paths, 0.0, 0.0, self.parts)
            parts = self.parts.copy_to_host()
            self.middles = tuple(float(np.sum(parts[row])) / rewards.size for row in (0, 2))
        launch(total, PARTS, THREADS, *paths, *self.middles, self.parts)
        parts = self.parts.copy_to_host()
        self.regret.take(rewards.size, self.middles[0], parts[0], parts[1])
        if self.lost is not None:
            self.lost.take(rewards.size, self.middles[1], parts[2], parts[3])
        self.law.widen(parts[4].min(), parts[5].max(), self.layout.best, self.layout.best)
        self.law.paths += rewards.size

    def whole(self) -> Law:
        """The law of all launches."""
        self.pulls.copy_to_host(self.law.pulls)
        if self.layout.factors:
            self.lattice.copy_to_host(self.law.lattice)
        self.law.regret = self.regret.whole()
        if self.lost is not None:
            self.law.pseudo_regret = self.lost.whole()
        return self.law


@cache
def _kernels(exactly: bool) -> tuple[Any, Any]:
    """The two kernels. exactly: whether pseudo regrets are counted as multiples of a step."""
    on_device = bin_of if config.ENABLE_CUDASIM else cuda.jit(device=True)(bin_of)

    def keep(x: Any, tally: Any) -> None:
        unit, counts, low, high, bar, above, reached = tally
        home = on_device(x, unit)
        cuda.atomic.add(counts, home, 1)
        if x < low[home]:
            cuda.atomic.min(low, home, x)
        if x > high[home]:
            cuda.atomic.max(high, home, x)
        if x > bar:
            above[cuda.atomic.add(reached, 0, 1)] = x

    keep = keep if config.ENABLE_CUDASIM else cuda.jit(device=True)(keep)

    def count(
        rewards: Any, pulls: Any, best: Any, gaps: Any, width: Any, places: Any, factors: Any, lattice: Any,
        regret: Any, lost: Any,
    ) -> None:  # fmt: skip
        path = cuda.grid(1)
        if path >= rewards.size:
            return
        step, missed = 0, 0.0
        for arm in range(gaps.size):
            n = pulls[arm, path]
            cuda.atomic.add(places, (arm, n // width), 1)
            step += n * factors[arm]
            missed += n * gaps[arm]
        keep(best - float(rewards[path]), regret)
        if exactly:
            cuda.atomic.add(lattice, step, 1)
        else:
            keep(missed, lost)

    def total(rewards: Any, pulls: Any, best: Any, gaps: Any, middle: Any, other: Any, parts: Any) -> None:
        part = cuda.grid(1)
        if part >= parts.shape[1]:
            return
        regret = squares = lost = lost_squares = 0.0
        least, most = math.inf, -math.inf
        for path in range(part, rewards.size, parts.shape[1]):
            x, y = best - float(rewards[path]), 0.0
            for arm in range(gaps.size):
                y += pulls[arm, path] * gaps[arm]
            least, most = min(least, y - x), max(most, y - x)
            x, y = x - middle, y - other
            regret += x
            squares += x * x
            lost += y
            lost_squares += y * y
        parts[0, part], parts[1, part], parts[2, part], parts[3, part] = regret, squares, lost, lost_squares
        parts[4, part], parts[5, part] = least, most

    return cuda.jit(count), cuda.jit(total)
