"""A problem as the exact law sees it: arms with equal means form a group, and the best group is the first."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lighttail.checks import EXACT, refuse, whole
from lighttail.policies import Policy
from lighttail.problems import has_arms
from lighttail.records import Floats
from lighttail.tails.sums import Units, common_unit

MOST_MEANS = 5  # different means, unless their gaps have a common unit
FARTHEST = 45.0  # standard deviations; no mean reward is this far from its expectation
SHARP = 1e7  # a range of radii, in units of the noise, beyond which rounding shows in the law
LOST = 1e12  # means and radii, in units of the noise, beyond which rounding hides the noise
ROUNDED = 1e-12  # relative; indices that are closer may be equal in a simulation


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of arms. means: falling; arms: how many arms have each mean; sigma: nan if Bernoulli."""

    means: tuple[float, ...]
    arms: tuple[int, ...]
    sigma: float
    radius: Floats  # after 1, 2, ... pulls; empty if only sizes matter
    horizon: int

    @property
    def counted(self) -> bool:
        return math.isnan(self.sigma)

    @property
    def total_arms(self) -> int:
        return sum(self.arms)

    @property
    def steps(self) -> int:
        """The most pulls that an arm can have."""
        return self.horizon - self.total_arms + 1

    @property
    def gaps(self) -> Floats:
        return self.means[0] - np.array(self.means)

    @property
    def largest_gap(self) -> float:
        return float(self.gaps[-1])

    @property
    def scaled_gaps(self) -> Floats:
        """The gaps in units of the largest one."""
        return self.gaps / self.largest_gap

    @property
    def least_regret(self) -> float:
        """The regret if every arm is pulled once and then only the best arm."""
        return float(np.dot(self.gaps, self.arms))

    @property
    def most_regret(self) -> float:
        """The regret if every arm is pulled once and then only the worst arm."""
        return self.least_regret + self.largest_gap * (self.horizon - self.total_arms)

    def units(self) -> Units | None:
        """A common unit of the scaled gaps, and these gaps in the unit; None if there is none."""
        return common_unit(self.scaled_gaps.tolist())

    def certain_regret(self) -> float | None:
        """The pseudo regret if there is no choice, or if the noise is too small to change a choice."""
        if len(self.means) == 1 or self.horizon == self.total_arms:
            return self.least_regret
        if self.counted:
            return None
        largest = max(float(np.abs(self.means).max()), float(np.abs(self.radius).max()))
        spread = float(np.ptp(self.radius))
        if spread <= SHARP * self.sigma and largest <= LOST * self.sigma:
            return None
        found = self._without_noise(ROUNDED * largest)
        if found is None:
            least = max(spread / SHARP, largest / LOST)
            raise refuse("sigma", self.sigma, f"at least {least:.3g} with these means and this radius")
        return found

    def _without_noise(self, rounded: float) -> float | None:
        """The pseudo regret without noise; None if noise or rounding might change a choice."""
        gaps = [float(gap) for gap, arms in zip(self.gaps, self.arms, strict=True) for _ in range(arms)]
        heap = [(gap - float(self.radius[0]), gap, 1) for gap in gaps]  # (best mean - index, gap, pulls)
        heapq.heapify(heap)
        regret = math.fsum(gaps)
        for _ in range(self.horizon - len(gaps)):
            index, gap, n = heapq.heappop(heap)
            other, _, m = heap[0]
            if self.sigma == 0.0 and (other, m) == (index, n) and heap[0][1] == gap:
                other = math.inf  # the two arms are alike: it does not matter which one is pulled
            noise = FARTHEST * self.sigma * (1.0 / math.sqrt(n) + 1.0 / math.sqrt(m))
            if other - index <= noise + rounded:
                return None
            regret += gap
            heapq.heappush(heap, (gap - float(self.radius[n]), gap, n + 1))
        return regret


def has_law(policy: Any) -> bool:
    """Whether the law by levels covers this policy: its index is mean + radius and ignores time."""
    return isinstance(policy, Policy) and policy.plays_by == "radius" and not policy.moving()  # type: ignore[attr-defined]


def groups_of(policy: Any, problem: Any, horizon: int, sizes_only: bool = False) -> Groups:
    """The groups of a problem. Raises BadInput if the problem or the policy has no exact law."""
    if not has_arms(problem) or (problem.noise.normal is None and not problem.noise.is_coin):
        raise refuse("problem", problem, "a Bandit with Gaussian noise or Bernoulli rewards")
    if not has_law(policy):
        raise refuse("policy", policy, "UCB with a bonus that does not change with time")
    each = f", one pull for each of the {problem.arms} arms"
    horizon = whole("horizon", horizon, problem.arms, each, most=EXACT)
    sigma = math.nan if problem.noise.normal is None else problem.noise.normal
    counts = Counter(problem.means)
    means = tuple(sorted(counts, reverse=True))
    arms = tuple(counts[mean] for mean in means)
    if not math.isfinite((means[0] - means[-1]) * horizon):
        raise refuse("means", list(problem.means), "so close that the largest regret is a finite number")
    groups = Groups(means, arms, sigma, np.zeros(0), horizon)
    if len(means) > MOST_MEANS and groups.units() is None:
        allowed = f"a Bandit with at most {MOST_MEANS} different means, or with gaps that have a common unit"
        raise refuse("problem", problem, allowed)
    policy.check(horizon, problem.arms)
    if sizes_only:
        return groups
    params = policy.params(horizon, problem.arms)
    pulls = range(1, groups.steps + 1)
    radius = np.array([policy.bonus.finite_radius(float(n), 0.0, params) for n in pulls])
    return replace(groups, radius=radius)
