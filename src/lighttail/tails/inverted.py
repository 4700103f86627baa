"""The levels of any index: which mean puts an arm at a level, found by bisection of the index itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttail.outcomes.estimates import Floats
from lighttail.tails.routes import pulls_tried

FAR = 60.0  # standard deviations beyond all means up to which a mean is looked for
LOOKS = 65  # means at which it is checked that an index rises
FALLS = 1e-9  # of the index's range over the means: by so much rounding may let an index fall


@dataclass(frozen=True)
class Inverted:
    """A view (`index_routes.View`) of an index that rises with the mean.

    invert(levels, pulls, least): the largest mean whose index is at most the level, or with `least` the
    smallest whose index is at least the level; beyond `ends` where every mean, or none, is one.
    """

    horizon: int
    grid: tuple[Floats, Floats]
    kernel: Any
    params: tuple[float, ...]
    clock: float
    ends: tuple[float, float]

    unpulled = math.inf
    slope = np.ones(1)  # about: it decides how many levels are looked at

    def bounds(self, levels: Floats) -> tuple[Floats, Floats]:
        once, place = np.unique(levels, return_inverse=True)  # a level comes with several shares of luck
        below, above = (np.empty((once.size, self.grid[0].size)) for _ in range(2))
        before = np.maximum(1.0, self.grid[0] - 1.0)
        self.kernel(self.params, self.clock, once, self.grid[0], *self.ends, False, below)
        self.kernel(self.params, self.clock, once, before, *self.ends, True, above)
        return below[place], above[place]

    def indices(self, means: Floats) -> Floats:
        return self.values(self.grid[0], means).T

    def values(self, pulls: Floats, means: Floats) -> Floats:
        """[pulls, mean]: the indices themselves."""
        found = np.empty((means.size, pulls.size))
        self.kernel(self.params, self.clock, means, pulls, 0.0, 0.0, False, found)
        return found.T


def inverted_view(quest: Any, horizon: int, params: tuple[float, ...]) -> Inverted | None:
    """The view of a policy's index at the time `horizon`; None where it does not rise with the mean."""
    from lighttail.kernels import inverse_kernel_for

    span = quest.problem.noise.span(quest.problem.means)
    means = quest.problem.means
    reach = FAR * quest.family.unit
    ends = span if span is not None else (min(means) - reach, max(means) + reach)
    clock = float(quest.policy.clock_formula()(float(horizon), *params))
    view = Inverted(horizon, pulls_tried(horizon), inverse_kernel_for(quest.policy), params, clock, ends)
    values = view.values(view.grid[0], np.linspace(ends[0], ends[1], LOOKS))
    if not np.isfinite(values).all():
        return None
    falls = np.diff(values, axis=1) < -FALLS * np.ptp(values, axis=1, keepdims=True)
    return None if falls.any() or not np.ptp(values) > 0.0 else view
