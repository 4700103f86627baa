"""The law of a simulation, which is kept instead of the paths if there are too many of them.

Blocks of paths and other laws can be added to a `Law` in any order, with the same bits as the result. Its
memory depends on the problem and the horizon alone. docs/streaming.md explains it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from lighttail.checks import refuse
from lighttail.outcomes.tally import BINS, FINE, Sample, Tally, power_below
from lighttail.problems import Problem
from lighttail.records import Floats, Ints, Record

PULL_BINS = 1 << 18  # bins of the pulls of one arm, at most
ALL_PULL_BINS = 1 << 22  # bins of the pulls of all arms together, at most
LATTICE = 1 << 20  # different pseudo regrets that are counted exactly, at most
REACH = 2.0**40  # the largest pseudo regret in units, at most: a thousandth of the reach of the bins
AGREE = 1e-12  # the largest relative change of a gap when the means are read as decimals


@dataclass(frozen=True)
class Layout:
    """The bins of a law, which depend on the problem and the horizon alone.

    gaps: the gaps of the arms; empty if the actions change. best: best mean * horizon.
    width: how many numbers of pulls share a bin.
    factors, step: gap = factor * step for every arm, with whole factors: pseudo regrets are counted exactly,
        as multiples of the step. Without factors they are counted in bins with the unit `small`.
    unit, small: the units of the bins of regret and reward, and of the pseudo regret; powers of two.
    most: the largest possible pseudo regret.
    """

    horizon: int
    gaps: tuple[float, ...]
    best: float
    width: int
    factors: tuple[int, ...]
    step: float
    unit: float
    small: float
    most: float

    @cached_property
    def arrays(self) -> tuple[Ints, Floats]:
        """The factors and the gaps as the compiled loop takes them."""
        return np.array(self.factors, dtype=np.int64), np.array(self.gaps)

    @property
    def pull_bins(self) -> int:
        return -(-(self.horizon + 1) // self.width)

    @property
    def bytes(self) -> int:
        """The memory of a law in bytes, approximately."""
        cells = len(self.gaps) * self.pull_bins + max(self.factors, default=0) * self.horizon
        return 8 * cells + 24 * BINS * (1 if self.factors else 2 if self.gaps else 3)


def layout_of(problem: Problem, horizon: int) -> Layout:
    """The bins for a problem.

    >>> from lighttail.problems import Bandit
    >>> layout_of(Bandit([0.2, 0.5, 0.8]), 500).factors
    (2, 1, 0)
    """
    means = problem.means
    top = max(means, default=0.0)
    gaps = tuple(top - mean for mean in means)
    most = problem.most_lost(horizon)
    wide = problem.noise.sd(means) * math.sqrt(horizon) or most
    factors, step = lattice_of(means, horizon)
    finest = min((gap for gap in gaps if gap > 0.0), default=most / LATTICE)
    least = power_below(most / REACH) if most > 0.0 else 0.0
    unit, small = (max(power_below(x / FINE), least) for x in (wide, finest))
    each = min(PULL_BINS, max(1, ALL_PULL_BINS // max(1, len(gaps))))
    width = -(-(horizon + 1) // each)
    return Layout(horizon, gaps, top * horizon, width, factors, step, unit, small, most)


def lattice_of(means: tuple[float, ...], horizon: int) -> tuple[tuple[int, ...], float]:
    """The factors and the step of gaps that are whole multiples of one step; no factors if there is no step.

    A single gap is its own step. With several gaps, the means are read as the decimals that they were written
    as, to the 15 digits that a float keeps.

    >>> lattice_of((0.1, 0.3, 0.6000000000000001), 1000)
    ((5, 3, 0), 0.1)
    """
    top = max(means, default=0.0)
    gaps = [top - mean for mean in means]
    several = sorted({gap for gap in gaps if gap > 0.0})
    if not gaps or horizon >= LATTICE:
        return (), 0.0
    if len(several) <= 1:
        return tuple(int(gap > 0.0) for gap in gaps), several[0] if several else 0.0
    read = [Fraction(f"{mean:.15g}") for mean in means]
    highest = max(read)
    apart = [highest - mean for mean in read]
    below = math.lcm(*(gap.denominator for gap in apart))
    whole = [int(gap * below) for gap in apart]
    common = math.gcd(*whole) or 1  # the divisor is 0 if all means have the same 15 digits
    step = float(Fraction(common, below))
    factors = tuple(gap // common for gap in whole)
    same = all(abs(f * step - gap) <= AGREE * gap for f, gap in zip(factors, gaps, strict=True))
    return (factors, step) if same and max(factors) * horizon < LATTICE else ((), 0.0)


@dataclass(eq=False)
class Law:
    """The tallies of many paths.

    pulls: int64[arms, bins], the number of paths per number of pulls, `layout.width` numbers of pulls per
        bin; without arms if the actions change.
    lattice: int64[steps + 1], the number of paths per pseudo regret, in steps; empty if there are no factors.
    regret: the tally of the regret. pseudo_regret: its tally, if there is no lattice.
    cost: the tally of -reward, if the actions change; otherwise the reward is best - regret.
    luck, best: float64[2], the smallest and the largest pseudo regret - regret, and the smallest and the
        largest mean reward of always choosing best.
    paths: the number of paths.
    """

    layout: Layout
    pulls: Ints
    lattice: Ints
    regret: Tally
    pseudo_regret: Tally | None
    cost: Tally | None
    luck: Floats = field(default_factory=lambda: np.array([math.inf, -math.inf]))
    best: Floats = field(default_factory=lambda: np.array([math.inf, -math.inf]))
    paths: int = 0

    @classmethod
    def empty(cls, layout: Layout) -> Law:
        steps = max(layout.factors) * layout.horizon + 1 if layout.factors else 0
        return cls(
            layout,
            np.zeros((len(layout.gaps), layout.pull_bins), dtype=np.int64),
            np.zeros(steps, dtype=np.int64),
            Tally(layout.unit),
            None if layout.factors else Tally(layout.small),
            None if layout.gaps else Tally(layout.unit),
        )

    def add(self, record: Record) -> None:
        reward = record.reward
        lost, best = record.losses(self._counted, self.layout.best)
        regret = best - reward
        self.regret.add(regret)
        if self.pseudo_regret is not None:
            self.pseudo_regret.add(np.ascontiguousarray(lost))
        if self.cost is not None:
            self.cost.add(-reward)
        luck = lost - regret
        self.widen(luck.min(), luck.max(), np.min(best), np.max(best))
        self.paths += reward.size

    def _counted(self, pulls: Ints) -> Floats:
        """The pseudo regrets of some paths, whose pulls (and place in the lattice) are counted on the way."""
        from lighttail.kernels.tally import pull_counter  # imports numba

        lost, (factors, gaps) = np.empty(len(pulls)), self.layout.arrays
        pull_counter()(pulls, self.layout.width, self.pulls, factors, self.lattice, gaps, lost)
        return lost

    def merge(self, other: Law) -> None:
        """Add the paths of another law with the same layout."""
        if other.layout != self.layout:
            raise refuse("laws", None, "of one problem and one horizon to be merged", found="are not")
        self.pulls += other.pulls
        self.lattice += other.lattice
        for mine, theirs in zip(self._tallies(), other._tallies(), strict=True):
            mine[1].merge(theirs[1])
        self.widen(*other.luck, *other.best)
        self.paths += other.paths

    def widen(self, least: float, most: float, worst: float, best: float) -> None:
        """Extend the ranges of the luck and of the best mean reward to these values."""
        self.luck[:] = min(self.luck[0], least), max(self.luck[1], most)
        self.best[:] = min(self.best[0], worst), max(self.best[1], best)

    def _tallies(self) -> Iterator[tuple[str, Tally]]:
        for name in ("regret", "pseudo_regret", "cost"):
            tally = getattr(self, name)
            if tally is not None:
                yield name, tally

    def sample(self, kind: str) -> Sample:
        """The values of one kind in ascending order, and how many paths have each value."""
        if kind == "reward" and self.cost is not None:
            return self.cost.sample().mirrored()
        if kind == "reward":
            return self.regret.sample().mirrored(self.layout.best)
        if kind == "regret":
            return self.regret.sample()
        if self.pseudo_regret is not None:
            return self.pseudo_regret.sample()
        steps = np.flatnonzero(self.lattice)
        values = self.layout.step * steps.astype(np.float64)
        return Sample(values, values, values, self.lattice[steps])

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The whole law: entries for JSON, and arrays. It has only the counts above 0, with their bins."""
        header: dict[str, Any] = {"layout": asdict(self.layout), "paths": self.paths}
        arrays: dict[str, Any] = {"noise": self.luck, "best": self.best}
        counts = {"pulls": self.pulls.ravel(), "lattice": self.lattice}
        for name, tally in self._tallies():
            tally.settle()
            counts[name] = tally.counts
            arrays[f"{name}_top"] = tally.top
            header[name] = [hex(tally.total), hex(tally.squares)]
        for name, many in counts.items():
            arrays[f"{name}_bins"] = np.flatnonzero(many)
            arrays[f"{name}_counts"] = many[arrays[f"{name}_bins"]]
        for name, tally in self._tallies():
            bins = arrays[f"{name}_bins"]
            arrays[f"{name}_low"], arrays[f"{name}_high"] = tally.low[bins], tally.high[bins]
        return header, arrays

    @classmethod
    def from_state(cls, header: dict[str, Any], arrays: Any) -> Law:
        """The law whose `state` this is."""
        layout: dict[str, Any] = {**header["layout"]}
        layout |= {name: tuple(layout[name]) for name in ("gaps", "factors")}  # JSON has lists only
        law = cls.empty(Layout(**layout))
        law.paths = header["paths"]
        law.widen(*arrays["noise"], *arrays["best"])
        counts = {"pulls": law.pulls.reshape(-1), "lattice": law.lattice}
        for name, tally in law._tallies():
            counts[name] = tally.counts
            tally.top = np.array(arrays[f"{name}_top"])
            tally.total, tally.squares = (int(text, 16) for text in header[name])
            bins = arrays[f"{name}_bins"]
            tally.low[bins], tally.high[bins] = arrays[f"{name}_low"], arrays[f"{name}_high"]
            tally.settle()
        for name, many in counts.items():
            many[arrays[f"{name}_bins"]] = arrays[f"{name}_counts"]
        law._check()
        return law

    def _check(self) -> None:
        """Refuse a law unless every path is in every tally once."""
        whole = [self.lattice] if self.layout.factors else []
        once = all(counts.sum() == self.paths and counts.min() >= 0 for counts in [*whole, *self.pulls])
        if not (once and all(tally.fits(self.paths) for _, tally in self._tallies())):
            each = "every path once in each of its tallies"
            raise refuse("a law", None, each, verb="count", found="does not")

    def __reduce__(self) -> Any:
        return Law.from_state, self.state()
