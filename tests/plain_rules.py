"""The rules of play in plain Python: what a live experiment runs, and the oracle of the kernels.

A rule sees two things happen to an arm: it is pulled, and later, perhaps, its reward arrives. A
pull without a reward yet is open. Open pulls count in everything that measures how often an arm
was tried (the radius, the posterior's spread, the turns of a phase), so that a batch of pulls
spreads over the arms; a mean is always taken over the rewards received.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from lighttail.online.state import fields_of, listed, same_counts, same_sums
from lighttail.policies import UCB, Exp3IX, Policy, SuccessiveElimination, ThompsonSampling
from lighttail.streams import uniform
from lighttail.validation import number, refuse, whole

LARGEST_GAIN = 1e200  # of a score by one reward: no sum of such gains is infinite


class Pull(NamedTuple):
    """One trial as a rule sees it: the arm, its reward if it was told, and what `choose` said of it."""

    arm: int
    reward: float | None
    memo: Any


class Rule(ABC):
    """How one policy plays. `pulls` counts open pulls too, `received` the rewards."""

    remembered: tuple[str, ...] = ("pulls", "received", "sums")

    def __init__(self, policy: Policy, horizon: float, arms: int) -> None:
        self.params = policy.params(horizon, arms)
        self.arms = arms
        self.pulls = [0] * arms
        self.received = [0] * arms
        self.sums = [0.0] * arms

    @abstractmethod
    def choose(self, rng: np.random.Generator) -> tuple[int, float | None]:
        """The arm to pull, and what `learn` must be told about this pull again."""

    def learn(self, arm: int, reward: float, memo: float | None) -> None:
        """Take in the reward of a pull."""
        self.received[arm] += 1
        self.sums[arm] += reward

    def state(self) -> dict[str, Any]:
        """All that changes as the rule plays, as plain lists and numbers."""
        return {name: getattr(self, name) for name in self.remembered}

    def check_memo(self, memo: Any) -> None:
        """Refuse what `choose` cannot have returned beside the arm."""
        if memo is not None:
            raise refuse("trials.memo", memo, "null, as this policy keeps nothing with a pull")

    def check_reward(self, arm: int, reward: float, memo: float | None) -> None:
        """Refuse a reward with which something that is added up would not be finite."""
        return

    def restore(self, state: Any, played: list[Pull]) -> None:
        """Continue from what `state` returned; refused if it is not what these pulls lead to."""
        fields_of("rule", state, self.remembered)
        pulls = [0] * self.arms
        rewards: list[list[float]] = [[] for _ in pulls]
        for pull in played:
            self.check_memo(pull.memo)
            pulls[pull.arm] += 1
            if pull.reward is not None:
                self.check_reward(pull.arm, pull.reward, pull.memo)
                rewards[pull.arm].append(pull.reward)
        self.pulls = same_counts("rule.pulls", state["pulls"], pulls)
        self.received = same_counts("rule.received", state["received"], [len(known) for known in rewards])
        self.sums = same_sums("rule.sums", state["sums"], rewards)


class IndexRule(Rule):
    """UCB: the arm with the highest mean + radius; ties at random."""

    def __init__(self, policy: UCB, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.radius, self.clock = policy.bonus.radius, policy.bonus.clock
        self.moving = policy.bonus.changes_with_time()
        self.index = [math.inf] * arms

    def choose(self, rng: np.random.Generator) -> tuple[int, float | None]:
        index = self.index
        if self.moving:
            time = self.clock(float(sum(self.pulls) + 1), *self.params)
            for arm in range(self.arms):
                index[arm] = self._index(arm, time)
        else:
            for arm in range(self.arms):
                if self.received[arm] == 0 and self.pulls[arm] > 0:  # leans on the others' rewards
                    index[arm] = self._index(arm, 0.0)
        best = max(index)
        chosen = index.index(best)
        tied = index.count(best)
        if tied > 1:
            chosen = [arm for arm in range(self.arms) if index[arm] == best][int(uniform(rng) * tied)]
        self.pulls[chosen] += 1
        if not self.moving:
            index[chosen] = self._index(chosen, 0.0)
        return chosen, None

    def learn(self, arm: int, reward: float, memo: float | None) -> None:
        super().learn(arm, reward, memo)
        if not self.moving:
            self.index[arm] = self._index(arm, 0.0)

    def restore(self, state: Any, played: list[Pull]) -> None:
        super().restore(state, played)
        if not self.moving:
            self.index = [self._index(arm, 0.0) for arm in range(self.arms)]

    def _index(self, arm: int, time: float) -> float:
        pulls, received = self.pulls[arm], self.received[arm]
        if pulls == 0:
            return math.inf
        # An arm whose rewards are all open stands at the mean of all rewards so far.
        mean = self.sums[arm] / received if received else sum(self.sums) / max(1, sum(self.received))
        return mean + self.radius(float(pulls), time, *self.params)


class EliminationRule(Rule):
    """Successive elimination: each active arm once a phase, then drop the dominated.

    Dropping an arm is for good, so the test counts the rewards received and not the open pulls.
    """

    remembered = (*Rule.remembered, "active", "turn")

    def __init__(self, policy: SuccessiveElimination, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.radius, self.clock = policy.bonus.radius, policy.bonus.clock
        self.active = list(range(arms))
        self.turn = 0

    def choose(self, rng: np.random.Generator) -> tuple[int, float | None]:
        if self.turn == len(self.active):
            if self.turn > 1:
                self._eliminate()
            self.turn = 0
        chosen = self.active[self.turn]
        self.turn += 1
        self.pulls[chosen] += 1
        return chosen, None

    def restore(self, state: Any, played: list[Pull]) -> None:
        super().restore(state, played)
        active = [
            whole("rule.active", arm, 0, most=self.arms - 1) for arm in listed("rule.active", state["active"])
        ]
        if not active or active != sorted(set(active)):
            raise refuse("rule.active", active, "the places of one arm or more in rising order")
        self.active, self.turn = active, whole("rule.turn", state["turn"], 0, most=len(active))
        self._check_turns()

    def _check_turns(self) -> None:
        """Active arms had as many pulls, those that wait for their turn one less; dropped arms had fewer."""
        most = max(self.pulls)
        done, waiting = self.active[: self.turn], self.active[self.turn :]
        fits = (
            all(self.pulls[arm] == most for arm in done)
            and all(self.pulls[arm] == most - (self.turn > 0) for arm in waiting)
            and all(0 < self.pulls[arm] < most for arm in range(self.arms) if arm not in set(self.active))
            and (self.turn > 0) == (most > 0)
        )
        if not fits:
            raise refuse(
                "rule.turn", self.turn, "the number of active arms that had their turn in this phase"
            )

    def _eliminate(self) -> None:
        time = self.clock(float(sum(self.pulls)), *self.params)
        known = [arm for arm in self.active if self.received[arm] > 0]
        width = {arm: self.radius(float(self.received[arm]), time, *self.params) for arm in known}
        mean = {arm: self.sums[arm] / self.received[arm] for arm in known}
        best = max((mean[arm] - width[arm] for arm in known), default=-math.inf)
        self.active = [arm for arm in self.active if arm not in width or not best > mean[arm] + width[arm]]


class PosteriorRule(Rule):
    """Thompson sampling: the arm with the highest draw from its posterior."""

    def __init__(self, policy: ThompsonSampling, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.centre, self.spread = policy.posterior_mean, policy.posterior_sd
        self._refresh()

    def choose(self, rng: np.random.Generator) -> tuple[int, float | None]:
        shocks = rng.standard_normal(self.arms).tolist()
        draws = [m + s * z for m, s, z in zip(self.mean, self.sd, shocks, strict=True)]
        chosen = draws.index(max(draws))
        self.pulls[chosen] += 1
        self.sd[chosen] = self.spread(float(self.pulls[chosen]), *self.params)
        return chosen, None

    def learn(self, arm: int, reward: float, memo: float | None) -> None:
        super().learn(arm, reward, memo)
        self.mean[arm] = self.centre(float(self.received[arm]), self.sums[arm], *self.params)

    def restore(self, state: Any, played: list[Pull]) -> None:
        super().restore(state, played)
        self._refresh()

    def _refresh(self) -> None:
        known = zip(self.received, self.sums, strict=True)
        self.mean = [self.centre(float(n), total, *self.params) for n, total in known]
        self.sd = [self.spread(float(n), *self.params) for n in self.pulls]


class WeightsRule(Rule):
    """EXP3-IX: an arm drawn by its weight; its score grows by the gain at that probability.

    It draws at random anyway, so open pulls change nothing until their rewards arrive.
    """

    remembered = (*Rule.remembered, "scores")

    def __init__(self, policy: Exp3IX, horizon: float, arms: int) -> None:
        super().__init__(policy, horizon, arms)
        self.weight, self.gain = policy.weight, policy.gain
        self.scores = [0.0] * arms

    def choose(self, rng: np.random.Generator) -> tuple[int, float | None]:
        best = max(self.scores)
        weights = [self.weight(score, best, *self.params) for score in self.scores]
        mass = 0.0
        for weight in weights:  # not sum(), which CPython 3.12 made more exact than the kernels
            mass += weight
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

    def check_memo(self, memo: Any) -> None:
        if not 0.0 <= number("trials.memo", memo) <= 1.0:
            raise refuse("trials.memo", memo, "the probability with which the arm was drawn")

    def check_reward(self, arm: int, reward: float, memo: Any) -> None:
        if not abs(self.gain(reward, memo, *self.params)) <= LARGEST_GAIN:
            raise refuse("reward", reward, f"one that moves the score of its arm by at most {LARGEST_GAIN:g}")

    def restore(self, state: Any, played: list[Pull]) -> None:
        super().restore(state, played)
        gains: list[list[float]] = [[] for _ in self.pulls]
        for arm, reward, memo in played:
            if reward is not None:
                gains[arm].append(self.gain(reward, memo, *self.params))
        self.scores = same_sums("rule.scores", state["scores"], gains)


RULES: dict[type[Policy], type[Rule]] = {
    UCB: IndexRule,
    SuccessiveElimination: EliminationRule,
    ThompsonSampling: PosteriorRule,
    Exp3IX: WeightsRule,
}
