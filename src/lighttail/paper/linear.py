"""Experiments with linear bandits, which the paper treats in theory but does not simulate.

Fixed sets have theta = 0.6 e_1 and the 2 d - 1 actions e_1, ..., e_d and (e_1 + e_k)/sqrt 2, k = 2, ..., d.
So the gaps are 0.6, as with the paper's two arms, and 0.18 for the actions between e_1 and another axis.
Changing sets have ten new points of the sphere in each round. The noise has sigma = 1; the policies assume a
sigma of 1, 1/2, 1/4 and 1/8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lighttail.linear import (
    LinearBandit,
    LinearLightTailed,
    LinearPolicy,
    LinearStandard,
    LinearThompson,
    LinearUCB,
    Oful,
    SphereActions,
)

GAP = 0.6  # the length of theta, which is the largest gap of a fixed set
KAPPA = 0.2  # the kappa of UCB-L for sigma = 1; the paper tunes it for arms
DIMS = (2, 5, 10, 20)
UNDER = (1, 2, 4, 8)  # the factors by which the policies under-estimate sigma
HORIZONS = (300, 1000, 3000, 10_000)
POLICIES: dict[str, Callable[[float], LinearPolicy]] = {
    "UCB-L": lambda sigma: LinearUCB(LinearLightTailed(KAPPA * sigma)),
    "OFUL": lambda sigma: LinearUCB(Oful(sigma, delta=0.05, bound=1.0)),
    "LinearStandard": lambda sigma: LinearUCB(LinearStandard(sigma)),
    "LinearThompson": LinearThompson,
}


@dataclass(frozen=True)
class LinearSetting:
    """One simulation.

    under: the noise is `under` times the noise that the policy assumes. share: the share of the paths that
    the user asked for.
    """

    series: str
    dim: int
    horizon: int
    under: int
    changing: bool = False
    share: float = 0.4

    @property
    def policy(self) -> LinearPolicy:
        return POLICIES[self.series](1.0 / self.under)

    @property
    def problem(self) -> LinearBandit:
        axes = np.eye(self.dim)
        if self.changing:
            return LinearBandit(GAP * axes[0], SphereActions(10))
        # The actions are slightly shorter than 1, so that rounding cannot make them longer than 1.
        between = (axes[0] + axes[1:]) * ((1.0 - 1e-12) / math.sqrt(2.0))
        return LinearBandit(GAP * axes[0], np.concatenate([axes, between]))

    @property
    def label(self) -> str:
        return f"{self.series}, d={self.dim}, T={self.horizon}"

    @property
    def slug(self) -> str:
        """A file name that describes the setting."""
        kind = "sphere" if self.changing else "fixed"
        return f"{self.series.lower()}_{kind}_dim-{self.dim}_under-{self.under}_horizon-{self.horizon}"


NOISE = tuple(
    LinearSetting(series, dim, 500 * dim, under, share=share)
    for series in POLICIES
    for dim, share in zip(DIMS, (0.4, 0.2, 0.1, 0.1), strict=True)
    for under in UNDER
)
GROWING = tuple(
    LinearSetting(series, 2, horizon, under)
    for series in POLICIES
    for under in (1, 8)
    for horizon in HORIZONS
)
CHANGING = tuple(
    LinearSetting(series, dim, 1000, under, changing=True, share=0.1)
    for series in POLICIES
    for under in (1, 8)
    for dim in DIMS
)
# The name, label, view, title and settings of every part, as in `experiments.PARTS`.
LINEAR_PARTS = (
    ("linear-1", "", "linear-noise", "A fixed set, with the right noise and under-estimated noise", NOISE),
    (
        "linear-2",
        "",
        "linear-shapes",
        "The whole distribution, fixed sets",
        tuple(setting for setting in NOISE if setting.under in (1, 8)),
    ),
    ("linear-3", "", "linear-horizons", "The chance of a linear regret as the horizon grows, d = 2", GROWING),
    ("linear-4", "", "linear-changing", "Ten new actions per round, T = 1,000", CHANGING),
)
