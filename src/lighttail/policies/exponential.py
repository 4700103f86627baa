"""Exponential weights: the probability with which an arm is drawn grows with the arm's score."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from lighttail.checks import accept, number, one_of, positive, refuse
from lighttail.policies.policy import Policy, State, is_sum
from lighttail.random.streams import uniform
from lighttail.rules import Params


def exponential_weight(score: float, best: float, eta: float, gamma: float, shift: float) -> float:
    """The weight of an arm, before the weights are divided by their sum.

    The score is measured from the best score, so that the weight is at most 1 and never overflows.
    """
    return math.exp(eta * (score - best))


def gain_of(reward: float, probability: float, eta: float, gamma: float, shift: float) -> float:
    """The number that a reward adds to the score of its arm."""
    return (reward - shift) / (probability + gamma)


@dataclass(frozen=True)
class Exp3IX(Policy):
    """Exponential weights with implicit exploration (Lattimore & Szepesvari, Alg. 10).

    Arm k is drawn with probability p_k proportional to exp(eta * score_k). Then the score of arm k grows by
    (reward - shift) / (p_k + gamma).

    estimator: "loss" sets shift = upper, a known upper bound C on the rewards, so that the losses C - r are 0
        or more. "reward" sets shift = 0; the paper shows that this estimator fails.
    upper: the bound C; 1 by default.
    eta, gamma: by default eta = sqrt(2 ln(K + 1) / (T K)) and gamma = eta / 2, as in Thm 12.1, for the number
        of arms K and the horizon T. The horizon must be known unless eta is given.

    >>> eta, gamma, shift = Exp3IX("loss", upper=1.0).params(horizon=500, arms=2)
    >>> round(eta, 5), round(gamma, 5), shift
    (0.04687, 0.02344, 1.0)
    """

    draws_for_itself: ClassVar[bool | None] = True
    notes = 2
    memo = 1
    estimator: Literal["loss", "reward"] = "loss"
    upper: float | None = None
    eta: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        accept(self, estimator=lambda field, value: one_of(field, value, ("loss", "reward")))
        if self.estimator == "reward" and self.upper is not None:
            raise refuse("upper", self.upper, "left out with the 'reward' estimator, which has no bound")
        given = {"upper": number, "eta": positive, "gamma": positive}
        accept(self, **{name: check for name, check in given.items() if getattr(self, name) is not None})

    @property
    def needs_horizon(self) -> bool:  # type: ignore[override]
        return self.eta is None

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        eta = self.eta if self.eta is not None else math.sqrt(2 * math.log(arms + 1) / (horizon * arms))
        gamma = self.gamma if self.gamma is not None else eta / 2
        shift = 0.0 if self.estimator == "reward" else 1.0 if self.upper is None else self.upper
        return eta, gamma, shift

    weight = staticmethod(exponential_weight)
    gain = staticmethod(gain_of)

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """note[k, 0] is the score of arm k. note[k, 1] is, after the choice, the probability with which the
        arm was drawn."""
        best = note[0, 0]
        for k in range(1, len(tried)):
            best = max(best, note[k, 0])
        mass = 0.0
        for k in range(len(tried)):
            note[k, 1] = exponential_weight(note[k, 0], best, *params)
            mass += note[k, 1]
        mark = uniform(rng) * mass
        arm, below = 0, note[0, 1]
        while arm < len(tried) - 1 and mark >= below:
            arm += 1
            below += note[arm, 1]
        note[arm, 1] /= mass
        return arm

    @staticmethod
    def learn(arm: int, reward: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> None:
        note[arm, 0] += gain_of(reward, note[arm, 1], *params)

    def check_notes(self, state: State) -> None:
        """Raise BadInput if a score is not the sum of its arm's gains, apart from rounding, or if a memo is
        not a probability."""
        gains: list[list[float]] = [[] for _ in state.tried]
        for arm, reward, memo in state.pulls:
            if not 0.0 <= memo[0] <= 1.0:
                raise refuse("trials.memo", memo[0], "the probability with which the arm was drawn")
            if reward is not None:
                gains[arm].append(gain_of(reward, memo[0], *state.params))
        for (score, weight), parts in zip(state.note, gains, strict=True):
            if state.whole and not is_sum(score, parts):
                raise refuse("rule.note", score, "the score that the rewards of its arm give")
            if not 0.0 <= weight <= 1.0:
                raise refuse("rule.note", weight, "a weight from 0 to 1 after the score of an arm")

    def __str__(self) -> str:
        given = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        extra = [f"{name} {value:g}" for name, value in given.items() if value is not None]
        return f"EXP3-IX({', '.join([self.estimator, *extra])})"
