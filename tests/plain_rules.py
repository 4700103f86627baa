"""The shipped policies once more, each as a class of its own with plain lists: an oracle of the rules.

A rule sees two things happen to an arm: it is pulled, and later, perhaps, its reward arrives. A pull without
a reward yet is open. Nothing is shared with `lighttail.rules` but the scalar formulas of the policies.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.random.streams import uniform


def added(values: Iterable[float]) -> float:
    """From left to right; not sum(), which CPython 3.12 made more exact than the kernels."""
    total = 0.0
    for value in values:
        total += value
    return total


class PlainRule(ABC):
    """How one policy plays. `pulls` counts open pulls too, `received` the rewards."""

    def __init__(self, policy: Any, horizon: float, arms: int) -> None:
        self.params = policy.params(horizon, arms)
        self.arms = arms
        self.pulls = [0] * arms
        self.received = [0] * arms
        self.sums = [0.0] * arms

    @abstractmethod
    def choose(self, rng: np.random.Generator) -> tuple[int, Any]:
        """The arm to pull, and what `learn` must be told about this pull again."""

    def learn(self, arm: int, reward: float, memo: Any) -> None:
        """Take in the reward of a pull."""
        self.received[arm] += 1
        self.sums[arm] += reward


class IndexRule(PlainRule):
    """UCB: the arm with the highest mean + radius; ties at random."""

    def __init__(self, policy: UCB, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.radius, self.clock = policy.bonus.radius, policy.bonus.clock

    def choose(self, rng: np.random.Generator) -> tuple[int, Any]:
        time = self.clock(float(sum(self.pulls) + 1), *self.params)
        index = [self._index(arm, time) for arm in range(self.arms)]
        tied = [arm for arm in range(self.arms) if index[arm] == max(index)]
        chosen = tied[int(uniform(rng) * len(tied))] if len(tied) > 1 else tied[0]
        self.pulls[chosen] += 1
        return chosen, None

    def _index(self, arm: int, time: float) -> float:
        pulls, received = self.pulls[arm], self.received[arm]
        if pulls == 0:
            return math.inf
        # An arm whose rewards are all open stands at the mean of all rewards so far.
        mean = self.sums[arm] / received if received else added(self.sums) / max(1, sum(self.received))
        return mean + self.radius(float(pulls), time, *self.params)


class EliminationRule(PlainRule):
    """Successive elimination: each active arm once a phase, then drop the dominated.

    Dropping an arm is for good, so the test counts the rewards received and not the open pulls.
    """

    def __init__(self, policy: SuccessiveElimination, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.radius, self.clock = policy.bonus.radius, policy.bonus.clock
        self.active = list(range(arms))
        self.turn = 0

    def choose(self, rng: np.random.Generator) -> tuple[int, Any]:
        if self.turn == len(self.active):
            if self.turn > 1:
                self._eliminate()
            self.turn = 0
        chosen = self.active[self.turn]
        self.turn += 1
        self.pulls[chosen] += 1
        return chosen, None

    def _eliminate(self) -> None:
        time = self.clock(float(sum(self.pulls)), *self.params)
        known = [arm for arm in self.active if self.received[arm] > 0]
        width = {arm: self.radius(float(self.received[arm]), time, *self.params) for arm in known}
        mean = {arm: self.sums[arm] / self.received[arm] for arm in known}
        best = max((mean[arm] - width[arm] for arm in known), default=-math.inf)
        self.active = [arm for arm in self.active if arm not in width or not best > mean[arm] + width[arm]]


class PosteriorRule(PlainRule):
    """Thompson sampling: the arm with the highest draw from its posterior."""

    def __init__(self, policy: ThompsonSampling, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.centre, self.spread = policy.posterior_mean, policy.posterior_sd

    def choose(self, rng: np.random.Generator) -> tuple[int, Any]:
        shocks = rng.standard_normal(self.arms).tolist()
        mean = [self.centre(float(n), s, *self.params) for n, s in zip(self.received, self.sums, strict=True)]
        sd = [self.spread(float(n), *self.params) for n in self.pulls]
        draws = [m + s * z for m, s, z in zip(mean, sd, shocks, strict=True)]
        chosen = draws.index(max(draws))
        self.pulls[chosen] += 1
        return chosen, None


class WeightsRule(PlainRule):
    """EXP3-IX: an arm drawn by its weight; its score grows by the gain at that probability.

    It draws at random anyway, so open pulls change nothing until their rewards arrive.
    """

    def __init__(self, policy: Exp3IX, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.weight, self.gain = policy.weight, policy.gain
        self.scores = [0.0] * arms

    def choose(self, rng: np.random.Generator) -> tuple[int, Any]:
        weights = [self.weight(score, max(self.scores), *self.params) for score in self.scores]
        mass = added(weights)
        mark = uniform(rng) * mass
        chosen, below = 0, weights[0]
        while chosen < self.arms - 1 and mark >= below:
            chosen += 1
            below += weights[chosen]
        self.pulls[chosen] += 1
        return chosen, weights[chosen] / mass

    def learn(self, arm: int, reward: float, memo: Any) -> None:
        super().learn(arm, reward, memo)
        self.scores[arm] += self.gain(reward, memo, *self.params)


RULES: dict[type[Policy], type[PlainRule]] = {
    UCB: IndexRule,
    SuccessiveElimination: EliminationRule,
    ThompsonSampling: PosteriorRule,
    Exp3IX: WeightsRule,
}


def plain_rule(policy: Policy, horizon: float, arms: int) -> PlainRule:
    """The class that plays this policy."""
    return RULES[type(policy)](policy, horizon, arms)
