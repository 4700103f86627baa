"""Simple policies that are widely used, for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from lighttail.checks import accept, positive, refuse, whole, whole_float
from lighttail.policies.policy import Policy, State
from lighttail.random.streams import uniform
from lighttail.rules import Params, highest, mean_heard


def fewest(tried: Any) -> int:
    """The arm with the fewest pulls; the first such arm if there are several."""
    arm = 0
    for k in range(1, len(tried)):
        if tried[k] < tried[arm]:
            arm = k
    return arm


def exploration(t: float, mass: float) -> float:
    """epsilon_t = min(1, mass / t) with mass = c K / d^2."""
    return min(1.0, mass / t)


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """Pull a random arm with chance epsilon_t, otherwise the arm with the best mean (epsilon_n-greedy of Auer
    et al. 2002, Fig. 3):

    epsilon_t = min(1, c K / (d^2 t)).

    c, d: above 0. The authors' theorem is for rewards in [0, 1], d at most the smallest gap, and a large c
        (above 5 d^2 for the last term).
    t: the round, from 1. K: the number of arms. No horizon is needed. The mean of an arm that was never
    pulled counts as infinite. Ties are broken at random.

    >>> policy = EpsilonGreedy(c=5.0, d=0.5)
    >>> round(exploration(100.0, *policy.params(horizon=math.nan, arms=2)), 4)
    0.4
    """

    needs_horizon = False
    notes = 1
    amendable = True
    c: float
    d: float

    def __post_init__(self) -> None:
        accept(self, c=positive, d=positive)
        mass = self.c / self.d / self.d
        if not 0.0 < mass < math.inf:
            raise refuse("c / d^2", mass, "a finite number above 0")

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (self.c * arms / self.d / self.d,)

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """An arm with only open pulls counts as pulled. Means are means of the rewards received."""
        if uniform(rng) < exploration(t, *params):
            return int(uniform(rng) * len(tried))
        for k in range(len(tried)):
            note[k, 0] = mean_heard(k, heard, total) if tried[k] > 0.0 else math.inf
        return highest(rng, note)

    def __str__(self) -> str:
        return f"EpsilonGreedy({self.c:g}, {self.d:g})"


def committed(note: Any) -> int:
    """The arm whose first note is 1, or -1 if there is none."""
    for k in range(len(note)):
        if note[k, 0] == 1.0:
            return k
    return -1


@dataclass(frozen=True)
class ExploreThenCommit(Policy):
    """Pull the arms in turn until each has m rewards, then pull the arm with the best mean until the end
    (Lattimore & Szepesvari, Alg. 1).

    With two normal arms, gap D and noise sigma, the policy commits to the wrong arm with chance
    Phi(-D sqrt(m / 2) / sigma), at any horizon.

    m: a whole number of at least 1. Ties are broken at random. No horizon is needed.

    >>> import lighttail as lt
    >>> out = lt.simulate(ExploreThenCommit(20), lt.Bandit([0.2, 0.8]), horizon=500, paths=5000, seed=1)
    >>> print(out.mean("pseudo_regret"))
    20.45 [19.17, 21.87]
    """

    needs_horizon = False
    notes = 1
    settled = staticmethod(committed)
    m: int

    def __post_init__(self) -> None:
        accept(self, m=lambda field, value: whole(field, whole_float(value), 1, most=2**53))

    @property
    def turns(self) -> float:  # type: ignore[override]
        return float(self.m)

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return (float(self.m),)

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """note[k, 0] is 1 if the policy has committed to arm k. It commits when m rewards of every arm are
        known, because it never changes its arm again."""
        arm = committed(note)
        if arm >= 0:
            return arm
        least = heard[0]
        for k in range(1, len(heard)):
            least = min(least, heard[k])
        if least < params[0]:
            return fewest(tried)
        for k in range(len(tried)):
            note[k, 0] = total[k] / heard[k]
        arm = highest(rng, note)
        for k in range(len(tried)):
            note[k, 0] = 1.0 if k == arm else 0.0
        return arm

    def check_notes(self, state: State) -> None:
        marks = [row[0] for row in state.note]
        if not set(marks) <= {0.0, 1.0} or sum(marks) > 1.0:
            raise refuse("rule.note", marks, "0, or 1 for one arm")
        if sum(marks) == 1.0 and min(state.heard) < self.m:
            raise refuse("rule.note", marks, f"0 while an arm has fewer than {self.m} rewards")
        if state.whole and sum(marks) == 1.0 and marks[state.pulls[-1].arm] != 1.0:
            raise refuse("rule.note", marks, "1 for the arm that was pulled last")

    def __str__(self) -> str:
        return f"ExploreThenCommit({self.m})"


@dataclass(frozen=True)
class EvenSplit(Policy):
    """Pull the arms in turn until the end, as an A/B test does. The pseudo regret is T times the mean gap.

    No horizon is needed, and the policy learns nothing.

    >>> import lighttail as lt
    >>> out = lt.simulate(EvenSplit(), lt.Bandit([0.2, 0.8]), horizon=500, paths=100, seed=1)
    >>> round(float(out.mean("pseudo_regret").value), 6)
    150.0
    """

    needs_horizon = False
    amendable = True
    turns: ClassVar[float | None] = math.inf

    def params(self, horizon: float, arms: int) -> tuple[float, ...]:
        return ()

    @staticmethod
    def choose(rng: Any, t: float, tried: Any, heard: Any, total: Any, note: Any, params: Params) -> int:
        """Open pulls count like other pulls."""
        return fewest(tried)

    def __str__(self) -> str:
        return "EvenSplit"
