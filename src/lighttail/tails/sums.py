"""The sums at every level: a tail or a whole law, over the numbers of pulls of the groups of arms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lighttail.records import Floats

CHECKS = 200  # tails of a law whose accuracy is watched
MOST_UNITS = 100_000  # units that the largest gap may have
SAME = 1e-9  # relative; a gap may differ by this from a whole number of units
Units = tuple[float, tuple[int, ...]]  # a common unit of the gaps, and the gaps in this unit


def common_unit(gaps: Any) -> Units | None:
    """A unit of which every gap is a whole number, and these numbers; None if no unit is large enough.

    >>> unit, wholes = common_unit([0.0, 0.3, 0.75])
    >>> round(unit, 9), wholes
    (0.15, (0, 2, 5))
    """
    largest = max(gaps)
    unit = largest
    for gap in gaps:
        a, b = unit, gap
        while b > SAME * MOST_UNITS * largest / 1e4:  # Euclid's algorithm; rounding is far below this
            a, b = b, abs(a - b * round(a / b))
        unit = a
        if unit < largest / MOST_UNITS:
            return None
    wholes = tuple(round(gap / unit) for gap in gaps)
    unit = largest / max(wholes)
    fits = all(abs(gap - whole * unit) <= SAME * gap for gap, whole in zip(gaps, wholes, strict=True))
    return (unit, wholes) if fits else None


@dataclass(frozen=True, eq=False)
class Sum:
    """A vector of sums at one level. kind: one of the kinds of `lighttail.kernels.merge`.

    gaps, regret: in the same unit, the regret minus what rounding may take. wholes: for the lattice, the
    gaps in whole units; in a tail, the last place stands for all regrets from `regret` on.
    """

    kind: int
    gaps: Floats
    regret: float
    horizon: int
    size: int
    wholes: tuple[int, ...] = ()
    order: Any = field(default=None, repr=False)  # the places of a law by falling regret

    def settings(self) -> tuple[Any, ...]:
        """The arguments of the kernels."""
        wholes = np.array(self.wholes or (0,) * len(self.gaps), dtype=np.int64)
        return self.gaps, wholes, self.regret, self.horizon

    def of(self, q: Floats, f: Floats, arms: Any, weight: float = 1.0) -> Floats:
        """The sums at one level, from q and f of one arm of each group."""
        from lighttail.kernels.merge import merge

        out, never = np.zeros(self.size), np.zeros_like(q[:, None])  # no arm waits for its turn
        parts = q[:, None], never, never, f[:, None]
        merge(self.kind, *parts, np.zeros(1), np.array([weight]), np.array(arms), *self.settings(), out)
        return out

    def tails(self, value: Floats) -> Floats:
        """The tails whose accuracy matters."""
        if self.regret > -math.inf:
            return value[-1:]
        tails = np.cumsum(value[self.order] if self.order is not None else value[::-1])
        found: Floats = tails[:: max(1, tails.size // CHECKS)]
        return found


def tail_sum(gaps: Floats, regret: float, horizon: int, units: Units | None = None) -> Sum:
    """P(pseudo regret >= regret), summed over pulls or, if units are given, over pulls and units."""
    from lighttail.kernels.merge import LATTICE, TAIL

    if units is None:
        return Sum(TAIL, gaps, regret, horizon, 1)
    unit, wholes = units
    return Sum(LATTICE, gaps, regret, horizon, max(0, math.ceil(regret / unit)) + 1, wholes)


def law_sum(gaps: Floats, horizon: int, units: Units | None) -> tuple[Sum, Floats]:
    """The whole law, summed as in `tail_sum`, and the regret at each place."""
    from lighttail.kernels.merge import LATTICE, LAW, regrets_of

    if units is not None:
        unit, wholes = units
        regrets: Floats = unit * np.arange(max(wholes) * horizon + 1.0)
        return Sum(LATTICE, gaps, -math.inf, horizon, regrets.size, wholes), regrets
    regrets = regrets_of(gaps, horizon)
    order = np.argsort(-regrets, kind="stable")
    return Sum(LAW, gaps, -math.inf, horizon, regrets.size, order=order), regrets
